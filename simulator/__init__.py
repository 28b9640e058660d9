"""Simulated remote services that fail on demand, for local runs, tests and demonstrations; never in production."""
