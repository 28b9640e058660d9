"""The reusable part: the records of an order, the decisions about them, and the runtime."""
