"""Orders as they are kept: what has to be known of one to remove it, or to find whose it is."""

from collections.abc import Sequence
from dataclasses import dataclass

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
