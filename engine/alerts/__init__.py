"""Alerts for operators: the events that raise them, and the conditions that stay open."""
