"""The files Cutaway brings along: the embedded model."""
