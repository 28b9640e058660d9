"""Agents: each calls one remote service, within the complete-by time (pattern.md, 5)."""
