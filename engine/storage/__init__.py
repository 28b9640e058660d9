"""The stores, each on one table, and the unit of work by which orders change."""
