"""Supervisor: finds steps that timed out, and gives the order back or up (pattern.md, 6).

It knows no workflow.
"""
