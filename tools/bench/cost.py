"""The expected cost of an order. Tests compare the running system and the documents with it."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

IDLE_WRITES_PER_SECOND = 3
"""Writes without orders, for each agent: its health row, and every other second that of a sweep."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """The cost of an order with this many steps, if nothing fails and no other order shares its requests."""

    steps: int
    process_per_function: bool
    pairs: int = 0
    """Pairs of steps that run at the same time. The others run in sequence."""

    @property
    def transactions(self) -> int:
        """The transactions of an order: submitted, claimed, and one for each reply."""
        return 2 + self.steps

    @property
    def entities(self) -> int:
        """The number of entities that an order writes.

        At the submission, these are the order, its state, its history and a row of the work index. Each further write
        has the state, the history and two rows of the work index. The last write has one row of the work index, and a
        row that lists the order.
        """
        # The first reply of a pair moves one row of the work index: the other step still runs.
        return 4 + 4 * self.steps + 4 - self.pairs

    @property
    def messages(self) -> int:
        """The messages of an order: wake-up, requests, replies."""
        return 1 + 2 * self.steps

    @property
    def reads(self) -> int:
        """The loads of an order. A process does not load an order that it wrote last.

        With a process for each function, claims and replies load.
        """
        return 1 + self.steps if self.process_per_function else 0

    def limits(self, orders: int, seconds: float) -> Mapping[str, tuple[float, float]]:
        """Return the least and the most of each count for this many orders in this many seconds."""
        idle = ceil(IDLE_WRITES_PER_SECOND * self.steps * seconds)
        # The replies of a pair may meet. Then the later write meets a conflict, loads, and writes again.
        met = self.pairs * orders
        # A slot that its process does not know to be free: such orders wait once.
        again = 1.1 if self.process_per_function else 1
        least = {
            "table_writes": self.transactions * orders,
            "table_entities": self.entities * orders,
            "table_loads": self.reads * orders,
            "service_bus_messages": self.messages * orders,
        }
        return {
            "table_writes": (least["table_writes"], least["table_writes"] + met + idle),
            "table_entities": (least["table_entities"], least["table_entities"] + 4 * met + idle),
            "table_loads": (least["table_loads"], again * least["table_loads"] + met),
            "service_bus_messages": (
                least["service_bus_messages"],
                again * least["service_bus_messages"],
            ),
        }
