"""Notifications about external events, and the count of calls with a wrong callback URL."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from engine.decisions.transitions import HistoryEntry
from engine.domain.errors import TooManyTriesError
from engine.domain.orders import OrderAggregate
from engine.features.external_events.callback_urls import url_of
from engine.features.external_events.notifications import is_reminder, requests_in, until
from engine.ports import Clock

MOST_TRIES, WITHIN = 10, timedelta(minutes=10)
"""How many calls with a wrong URL one process accepts for an order within this time."""
MOST_ORDERS = 10_000
"""How many orders have a count of wrong calls at the same time."""


def notices(
    after: OrderAggregate, entry: HistoryEntry, address: str | None
) -> Iterator[tuple[str, dict[str, str | None]]]:
    """Yield the notifications that ask for external events, each with its callback URL (ANS-7).

    `address` is the public address of the app. Without it, notifications have no URLs.
    """
    for request, step in requests_in(after, entry):
        event = "answer-reminded" if is_reminder(request, step) else "answer-awaited"
        url = url_of(address, after.order_id, step)
        yield event, {"step": step.name, "until": until(step), "callbackUrl": url}


@dataclass(frozen=True, kw_only=True)
class WrongTries:
    """Counts the calls with a wrong URL to each order, so that guessing reads no rows.

    The count is in memory, because a row for each call would cost more than the call.
    """

    clock: Clock
    _times: dict[str, deque[datetime]] = field(default_factory=dict, init=False)

    def check(self, order_id: str) -> None:
        """Raise `TooManyTriesError` if an order had too many wrong calls recently."""
        times = self._times.get(order_id)
        if times and len(times) == MOST_TRIES and self.clock() - times[0] < WITHIN:
            raise TooManyTriesError

    def add(self, order_id: str) -> None:
        """Count a wrong call.

        With too many orders, forget the one whose last call is the oldest.
        """
        times = self._times.pop(order_id, None) or deque(maxlen=MOST_TRIES)
        times.append(self.clock())
        self._times[order_id] = times
        if len(self._times) > MOST_ORDERS:
            del self._times[next(iter(self._times))]
