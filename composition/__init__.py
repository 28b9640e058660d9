"""Puts the roles together: what each service is given, and which functions it is bound to."""
