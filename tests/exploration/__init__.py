"""Every interleaving of small worlds, on the shipped code (design: exhaustive exploration)."""
