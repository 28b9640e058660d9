"""The commands of `operators`, by subject. Each module lists its own in `COMMANDS`."""
