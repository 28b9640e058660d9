"""The operators' API: find the cause of an alert, repair it, resubmit the order (pattern.md, 9)."""
