"""The stores, each on one table (`stores/tables.py`), and the one way in which an order changes."""
