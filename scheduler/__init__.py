"""Scheduler: claims orders and drives their workflow through the agents (pattern.md, 4)."""
