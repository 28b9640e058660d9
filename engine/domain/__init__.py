"""The records of an order, their states and their transitions. Pure code: no I/O and no clock."""
