"""The shared language of all roles: records, messages, ports."""
