"""Alerts: sends the rows of the outbox, and records the alerts that arrive (pattern.md, 8)."""
