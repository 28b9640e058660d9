"""Tables: one entity group transaction for each change, one shape of query, and what each table keeps."""
