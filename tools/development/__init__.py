"""What developers run of this app: on the embedded stack, under Core Tools, and the checks of its declaration."""
