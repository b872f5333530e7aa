"""The errors Cutaway tells people about: one sentence that says what, where and what to do."""


class CutawayError(Exception):
    """Something a person can act on.

    Its text reads ``WHAT (WHERE); HINT``. It is shown as it stands, without a traceback, so each part is
    written for the person at the terminal: *what* went wrong, *where* (a file, a tensor, a field), and a
    *hint* that says what to do about it.
    """

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None) -> None:
        self.what = what
        self.where = where
        self.hint = hint
        super().__init__(what + (f" ({where})" if where else "") + (f"; {hint}" if hint else ""))


class ModelError(CutawayError):
    """A model that cannot be opened or run: absent, broken, unsupported, or asked for too much."""


class UsageError(CutawayError):
    """Options that contradict each other, or ask for nothing."""


class RecordingError(CutawayError):
    """A recording that cannot be written or read back."""
