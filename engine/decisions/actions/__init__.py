"""What operators do to an order: one module for each action.

A module with a value `ACTION` is all that an action needs beside its words: its route, its command,
its bulk action, its button and its dialog follow from that value.
"""
