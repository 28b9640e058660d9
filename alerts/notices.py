"""Sends notices from the agenda to the private queues of those who submitted orders (ALR-2)."""

import json
import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

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


Rows = Sequence[AgendaRow]


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

    async def _relay_page(self, bucket: str, page: Rows) -> bool:
        """Send what can be sent and put off the rest; return whether every queue answered.

        If none did the bus is away: that is no try that counts, and `UnavailableError` is raised.
        """
        by_queue: dict[str, list[AgendaRow]] = defaultdict(list)
        for row in page:
            by_queue[row.data["Queue"]].append(row)
        outcomes = await run_all(self._send(bucket, rows) for rows in by_queue.values())
        silent = [fault for _, fault in outcomes if fault and not isinstance(fault, QueueRefusedError)]
        away = bool(silent) and len(silent) == len(outcomes)
        for rows, fault in outcomes:
            if fault:
                await run_all(self._not_sent(bucket, row, fault, counts=not away) for row in rows)
        if away:
            raise silent[0]
        return not silent

    async def _send(self, bucket: str, rows: Rows) -> tuple[Rows, UnavailableError | None]:
        """Send the notices for one queue; return them with why it did not take them all."""
        try:
            await self.bus.send([_message(row) for row in rows])
        except UnavailableError as fault:
            return rows, fault
        await self.store.confirm(bucket, [row.key for row in rows])
        return rows, None

    async def _not_sent(self, bucket: str, row: AgendaRow, fault: UnavailableError, *, counts: bool) -> None:
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
