"""Agents: each wraps the calls to one remote service, with a deadline (pattern.md, 5)."""
