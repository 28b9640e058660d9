"""Everything that is reusable: the records of an order, and the decisions about them."""
