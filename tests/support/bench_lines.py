"""Lines of `make bench`."""

COMPARED = (
    "table_transactions",
    "table_writes",
    "table_entities",
    "table_agenda_queries",
    "table_look_queries",
    "looks",
    "service_bus_messages",
    "service_bus_received",
    "storage_queue_operations",
    "remote_calls",
)
"""What the model of `tools/bench/simulation.py` says of an order."""

WITHIN = 0.1


def counts_of(line, per_function):
    """What an order cost at a fixed rate, with one process or with one for each function, and how many were counted."""
    figures = line["each"] if per_function else line
    return {name: figures[f"latency_{name}"] for name in COMPARED} | {"orders": figures["samples"]}
