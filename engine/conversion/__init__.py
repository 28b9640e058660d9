"""Converts the records of today (`core.orders`) to those of `engine.domain`, and decisions back.

It is temporary, and goes as a whole once the rows of an order hold the new records. Until then a
role loads a record of today, decides on the new one, and writes a record of today.
"""
