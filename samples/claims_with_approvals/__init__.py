"""Insurance claims with external events: people are asked, and the bank answers later."""
