"""GGUF: one file that holds a model's tensors, its configuration and its tokenizer.

The way to a model, one module a step::

    stored = open_gguf(path)                    # checkpoint: the header, and tensors that dequantise when asked for
    fields = config_fields(stored)              # config: the config.json that the model was converted from
    checkpoint = converted(stored, layout, …)   # conversion: the tensors as the family's own files have them
    tokenizer = load_tokenizer(stored, size)    # tokenizer: the tokenizer.json that it was converted from

What the format is: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. The ``gguf`` package reads headers and
dequantises; it is imported by whoever opens such a file, and by nobody else.
"""
