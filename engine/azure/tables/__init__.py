"""Tables: one entity group transaction for each change, and one shape of query."""
