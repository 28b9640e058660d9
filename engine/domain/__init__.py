"""The records of an order, their states and transitions. Pure: no I/O, no clock."""
