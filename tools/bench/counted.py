"""What an order took, as counted by `make bench`, from the lines in measured/."""

# ruff: noqa: RUF001 - a dash begins what is a part of the requests

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

MEASURED = Path(__file__).parent / "measured"
VARIANTS = {"1-step": "1 step", "3-step": "3 steps", "shop": "shop"}
"""The measured variants by file name, with their names in the table."""
SHAPES = ("one", "each")
RATE, SECONDS = 4, 30
"""The orders per second, and the seconds."""

COUNTS = {
    "requests to tables": "table_transactions",
    "– transactions": "table_writes",
    "– loads of an order": "table_loads",
    "– looks at open orders, and polls": "table_look_queries",
    "– sweeps, relay, stall detector": "other_queries",
    "– reads of single rows": "table_point_reads",
    "rows written": "table_entities",
    "rows that queries of orders return": "table_entities_read",
    "Service Bus messages sent": "service_bus_messages",
    "Service Bus messages received": "service_bus_received",
    "bytes of the messages sent": "service_bus_bytes",
    "Storage Queue: submissions put": "storage_queue_operations",
    "Storage Queue: gets and deletes by the host": "host_storage_queue_operations",
    "CPU of the app, ms": "client_cpu_ms",
}


def measured(variant: str, shape: str) -> Mapping[str, Any]:
    """Return the figures of an order, with all functions in `one` process or a process for `each`."""
    line = json.loads((MEASURED / f"{variant}.json").read_text())
    return dict(line["each"] if shape == "each" else line)


def counts_of(figures: Mapping[str, Any], prefix: str = "latency_") -> Mapping[str, float]:
    """Return the counts of the table from the figures with this prefix."""
    others = figures[f"{prefix}table_agenda_queries"] - figures[f"{prefix}table_look_queries"]
    counts = {**figures, f"{prefix}other_queries": others}
    return {what: counts[f"{prefix}{name}"] for what, name in COUNTS.items()}


def columns() -> Sequence[tuple[str, str]]:
    """Return the variant and the shape of each column."""
    return list(product(VARIANTS, SHAPES))


def count_rows() -> Sequence[str]:
    """Return the head of the table, and a row for each count."""
    all_columns = [counts_of(measured(*column)) for column in columns()]
    titles = [f"{VARIANTS[variant]}, {shape}" for variant, shape in columns()]
    rows = [row(what, (number(counts[what]) for counts in all_columns)) for what in COUNTS]
    return [row("an order of", titles), "|---|" + "---|" * len(titles), *rows]


def row(what: str, cells: Iterable[str]) -> str:
    return f"| {what} | {' | '.join(cells)} |"


def number(count: float) -> str:
    """Return a count with at most one decimal."""
    return f"{abs(round(count, 1)):,.1f}".removesuffix(".0")
