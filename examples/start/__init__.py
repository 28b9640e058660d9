"""A business to begin with: `python -m flow new` copies it."""
