"""Explores every interleaving of a small world, on the shipped code."""
