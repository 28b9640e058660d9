"""The orders that this process has written, each in its last written version.

A change may be decided on a remembered order without loading it, because the write checks its ETag.
A decision that writes nothing has no such check, so it may rest on outdated data.
"""

from collections import OrderedDict
from collections.abc import Iterator

from engine.domain.orders import OrderAggregate

MOST_ORDERS = 500
"""How many orders a process remembers. With the largest payloads they take about 60 MB."""


class OrderMemory:
    """Remembers open orders. If there are too many, the orders that were written last are kept."""

    def __init__(self, most: int = MOST_ORDERS) -> None:
        self._most = most
        self._orders: OrderedDict[str, OrderAggregate] = OrderedDict()

    def __iter__(self) -> Iterator[OrderAggregate]:
        """Yield the orders. The order that was written last comes last."""
        return iter(self._orders.values())

    def take(self, order_id: str) -> OrderAggregate | None:
        """Return the order if it is remembered, and forget it.

        So only one of several concurrent decisions uses the remembered order. The others load it.
        """
        return self._orders.pop(order_id, None)

    def put(self, order: OrderAggregate) -> None:
        """Remember the order in the version that was just written, or forget it if it has ended."""
        before = self._orders.pop(order.order_id, None)
        if order.has_ended:
            return
        newest = order if before is None or before.version < order.version else before
        self._orders[order.order_id] = newest
        if len(self._orders) > self._most:
            self._orders.popitem(last=False)
