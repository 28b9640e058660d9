"""Submission: takes order messages off the queue and records the orders (pattern.md, 3)."""
