"""Makes stores and services from settings, business and adapters. `function_app.py` binds them."""
