"""The commands of `operators`, by subject. Each module lists its own commands in `COMMANDS`."""
