"""Alerts: sends what transitions left in the outbox, and records what reached the operators (pattern.md, 8)."""
