"""Insurance claims: a second business on the same engine."""
