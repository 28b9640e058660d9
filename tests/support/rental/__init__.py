"""The business of rental."""
