"""Examples: a second business, and a system that submits orders to this deployment."""
