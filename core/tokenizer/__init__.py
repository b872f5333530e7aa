"""Tokenizers: text to token ids and back, and the exact bytes of every token."""

from .files import load_tokenizer
from .tokenizer import Tokenizer
from .vocabulary import Vocabulary

__all__ = ["Tokenizer", "Vocabulary", "load_tokenizer"]
