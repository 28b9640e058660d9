"""Simulated remote services that fail on demand, for local runs, tests and demonstrations.

They are never part of production.
"""
