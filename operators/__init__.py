"""Operators: who is alerted looks here, finds out why, mends the cause and resubmits (pattern.md, 9)."""
