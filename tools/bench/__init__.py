"""The benchmark of the embedded stack: what an order costs, and a crash (`python -m bench --help`)."""
