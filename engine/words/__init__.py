"""Words for people: one catalogue of codes and their texts, in one file for each language.

The engine decides by codes, events and states. Words are made where people read them: on pages, on
the command line, in problem responses and in alerts.
"""
