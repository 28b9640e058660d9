"""What a host and its workers have done, in files that outlive them: counts, and the processed orders."""

import mmap
import os
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

NAMES = (
    "table_writes",
    "table_entities",
    "table_loads",
    "table_point_reads",
    "table_agenda_queries",
    "table_look_queries",
    "table_entities_read",
    "looks",
    "simulator_table_requests",
    "storage_queue_operations",
    "blob_operations",
    "event_grid_operations",
    "service_bus_sends",
    "service_bus_messages",
    "service_bus_bytes",
    "remote_calls",
    "host_storage_queue_receives",
    "host_storage_queue_deletes",
    "host_storage_queue_renewals",
    "host_service_bus_receives",
    "host_service_bus_settlements",
    "host_service_bus_renewals",
)
SUFFIX = ".counters"
MARKS = "processed"


class Counters:
    """Writes counts to a mapped file of this process. It makes no system call, and survives SIGKILL."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._place = {name: place for place, name in enumerate(NAMES)}
        self._open()
        os.register_at_fork(
            after_in_child=self._open
        )  # two processes that share one would lose counts

    def add(self, name: str, amount: int = 1) -> None:
        """Add to a count. Raises KeyError for a name that is not in `NAMES`."""
        self._slots[self._place[name]] += amount

    def _open(self) -> None:
        with (self._folder / f"{os.getpid()}{SUFFIX}").open("w+b") as file:
            file.truncate(8 * len(NAMES))
            self._slots = memoryview(mmap.mmap(file.fileno(), 0)).cast("Q")


def totals(folder: Path) -> Counter[str]:
    """Return the counts of all hosts so far."""
    total: Counter[str] = Counter()
    for path in folder.glob(f"*{SUFFIX}"):
        total.update(dict(zip(NAMES, memoryview(path.read_bytes()).cast("Q"), strict=True)))
    return total


class Marks:
    """Appends each order when its `Processed` is durable."""

    def __init__(self, folder: Path) -> None:
        self._file = os.open(folder / MARKS, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def add(self, order_id: str) -> None:
        """Write the order with the present time."""
        os.write(self._file, f"{order_id} {time.time():.6f}\n".encode())


def marked(folder: Path) -> Mapping[str, float]:
    """Return when each order was processed, in Unix seconds."""
    path = folder / MARKS
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    whole = (
        line.split() for line in lines if line.endswith("\n")
    )  # the last one may be half written
    return {order_id: float(at) for order_id, at in whole}
