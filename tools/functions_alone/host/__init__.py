"""The embedded Azure Functions host: it runs the functions of `function_app.py` without Azure's tools."""
