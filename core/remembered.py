"""The orders that a process wrote or read last: to decide on one saves a read.

What is remembered may be out of date, so it proves nothing. `Transitions` believes it only as far as a change that was
decided on it could be written under its ETag.
"""

from core.orders import ProcessState, Snapshot

MOST = 2_000
"""Several times what a scheduler has open at its agents. An order of four steps takes about 6 KB, so this is 12 MB."""

ENDED = (ProcessState.PROCESSED, ProcessState.ERROR)


class Remembered:
    """At most `most` orders; of more, those are forgotten that were kept longest ago."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._orders: dict[str, Snapshot] = {}

    def keep(self, order: Snapshot) -> None:
        """Remember the order in the place of what was known of it; not one that has ended, which nobody handles."""
        self.take(order.order_id)
        if order.state.process_state in ENDED:
            return
        self._orders[order.order_id] = order
        if len(self._orders) > self._most:
            del self._orders[next(iter(self._orders))]

    def take(self, order_id: str) -> Snapshot | None:
        """Return the order, and forget it: whoever finds out how it stands now keeps that."""
        return self._orders.pop(order_id, None)

    def look(self, order_id: str) -> Snapshot | None:
        """Return the order as it was when it was kept; None if it is not remembered."""
        return self._orders.get(order_id)
