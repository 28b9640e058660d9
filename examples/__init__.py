"""Examples: another business than that of this deployment, and a system that submits to it."""
