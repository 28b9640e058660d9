"""Orders as they are kept: what has to be known of one to remove it, or to find whose it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from core.orders import Order, OrderState


@dataclass(frozen=True, kw_only=True, slots=True)
class ArchivedOrder:
    """One order with the keys of all its rows."""

    order_id: str
    order: Order | None
    state: OrderState | None
    """None if the order was removed, and its history is left over from a crash; or if it cannot be read."""
    keys: Sequence[str]
    fault: str = ""
    """Why the order cannot be read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ArchivePage:
    """Some orders, the oldest first."""

    orders: Sequence[ArchivedOrder]
    continuation: str = ""
    """Where the next page begins; empty on the last one."""


class Archive(Protocol):
    """All orders by their age, and how they are removed. Every method raises `UnavailableError`."""

    buckets: Sequence[str]
    """The partitions over which orders are spread."""

    async def oldest(self, bucket: str, before: datetime | None, start: str) -> ArchivePage:
        """Return the oldest orders of the bucket, from `start` on if that is not empty.

        With `before`, only those that were made before that time: nothing that is younger is looked at.
        """

    async def remove(self, order: ArchivedOrder) -> None:
        """Remove all rows of an order: those that make it one in one transaction, and then its history.

        Nothing but whole orders is ever seen; a history that a crash leaves over is removed when it is met again.
        """

    async def place(self, bucket: str) -> str:
        """Return from where on whoever removes old orders goes on in the bucket; empty for its beginning."""

    async def go_on_from(self, bucket: str, place: str) -> None:
        """Remember that place, for any instance."""
