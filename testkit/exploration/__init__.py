"""Every interleaving of a small world, on the shipped code."""
