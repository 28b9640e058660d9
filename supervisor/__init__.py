"""Supervisor: finds steps that timed out, and retries, undoes or ends their orders (pattern.md, 6).

It knows no workflow.
"""
