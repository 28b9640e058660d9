"""Tables: one entity group transaction for each change, and one kind of query."""
