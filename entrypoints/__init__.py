"""Code shared by the triggers of all roles: answers and errors over HTTP, outages, log lines."""
