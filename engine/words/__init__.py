"""Words for people: one catalogue of codes and their words, in one file for each language.

The engine decides by codes, events and states. Words are made where people read them: on pages, in
the command line, in problem answers and in alerts.
"""
