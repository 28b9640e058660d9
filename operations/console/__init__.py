"""The operators' console, as static files without a build step."""
