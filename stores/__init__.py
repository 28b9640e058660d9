"""What is kept beside the orders, each store on one table (`core/tables.py`): the same on Azure and in memory."""
