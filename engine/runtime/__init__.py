"""The frame of every function: outages, time limits, log lines and unreadable messages."""
