"""The frame of every function: outages, time limits, log lines, messages that cannot be read."""
