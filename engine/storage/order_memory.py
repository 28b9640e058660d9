"""The orders that this process has written, each as it wrote it last.

A change may be decided on one of them without a load, since the ETag of the write judges it. A
decision that writes nothing has no such judge: it may hold no more.
"""

from collections import OrderedDict
from collections.abc import Iterator

from engine.domain.orders import OrderAggregate

MOST_ORDERS = 500
"""How many orders a process remembers; with payloads of the largest size that is about 60 MB."""


class OrderMemory:
    """Remembers open orders, up to a number; of more, those that were written last."""

    def __init__(self, most: int = MOST_ORDERS) -> None:
        self._most = most
        self._orders: OrderedDict[str, OrderAggregate] = OrderedDict()

    def __iter__(self) -> Iterator[OrderAggregate]:
        """Yield the orders, the one that was written last at the end."""
        return iter(self._orders.values())

    def take(self, order_id: str) -> OrderAggregate | None:
        """Return the order, if it is remembered, and forget it.

        So of several decisions on one order at the same time a single one is made on it, and the
        others read what is stored.
        """
        return self._orders.pop(order_id, None)

    def put(self, order: OrderAggregate) -> None:
        """Remember the order as it was just written; one that has ended is forgotten."""
        before = self._orders.pop(order.order_id, None)
        if order.has_ended:
            return
        newest = order if before is None or before.version < order.version else before
        self._orders[order.order_id] = newest
        if len(self._orders) > self._most:
            self._orders.popitem(last=False)
