"""What is kept of external events alone: the notices about them, and the calls with a wrong URL."""

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
"""How many calls with a wrong URL to one order are read in this time, by one process."""
MOST_ORDERS = 10_000
"""For how many orders wrong calls are counted at a time."""


def notices(
    after: OrderAggregate, entry: HistoryEntry, address: str | None
) -> Iterator[tuple[str, dict[str, str | None]]]:
    """Yield the notices to the sender of what is awaited, each with its callback URL (ANS-7).

    The app is at this address; without one there are no URLs.
    """
    for request, step in requests_in(after, entry):
        event = "answer-reminded" if is_reminder(request, step) else "answer-awaited"
        url = url_of(address, after.order_id, step)
        yield event, {"step": step.name, "until": until(step), "callbackUrl": url}


@dataclass(frozen=True, kw_only=True)
class WrongTries:
    """Counts the calls with a wrong URL to each order, so that guessing reads no rows.

    The count is in memory: a row for each try would cost more than the try itself.
    """

    clock: Clock
    _times: dict[str, deque[datetime]] = field(default_factory=dict, init=False)

    def check(self, order_id: str) -> None:
        """Raise `TooManyTriesError` if there were too many lately."""
        times = self._times.get(order_id)
        if times and len(times) == MOST_TRIES and self.clock() - times[0] < WITHIN:
            raise TooManyTriesError

    def add(self, order_id: str) -> None:
        """Count one more; if there are many orders, the one counted longest ago is forgotten."""
        times = self._times.pop(order_id, None) or deque(maxlen=MOST_TRIES)
        times.append(self.clock())
        self._times[order_id] = times
        if len(self._times) > MOST_ORDERS:
            del self._times[next(iter(self._times))]
