"""Submission: takes order messages off the queue and records each order with its state (pattern.md, 3)."""
