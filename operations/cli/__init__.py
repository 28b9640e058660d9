"""The operators' command line, which uses only their HTTP API."""
