"""The trace at the cursor, as the widgets want it: arrays and drawable texts. Only here both are known."""
