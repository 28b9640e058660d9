"""A business to start from. `python -m engine.workflow new` copies it."""
