"""Optional behaviour of steps, one module for each feature.

Orders without a feature never call its module.
"""
