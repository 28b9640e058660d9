"""Agents: one per remote service; each wraps the calls to it, with retries, within a deadline (pattern.md, 5)."""
