"""The operators' command line: it knows their API over HTTP, and nothing of the app."""
