"""Drawing: arrays and token texts in terminal cells. Knows no engine."""
