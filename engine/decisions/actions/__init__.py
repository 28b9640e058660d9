"""The actions of operators on an order, one module for each action.

A module with a value `ACTION`, and its texts, are all that an action needs. Its route, command,
bulk action, button and dialog follow from that value.
"""
