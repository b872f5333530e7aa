"""Checkpoints: finding a model, reading its files, understanding its configuration.

The way from a name to weights, one module a step::

    path = locate("fable")                  # locate: a path, an embedded name, a hub id
    config = read_config(path)              # families: config.json in normalised keys
    checkpoint = open_checkpoint(path)      # open: the tensors that lie in the files, and where
    weights = bind(checkpoint, config)      # families: canonical name -> float32 array, all checked
"""
