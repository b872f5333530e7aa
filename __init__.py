"""Cutaway: see inside a language model while it writes."""
