"""The stores, each on one table, and the one way in which an order changes."""
