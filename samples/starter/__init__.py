"""A business to begin with: `python -m engine.workflow new` copies it."""
