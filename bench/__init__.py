"""The benchmark: the peers' job on the embedded stack, with what each order costs (`python -m bench --help`)."""
