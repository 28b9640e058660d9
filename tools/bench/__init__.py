"""The benchmark: orders through the embedded stack, what each costs, and a crash (`python -m bench --help`)."""
