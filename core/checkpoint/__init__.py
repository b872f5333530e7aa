"""Checkpoints: finding a model, reading its files, understanding its configuration.

The way from a name to tensors, one module a step::

    path = locate("fable")                            # locate: a path, an embedded name, a hub id
    fields = Fields(read_object(path / "config.json"), …)  # json_text, fields: checked types and ranges
    checkpoint = open_checkpoint(path)                # open: the tensors that lie in the files, and where
    weights = bind_layout(checkpoint, config, layout) # layout: canonical name -> float32 array, all checked

Which fields and tensors a family has is in ``models/``, one file a family.
"""
