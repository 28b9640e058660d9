"""The decisions about orders: pure functions from an order to its next version."""
