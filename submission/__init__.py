"""Submission: takes order messages from the queue and records the orders (pattern.md, 3)."""
