"""The operators' tools: alerts, the API, the console and the command line."""
