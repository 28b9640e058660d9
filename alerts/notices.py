"""Sends notices from the agenda to the private queues of those who submitted orders (ALR-2)."""

import json
import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeGuard

from core import agenda, alerts, keys
from core.agenda import AgendaRow
from core.errors import QueueRefusedError, UnavailableError
from core.gathering import run_all
from core.messages import BusMessage
from core.ports import Bus, Clock, StateStore

log = logging.getLogger(__name__)

PAGE = 100

MOST_PAGES = 50
"""Of a bucket in one run: what is left waits for the next one."""

LONGEST_PAUSE = timedelta(minutes=5)


@dataclass(frozen=True, kw_only=True)
class NoticeService:
    """Sends at least once what was committed with a transition; a queue that takes none holds no other back."""

    store: StateStore
    bus: Bus
    clock: Clock
    buckets: int
    most_tries: int
    """After so many a notice is given up, and an operator told."""

    async def relay(self) -> int:
        """Send every notice that is due; return how many were found."""
        return sum(await run_all(self._relay_bucket(bucket) for bucket in keys.buckets(self.buckets)))

    async def _relay_bucket(self, bucket: str) -> int:
        """Go through what is due now, page by page, for as long as every queue answers."""
        start, end = agenda.due_notices(self.clock())
        found = 0
        for _ in range(MOST_PAGES):
            page = await self.store.agenda(bucket, start, end, PAGE)
            found += len(page)
            if not await self._relay_page(bucket, page) or len(page) < PAGE:
                break
            start = f"{page[-1].key} "
        return found

    async def _relay_page(self, bucket: str, page: Sequence[AgendaRow]) -> bool:
        """Send what can be sent and put off the rest; return whether every notice had an answer.

        Silence counts as a try where other queues answer, and this one does not. If none does the bus is away, and
        `UnavailableError` is raised.
        """
        outcomes = await run_all((self._send(bucket, *each) for each in _readable(page)), at_most=PAGE)
        silent = [fault for _, fault in outcomes if _is_silence(fault)]
        answering = {row.data["Queue"] for row, fault in outcomes if not _is_silence(fault)}
        await run_all(
            self._not_sent(bucket, row, fault, counts=_counts(row, fault, answering))
            for row, fault in outcomes
            if fault
        )
        if silent and not answering:
            raise silent[0]
        return not silent

    async def _send(self, bucket: str, row: AgendaRow, message: BusMessage) -> tuple[AgendaRow, Exception | None]:
        """Send a notice; return it with why it was not sent. Those for one queue travel together all the same."""
        try:
            await self.bus.send([message])
        except Exception as fault:  # noqa: BLE001 - whatever it is counts as a try of this notice, and of no other
            return row, fault
        await self.store.confirm(bucket, [row.key])
        return row, None

    async def _not_sent(self, bucket: str, row: AgendaRow, fault: Exception, *, counts: bool) -> None:
        """Try again later, with longer and longer pauses, or give the notice up."""
        now, tries = self.clock(), row.data["Tries"] + counts
        if not counts or tries < self.most_tries:
            await self.store.postpone(bucket, row.key, later(row, tries, now + pause(tries)))
            return
        log.warning("notices.given_up", extra={"order_id": row.order_id, "queue": row.data["Queue"]})
        await self.store.announce(bucket, alerts.notice_given_up(row.order_id, row.data["Queue"], str(fault), now))
        await self.store.confirm(bucket, [row.key])


def pause(tries: int) -> timedelta:
    """Return how long to wait after so many tries."""
    return timedelta(seconds=min(LONGEST_PAUSE.total_seconds(), 2**tries))


def later(row: AgendaRow, tries: int, at: datetime) -> AgendaRow:
    """Return the notice as it is owed from this time on."""
    return replace(row, key=agenda.notice_key(at, row.data["NoticeId"]), data={**row.data, "Tries": tries})


def _readable(page: Sequence[AgendaRow]) -> Iterator[tuple[AgendaRow, BusMessage]]:
    """Yield the notices that can be read, as they go over the bus; the others are logged, and wait to be mended."""
    for row in page:
        try:
            yield row, _message(row)
        except (LookupError, ValueError, TypeError, AttributeError):
            log.exception("notices.row_passed_over", extra={"row": row.key, "why": row.fault})


def _is_silence(fault: Exception | None) -> TypeGuard[UnavailableError]:
    """Whether there was no answer: the queue may be away, or the whole bus."""
    return isinstance(fault, UnavailableError) and not isinstance(fault, QueueRefusedError)


def _counts(row: AgendaRow, fault: Exception, answering: Collection[str]) -> bool:
    """Whether this was a try: an answer, or silence of this queue alone."""
    return not _is_silence(fault) or (bool(answering) and row.data["Queue"] not in answering)


def _message(row: AgendaRow) -> BusMessage:
    """Return the notice as it goes over the bus."""
    data = row.data
    body = {
        "orderId": row.order_id,
        "event": data["Event"],
        "at": data["At"].isoformat(),
        "sequence": data["Sequence"],
        "step": data.get("Step"),
        "reason": data.get("Reason"),
        "noticeId": data["NoticeId"],
    }
    return BusMessage(
        queue=data["Queue"],
        message_id=data["NoticeId"],
        correlation_id=row.order_id,
        body=json.dumps({name: value for name, value in body.items() if value is not None}, ensure_ascii=False),
    )
