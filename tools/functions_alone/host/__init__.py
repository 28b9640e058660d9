"""The embedded Azure Functions host: drives the functions of `function_app.py` without Azure's tools."""
