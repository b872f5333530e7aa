"""Recordings: a trace in a file, ``cutaway-trace/1``, a safetensors file that anyone can read.

``docs/recordings.md`` lists every tensor: those that are always there, the tables of what only the weights can say,
the compact candidates of the default capture, and the whole pass of the full one.
"""

from .load import load_recording
from .save import FORMAT, save_recording

__all__ = ["FORMAT", "load_recording", "save_recording"]
