"""What triggers of several roles share: how answers and errors look on the wire, outages, log lines."""
