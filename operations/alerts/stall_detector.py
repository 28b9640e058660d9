"""Raises alerts, on its own timer, when orders or submissions wait for long, or no sweep runs.

Implements SUP-7. Everything that stands still for the same cause is one condition and one alert.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain

from engine.alerts import conditions
from engine.alerts import events as alerts
from engine.alerts.conditions import MAX_ORDERS, Condition, ConditionStatus, StallFinding
from engine.concurrency import results_of, settle_all
from engine.domain import keys, work_index
from engine.domain.causes import Cause, Code
from engine.domain.errors import ConflictError
from engine.domain.work_index import IndexRow, WorkItemKind
from engine.ports import Clock, TextQueue
from engine.storage.agent_health import (
    KEPT,
    AgentHealth,
    AgentHealthLog,
    pause_of,
    unresponsive_since,
)
from engine.storage.bucket_reader import PAGE, BucketReader
from engine.storage.conditions import ConditionLog
from engine.storage.orders import OrderStore
from engine.storage.sweeps import SweepLog

log = logging.getLogger(__name__)

LONGEST_STANDSTILL = timedelta(hours=24)
"""An order on hold, or a paused agent, may have been forgotten after this time."""

LONGEST_START = timedelta(minutes=1)
"""The longest time to the first sweep after the whole system stopped, even if locks remain."""


LEVELS = {
    ConditionStatus.NEW: logging.ERROR,
    ConditionStatus.CHANGED: logging.WARNING,
    ConditionStatus.RESOLVED: logging.INFO,
}


@dataclass(kw_only=True)
class StallDetector:
    """Looks for orders, submissions, agents and sweeps that stand still, and raises alerts."""

    store: OrderStore
    conditions: ConditionLog
    sweeps: SweepLog
    submissions: TextQueue
    agent_health: AgentHealthLog
    offers: Mapping[str, Sequence[str]]
    """The agents that offer each capability."""
    checked: Sequence[WorkItemKind]
    """The kinds of work items that a sweep checks when they are due."""
    clock: Clock
    pending_alert_after: timedelta
    """How long an order may be claimable or overdue before an alert is raised."""
    sweep_alert_after: timedelta

    async def check(self) -> timedelta:
        """Raise alerts. Return and log the longest wait of an order for its claim.

        If a bucket cannot be read, `UnavailableError` is raised at the end. Then no condition ends,
        because its orders may be in that bucket.
        """
        now = self.clock()
        waiting: list[IndexRow] = []
        readings = await settle_all(
            self._read_bucket(bucket, now, waiting) for bucket in self.store.buckets
        )
        unserved, paused_until = set[str](), dict[str, datetime]()
        others = [
            self._sweeps(now),
            self._submissions(now),
            self._agents(now, unserved, paused_until),
        ]
        for bucket in self.store.buckets:
            others += [self._not_recovered(bucket, now), self._held_for_long(bucket, now)]
        standing = await settle_all(others)
        waits = {row.key: now - _ready_since(row, paused_until) for row in waiting}
        late = [row for row in waiting if waits[row.key] > self.pending_alert_after]
        found = list(_waiting(row for row in late if _needs(row) not in unserved))
        for outcome in standing:
            if not isinstance(outcome, Exception):
                found += outcome
        outcomes: list[object] = [*readings, *standing]
        is_whole = not any(isinstance(outcome, Exception) for outcome in outcomes)
        await self._settle(found, now, is_whole=is_whole)
        results_of(outcomes)
        longest = max([timedelta(), *waits.values()])
        log.info("orders.waiting", extra={"longest_seconds": longest.total_seconds()})
        return longest

    async def _read_bucket(self, bucket: str, now: datetime, waiting: list[IndexRow]) -> None:
        """Add the first due orders of each lane to `waiting`.

        An order that has been ready since a time far ahead was changed by a process whose clock is
        ahead. Its waiting time is unknown, so it counts as late.
        """
        late, ahead = now - self.pending_alert_after, now + self.pending_alert_after

        def is_late(row: IndexRow) -> IndexRow | None:
            if work_index.is_ready_after(row, ahead):
                row = work_index.waiting_since(row, late - timedelta.resolution)
            due = _due(row)
            if due is None:
                return None
            if due <= now:
                waiting.append(row)
            return row if due < late else None

        reader = BucketReader(
            store=self.store, bucket=bucket, due=late, choose=is_late, passed_over=(late, ahead)
        )
        await reader.at_pending()

    async def _agents(
        self, now: datetime, unserved: set[str], paused_until: dict[str, datetime]
    ) -> list[StallFinding]:
        """Return the agents that have been silent or paused for too long.

        Add to `unserved` the capabilities that only silent or paused agents offer. The orders that
        wait for these are not reported one by one. Add to `paused_until` each capability whose
        agents operators have all paused, now or recently, with the end of the first pause.
        """
        health = await self.agent_health.since(now - KEPT)
        agents = dict.fromkeys(chain.from_iterable(self.offers.values()))
        since_when = {agent: unresponsive_since(health, agent, now) for agent in agents}
        silent = {agent: since for agent, since in since_when.items() if since}
        paused = {agent: pause for agent in agents if (pause := pause_of(health, agent, now))}
        pauses_end = {
            row.agent: row.operator_pause_until for row in health if row.operator_pause_until
        }
        for capability, offering in self.offers.items():
            if silent.keys() | paused.keys() >= set(offering):
                unserved.add(capability)
            if pauses_end.keys() >= set(offering):
                paused_until[capability] = min(pauses_end[agent] for agent in offering)
        return [*self._silent_for_long(silent, now), *self._agents_paused_for_long(paused, now)]

    def _silent_for_long(
        self, silent: Mapping[str, datetime], now: datetime
    ) -> Iterator[StallFinding]:
        for agent, since in silent.items():
            if now - since > self.pending_alert_after:
                reason = Cause(Code.REQUESTS_NOT_TAKEN, {"agent": agent})
                yield StallFinding(key=f"{alerts.ABOUT_AGENT}{agent}", reason=reason, since=since)

    def _agents_paused_for_long(
        self, paused: Mapping[str, AgentHealth], now: datetime
    ) -> Iterator[StallFinding]:
        for agent, pause in paused.items():
            if now - pause.at > LONGEST_STANDSTILL:
                reason = Cause(Code.PAUSED_FOR_LONG, {"agent": agent})
                yield StallFinding(
                    key=f"{alerts.ABOUT_AGENT}{agent}", reason=reason, since=pause.at
                )

    async def _sweeps(self, now: datetime) -> list[StallFinding]:
        last = await self.sweeps.last()
        since = last.at if last else await self.sweeps.awaited_since(now)
        if now - since <= self.sweep_alert_after:
            return []
        if last:
            missed = now - await self.sweeps.missed_since(last, now)
            if missed < min(self.sweep_alert_after, LONGEST_START):
                return []
        return [StallFinding(key=alerts.SUPERVISOR, reason=Cause(Code.NO_SWEEP), since=since)]

    async def _submissions(self, now: datetime) -> list[StallFinding]:
        """Return a finding if submissions wait, including those that did not come over HTTP."""
        head = await self.submissions.oldest()
        if head is None or now - head <= self.pending_alert_after:
            return []
        reason = Cause(Code.SUBMISSIONS_WAIT)
        return [StallFinding(key=alerts.SUBMISSIONS, reason=reason, since=head)]

    async def _not_recovered(self, bucket: str, now: datetime) -> list[StallFinding]:
        """Return a finding for orders that are overdue for too long without a recovery."""
        late = now - self.pending_alert_after
        rows = list[IndexRow]()
        for kind in self.checked:
            rows += await self._listed(bucket, *work_index.overdue(late, kind))
        return list(_of_orders(alerts.OVERDUE, Code.NOT_RECOVERED, rows))

    async def _held_for_long(self, bucket: str, now: datetime) -> list[StallFinding]:
        """Return a finding for orders on hold for so long that they may be forgotten (OPR-7)."""
        rows = await self._listed(bucket, *work_index.held_before(now - LONGEST_STANDSTILL))
        return list(_of_orders(alerts.HELD, Code.HELD_FOR_LONG, rows))

    async def _listed(self, bucket: str, start: str, end: str) -> list[IndexRow]:
        """Return the first rows of a list that have an order id and a readable time."""
        page = await self.store.work_items(bucket, start, end, PAGE)
        return [row for row in page if _due(row) is not None]

    async def _settle(
        self, found: Sequence[StallFinding], now: datetime, *, is_whole: bool
    ) -> None:
        """Write each condition, and raise an event for each that began, changed or ended."""
        known = await self.conditions.all()
        by_key: dict[str, list[StallFinding]] = {}
        for finding in found:
            by_key.setdefault(finding.key, []).append(finding)
        for key, findings in by_key.items():
            before, etag = known.get(key, (None, None))
            after = conditions.found(before, conditions.joined(findings), now)
            await self._write(after, etag)
        if is_whole:
            for key in known.keys() - by_key.keys():
                await self._end(*known[key], now)

    async def _end(self, known: Condition, etag: str, now: datetime) -> None:
        after = conditions.gone(known, now)
        if after is None:
            await self.conditions.forget(known)
        elif after != known or after.reported < after.revision:
            await self._write(after, etag)

    async def _write(self, condition: Condition, etag: str | None) -> None:
        """Write the row before its event, so that each event is raised once and none is lost."""
        with suppress(ConflictError):  # another instance looks at the same time, and raises it
            etag = await self.conditions.put(condition, etag)
            if condition.reported < condition.revision:
                event = alerts.stalled(condition)
                why = {
                    "what": condition.key,
                    "why": str(condition.reason.code),
                    "count": condition.count,
                }
                log.log(LEVELS[condition.status], "stall_detector.stalled", extra=why)
                bucket = keys.spread_over(self.store.buckets, condition.key)
                await self.store.announce(bucket, event)
                await self.conditions.put(replace(condition, reported=condition.revision), etag)


def _due(row: IndexRow) -> datetime | None:
    """Return when the row became due. None if it has no readable time or no order id."""
    try:
        due = work_index.since(row)
    except ValueError:
        log.exception("stall_detector.row_passed_over", extra={"row": row.key})
        return None
    return due if row.order_id else None


def _ready_since(row: IndexRow, paused_until: Mapping[str, datetime]) -> datetime:
    """Return when the order became claimable. A pause that an operator chose is not a delay."""
    since = work_index.since(row)
    return max(since, paused_until.get(_needs(row), since))


def _needs(row: IndexRow) -> str:
    """Return the capability that a pending order needs. Empty if its key has none."""
    return (row.key.split("|") + [""] * 3)[2]


def _waiting(rows: Iterable[IndexRow]) -> Iterator[StallFinding]:
    """Yield a finding for the late orders of each capability."""
    by_need: dict[str, list[IndexRow]] = {}
    for row in rows:
        by_need.setdefault(_needs(row), []).append(row)
    for need, late in by_need.items():
        key = f"{alerts.WAITING}/{need}" if need else alerts.WAITING
        yield from _of_orders(key, Code.NOT_CLAIMED, late)


def _of_orders(key: str, reason: Code, rows: Sequence[IndexRow]) -> Iterator[StallFinding]:
    """Yield one finding for the orders of these rows, if there are any."""
    if rows:
        oldest = sorted(rows, key=work_index.since)
        orders = tuple(dict.fromkeys(row.order_id for row in oldest))
        yield StallFinding(
            key=key,
            reason=Cause(reason),
            since=work_index.since(oldest[0]),
            count=len(orders),
            orders=orders[:MAX_ORDERS],
        )
