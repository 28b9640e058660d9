"""What operators use: alerts, the API, the command line."""
