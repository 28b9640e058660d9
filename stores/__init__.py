"""What is kept beside the orders, each store on one table (`stores/tables.py`): the same on Azure and in memory."""
