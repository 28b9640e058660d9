"""Sends the rows of the outbox: events to Event Grid, and notifications to private queues."""

# The pattern in an hour, 23 of 23: the relay

import logging
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from engine.concurrency import results_of, run_all, settle_all
from engine.decisions.transitions import OperatorEvent
from engine.domain.errors import UnavailableError
from engine.domain.messages import BusMessage
from engine.domain.work_index import IndexRow
from engine.ports import Bus, Clock, EventPublisher
from engine.storage import outbox
from engine.storage.orders import OrderStore
from engine.words.alerts import event_in_words, notice_in_words
from operations.alerts import rules
from operations.alerts.rules import Delivery

log = logging.getLogger(__name__)

PAGE = 100
"""How many rows are read, sent and confirmed together."""

Waiting = tuple[IndexRow, OperatorEvent | BusMessage]
"""A row of the outbox with its content."""

Way = Callable[[str, Sequence[Waiting]], Awaitable[list[Delivery]]]
"""Sends those rows of a bucket that belong to one kind of destination."""


@dataclass(frozen=True, kw_only=True)
class Relay:
    """Sends the rows that were committed with a transition, at least once (ALR-1, ALR-2).

    No crash can lose a row.
    """

    store: OrderStore
    publisher: EventPublisher
    bus: Bus
    clock: Clock
    max_tries: int
    """After this many attempts a notification is dropped, with an alert."""

    async def relay(self) -> None:
        """Send the due rows of all buckets. Raises the failures at the end.

        The failure is `UnavailableError` if Event Grid or the bus did not answer at all.
        """
        await run_all(map(self._relay_bucket, self.store.buckets))

    async def _relay_bucket(self, bucket: str) -> None:
        """Send the due rows of a bucket page by page.

        Destinations that have not answered are skipped on the following pages. So is Event Grid or
        the bus if none of its destinations has answered.
        """
        start, end = outbox.due(self.clock())
        ways: list[Way] = [self._to_operators, self._to_senders]
        failures: list[Exception] = []
        silent: set[str] = set()
        page = None
        while ways and (page is None or len(page) == PAGE):
            page = await self.store.work_items(bucket, start, end, PAGE)
            start = f"{page[-1].key} " if page else end
            waiting = [entry for entry in _readable(page) if entry[0].data["To"] not in silent]
            answers = await settle_all(self._relay_page(bucket, way, waiting) for way in ways)
            answering = []
            for way, answer in zip(ways, answers, strict=True):
                if not isinstance(answer, UnavailableError):
                    answering.append(way)
                if isinstance(answer, Exception):
                    failures.append(answer)
                else:
                    silent |= answer
            ways = answering
        results_of(failures)

    async def _relay_page(self, bucket: str, way: Way, waiting: Sequence[Waiting]) -> set[str]:
        """Send rows to their destinations and postpone failed ones. Return the silent destinations.

        Raises `UnavailableError` if no destination has answered.
        """
        deliveries = await way(bucket, waiting)
        if sent := [row.key for row, fault in deliveries if fault is None]:
            await self.store.confirm(bucket, sent)
        answered = rules.answered(deliveries)
        await run_all(
            (self._not_sent(bucket, row, fault, answered) for row, fault in deliveries if fault),
            at_most=PAGE,
        )
        silence = {row.data["To"]: fault for row, fault in deliveries if rules.is_silence(fault)}
        if silence and not answered:
            raise next(iter(silence.values()))
        return set(silence)

    async def _to_operators(self, bucket: str, waiting: Sequence[Waiting]) -> list[Delivery]:
        """Publish the events. Each is postponed before, so that no other run repeats it too soon.

        This includes runs at the same time, and runs after one that was interrupted.
        """
        events = [(row, content) for row, content in waiting if isinstance(content, OperatorEvent)]
        mine = await run_all(
            (self._put_off(bucket, row, event) for row, event in events), at_most=PAGE
        )
        return await self._publish([postponed for postponed in mine if postponed])

    async def _put_off(
        self, bucket: str, row: IndexRow, event: OperatorEvent
    ) -> tuple[IndexRow, OperatorEvent] | None:
        """Postpone the row, and return it. None if another run took it first."""
        tries = outbox.tries_of(row) + 1
        later = outbox.postponed(row, self.clock() + rules.pause(tries), tries)
        return (later, event) if await self.store.postpone(bucket, row.key, later) else None

    async def _publish(self, events: Sequence[tuple[IndexRow, OperatorEvent]]) -> list[Delivery]:
        """Publish the events in one batch. If the batch is refused, publish each event alone."""
        if not events:
            return []
        in_words = [event_in_words(event) for _, event in events]
        (fault,) = await settle_all([self.publisher.publish(in_words)])
        if fault and len(events) > 1 and not rules.is_silence(fault):
            alone = await run_all(self._publish([event]) for event in events)
            return [delivery for (delivery,) in alone]
        return [(row, fault) for row, _ in events]

    async def _to_senders(self, _bucket: str, waiting: Sequence[Waiting]) -> list[Delivery]:
        """Send each notification. The bus batches those for the same queue."""
        notices = [(row, content) for row, content in waiting if isinstance(content, BusMessage)]
        sending = (self.bus.send([notice_in_words(notice)]) for _, notice in notices)
        faults = await settle_all(sending, at_most=PAGE)
        return [(row, fault) for (row, _), fault in zip(notices, faults, strict=True)]

    async def _not_sent(
        self, bucket: str, row: IndexRow, fault: Exception, answered: Collection[str]
    ) -> None:
        if counts := rules.counts(row, fault, answered):
            log.warning(
                "outbox.not_sent", extra={"row": row.key, "to": row.data["To"], "why": str(fault)}
            )
        if outbox.is_notice(row):
            successor = rules.successor(row, fault, self.clock(), self.max_tries, counts=counts)
            await self.store.postpone(bucket, row.key, successor)


def _readable(page: Sequence[IndexRow]) -> Iterator[Waiting]:
    """Yield each readable row with its content.

    An unreadable row is logged and stays for repair.
    """
    for row in page:
        try:
            yield row, outbox.content_of(row)
        except (LookupError, ValueError, TypeError):
            log.exception("outbox.row_passed_over", extra={"row": row.key, "why": row.fault})
