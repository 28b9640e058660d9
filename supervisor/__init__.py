"""Supervisor: finds what timed out and asks for another try, or gives up (pattern.md, 6). It knows no workflow."""
