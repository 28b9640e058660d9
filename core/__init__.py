"""The shared language of all roles: records, messages, ports, and the one way in which an order changes."""
