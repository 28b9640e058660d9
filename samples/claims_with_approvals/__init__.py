"""Insurance claims, grown: people are asked, and the bank takes its time."""
