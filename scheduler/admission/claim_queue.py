"""The orders that wait for a claim, in the sequence in which they get free slots (SCH-11).

Orders that need the same capability wait in the same queue. High priority comes before normal
priority, but every fifth turn belongs to normal priority. Within a priority, the order that has
waited longest comes first.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import chain, islice

from engine.domain.submitted_order import Priority
from engine.domain.work_index import NO_AGENT

NORMAL_PRIORITY_SHARE = 5
"""Every fifth claim takes an order of normal priority, if one waits, so that none starves."""

NEVER = datetime.min.replace(tzinfo=UTC)

ANNOUNCED_FOR = timedelta(seconds=5)
"""For this time, only the process that received an order's wake-up claims the order."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """An order that may be claimed."""

    order_id: str
    priority: Priority = Priority.NORMAL
    needs: str = NO_AGENT
    """The capability that the order needs."""
    since: datetime
    """When the order began to wait."""
    fresh: bool = False
    """Whether the wake-up was just sent. Then only the process that receives it claims the order.
    """


@dataclass(kw_only=True)
class ClaimQueue:
    """One queue for each capability."""

    _queues: dict[str, dict[str, Candidate]] = field(default_factory=dict)
    """The waiting orders by capability, in the sequence in which they get slots."""
    _turns: Counter[str] = field(default_factory=Counter)
    """How many orders were taken from each queue."""
    _announced: dict[str, datetime] = field(default_factory=dict)
    """When the wake-up of each order arrived here."""
    _skipped: dict[tuple[str, str | None], datetime] = field(default_factory=dict)
    """The orders that are skipped, in one queue or in all (None), with the end of the pause."""
    _redelivery_requested: bool = False
    """Whether a wake-up was scheduled again since the last refresh began."""

    def __contains__(self, order_id: str) -> bool:
        return any(order_id in queue for queue in self._queues.values())

    @property
    def needs(self) -> Sequence[str]:
        """The capabilities for which orders may wait."""
        return list(self._queues)

    def announce(self, candidate: Candidate, now: datetime) -> None:
        """Add an order behind those that the refresh found, unless it is already among them."""
        self._announced[candidate.order_id] = now
        self._append(candidate)

    def take(
        self, needs: str, slots: int | None, without_slot: datetime = NEVER
    ) -> Candidate | None:
        """Take the first order from a queue. None if no order may be taken.

        The order is one of the first `slots` orders, or of all if `slots` is None. If there is
        none, it is an order that has waited since before `without_slot`. A fresh order whose
        wake-up went to another process keeps its slot.
        """
        queue = self._queues[needs]
        first: Iterator[Candidate] = islice(queue.values(), slots)
        if without_slot > NEVER:
            waited = (candidate for candidate in queue.values() if candidate.since < without_slot)
            first = chain(first, waited)
        for candidate in first:
            if not candidate.fresh or candidate.order_id in self._announced:
                del queue[candidate.order_id]
                self._turns[needs] += 1
                return candidate
        return None

    def skip(self, order_id: str, until: datetime, needs: str | None = None) -> None:
        """Skip the order until this time, in the queue for `needs` or in all queues."""
        self._skipped[order_id, needs] = until

    def is_skipped(self, order_id: str, needs: str | None = None) -> bool:
        """Whether the order is skipped in all queues, or in the queue for `needs`."""
        return bool({(order_id, None), (order_id, needs)} & self._skipped.keys())

    def needs_redelivery(self, order_id: str) -> bool:
        """Whether the order waits, and no wake-up was scheduled again that would lead to it.

        One repeated wake-up is enough to lead this process to all waiting orders.
        """
        return order_id in self and not self._redelivery_requested

    def note_redelivery(self) -> None:
        """Record that a wake-up was scheduled again."""
        self._redelivery_requested = True

    def begin_refresh(self) -> None:
        """Forget the scheduled wake-up, because another one may be needed from now on."""
        self._redelivery_requested = False

    def refresh(self, waiting: Sequence[Candidate], began: datetime, now: datetime) -> None:
        """Rebuild the queues from these orders and those announced since the refresh began."""
        self._skipped = {name: until for name, until in self._skipped.items() if until > now}
        self._announced = {
            order_id: at
            for order_id, at in self._announced.items()
            if abs(now - at) < ANNOUNCED_FOR
        }
        # The refresh may have missed them.
        news = {order_id for order_id, at in self._announced.items() if at >= began}
        waited = list(chain.from_iterable(queue.values() for queue in self._queues.values()))
        self._queues = {}
        for needs in sorted({candidate.needs for candidate in waiting}):
            high, normal = (_lane(waiting, needs, priority) for priority in Priority)
            in_turns = _in_turns(high, normal, self._turns[needs])
            self._queues[needs] = {candidate.order_id: candidate for candidate in in_turns}
        for candidate in waited:
            if candidate.order_id in news:
                self._append(candidate)

    def _append(self, candidate: Candidate) -> None:
        self._queues.setdefault(candidate.needs, {}).setdefault(candidate.order_id, candidate)


def _lane(waiting: Iterable[Candidate], needs: str, priority: Priority) -> deque[Candidate]:
    """Return the waiting orders of a lane, the oldest first."""
    lane = (
        candidate
        for candidate in waiting
        if (candidate.needs, candidate.priority) == (needs, priority)
    )
    return deque(sorted(lane, key=lambda candidate: (candidate.since, candidate.order_id)))


def _in_turns(high: deque[Candidate], normal: deque[Candidate], taken: int) -> Iterator[Candidate]:
    """Yield high priority before normal, but a normal order at every fifth turn.

    `taken` is the number of earlier turns.
    """
    while high or normal:
        taken += 1
        is_turn_of_normal = taken % NORMAL_PRIORITY_SHARE == 0 or not high
        yield (normal if normal and is_turn_of_normal else high).popleft()
