"""Operators: they look into an alert, mend its cause and resubmit the order (pattern.md, 9)."""
