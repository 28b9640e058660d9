"""Examples: two more businesses, a system that submits orders, and the simulated services.

Only `samples.simulator` is deployed.
"""
