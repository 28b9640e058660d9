"""What is kept, each store on one table (`stores/tables.py`): orders, and the one way to change them, and what is beside."""
