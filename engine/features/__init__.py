"""Optional behaviour of a step, one module for each: an order without it never calls its module."""
