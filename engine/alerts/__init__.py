"""Alerts for operators: which events raise one, and how open ones are kept."""
