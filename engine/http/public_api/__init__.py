"""Customers: takes orders of any business, shows how far they are, and cancels them in time."""
