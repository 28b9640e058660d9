"""The alerts for operators: list them, group them by cause, and acknowledge them (ALR-1).

An alert is closed when its cause is over. This is determined at each reading, and never stored.
"""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from engine.alerts.conditions import ConditionStatus
from engine.alerts.events import ORDER_DUE_SOON, ORDER_LATE, STALLED, Acknowledgement, Alert
from engine.concurrency import run_all
from engine.decisions.lists import LISTS
from engine.decisions.transitions import OperatorEvent
from engine.domain.errors import AppError
from engine.domain.keys import ABOUT_ORDER
from engine.domain.statuses import STATUS_INFO
from engine.domain.work_index import WorkItemKind
from engine.http.models import View
from engine.ports import Clock
from engine.storage.alert_log import AlertLog
from operations.api.outbox import OutboxReader, WorkIndexReading
from operations.api.requests import NEWEST, AlertsPage, CausesPage, Key, OperatorRequest
from operations.api.views import cut

log = logging.getLogger(__name__)

MAX_GROUPED = 1000
"""How many alerts are grouped by cause on one page."""


class AlertView(View):
    """An alert with the data of its event."""

    model_config = ConfigDict(extra="allow")

    key: str
    """The key of the alert, for example to acknowledge it."""
    id: str
    type: str
    subject: str
    at: datetime
    acknowledged: Acknowledgement | None
    closed: bool
    """Whether the condition that raised the alert is over."""


class AlertList(View):
    """One page of alerts, newest first."""

    alerts: list[AlertView]
    continuation: str | None = None


class Taken(View):
    """An operator who has taken alerts of a cause."""

    by: str
    at: datetime
    """The time of the last acknowledgement."""
    note: str
    count: int
    """How many of the open alerts this operator has acknowledged."""


class CauseView(View):
    """The alerts of one type and step with the same cause, or else with the same reason."""

    type: str
    step: str
    cause: str
    """The name of their group of causes, such as `refused: card declined`; empty if they have none.

    An ended order has it in lists too.
    """
    reason: str
    """The reason of the newest of them."""
    is_end: bool
    """Whether this cause ended orders. Such orders stay in a list until an operator acts on them.
    """
    count: int
    open: int
    """How many of the alerts are open."""
    first: datetime
    last: datetime
    unacknowledged: list[str]
    """The keys of the open alerts that nobody has acknowledged."""
    taken: list[Taken]
    """The operators who have acknowledged open alerts, the latest first."""


class CauseList(View):
    """The causes of one page of alerts, newest first; those with the most open alerts first."""

    causes: list[CauseView]
    continuation: str | None = None
    """The value that returns the older alerts; null if there are none."""


class AcknowledgeRequest(OperatorRequest):
    """The body that acknowledges alerts."""

    alerts: Annotated[tuple[Key, ...], Field(min_length=1, max_length=MAX_GROUPED)]
    """Their keys."""


class Acknowledged(View):
    """The outcome for each alert."""

    acknowledged: list[str]
    """The alerts that this operator has acknowledged, now or before."""
    by_others: list[str]
    """The alerts that other operators had already acknowledged."""
    unknown: list[str]


def alert_view(alert: Alert, *, closed: bool) -> AlertView:
    """Make the view of an alert. Its own fields override the fields of its event."""
    event = alert.event
    own = {
        "key": alert.key,
        "id": event.event_id,
        "type": event.type,
        "subject": event.subject,
        "at": event.at,
    }
    return AlertView.model_validate(
        {**event.data, **own, "acknowledged": alert.acknowledged, "closed": closed}
    )


def causes(alerts: Iterable[Alert], closed: Collection[str]) -> list[CauseView]:
    """Group the alerts by their cause, newest first."""
    groups: dict[tuple[str, ...], list[Alert]] = {}
    for alert in alerts:
        type_, step, cause, reason = _cause_of(alert)
        groups.setdefault((type_, step, cause, "" if cause else reason), []).append(alert)
    found = [_cause(group, closed) for group in groups.values()]
    return sorted(found, key=lambda view: (view.open, view.count), reverse=True)


def _cause_of(alert: Alert) -> tuple[str, str, str, str]:
    """Return the type, the step, the cause and the reason of an alert."""
    step, cause, reason = (
        _text(alert.event.data.get(name)) for name in ("step", "cause", "reason")
    )
    return alert.event.type, step, cause, reason


def _cause(group: list[Alert], closed: Collection[str]) -> CauseView:
    type_, step, cause, reason = _cause_of(group[0])
    still_open = [alert for alert in group if alert.key not in closed]
    return CauseView(
        type=type_,
        step=step,
        cause=cause,
        reason=reason,
        is_end=type_ in ENDS,
        count=len(group),
        open=len(still_open),
        first=min(alert.event.at for alert in group),
        last=max(alert.event.at for alert in group),
        unacknowledged=[alert.key for alert in still_open if alert.acknowledged is None],
        taken=_taken([alert.acknowledged for alert in still_open if alert.acknowledged]),
    )


def _taken(words: Sequence[Acknowledgement]) -> list[Taken]:
    last = {word.by: word for word in sorted(words, key=lambda word: word.at)}
    counts = Counter(word.by for word in words)
    found = [
        Taken(by=by, at=word.at, note=word.note, count=counts[by]) for by, word in last.items()
    ]
    return sorted(found, key=lambda taken: taken.at, reverse=True)


def _text(value: Any) -> str:
    """Return a value of an event as text. Events of other senders may contain any type."""
    return "" if value is None else str(value)


ENDS = {info.alert for info in STATUS_INFO.values() if info.alert}
"""The types of alerts about an order's end. Each is closed when the order needs no operator."""

OVER_WITHOUT: Mapping[str, Collection[WorkItemKind]] = {
    **dict.fromkeys(ENDS, (WorkItemKind.ERROR,)),
    ORDER_DUE_SOON: (WorkItemKind.DEADLINE,),
    ORDER_LATE: tuple(LISTS.values()),
}
"""The kinds of an order's rows that keep an alert open, by type of alert."""


def is_over(event: OperatorEvent, pending: WorkIndexReading | None) -> bool:
    """Whether the cause of the event is certainly over.

    A condition contains this itself. An order that was undone completely needs no operator, so its
    alert is closed from the beginning. A warning is closed when the order has no deadline ahead of
    it. The alert that an order is late is closed when the order is over. Without its work items,
    nothing is known about an order. Alerts of other types are never closed.
    """
    if event.type == STALLED:  # that of a clock is no condition, and has no status
        return bool(event.data.get("status") == ConditionStatus.RESOLVED)
    kinds = OVER_WITHOUT.get(event.type)
    if pending is None or kinds is None or not event.subject.startswith(ABOUT_ORDER):
        return False
    order_id = event.subject.removeprefix(ABOUT_ORDER)
    return all(pending.is_over(kind, order_id) for kind in kinds)


@dataclass(frozen=True, kw_only=True)
class AlertService:
    """The operators' actions on alerts."""

    alert_log: AlertLog
    outbox_reader: OutboxReader
    clock: Clock

    async def list(self, page: AlertsPage) -> AlertList:
        """List the alerts that came through Event Grid, newest first."""
        found = await self.alert_log.newest(page.limit + 1, page.continuation or "")
        alerts, continuation = cut(found, page.limit, lambda alert: alert.key)
        closed = await self._closed(alerts)
        views = [alert_view(alert, closed=alert.key in closed) for alert in alerts]
        return AlertList(alerts=views, continuation=continuation)

    async def causes(self, page: CausesPage = NEWEST) -> CauseList:
        """Group a page of alerts by their cause. The first page has the newest alerts."""
        found = await self.alert_log.newest(MAX_GROUPED + 1, page.continuation or "")
        alerts, continuation = cut(found, MAX_GROUPED, lambda alert: alert.key)
        grouped = causes(alerts, await self._closed(alerts))
        return CauseList(causes=grouped, continuation=continuation)

    async def acknowledge(self, request: AcknowledgeRequest) -> Acknowledged:
        """Acknowledge alerts; the first operator who does so keeps them."""
        word = Acknowledgement(by=request.operator, at=self.clock(), note=request.note)
        keys = list(dict.fromkeys(request.alerts))
        outcomes = await run_all(self.alert_log.acknowledge(key, word) for key in keys)
        by = {key: stands.by for key, stands in zip(keys, outcomes, strict=True) if stands}
        own = [key for key in keys if by.get(key) == request.operator]
        log.info("operators.alerts_acknowledged", extra={"count": len(own)})
        return Acknowledged(
            acknowledged=own,
            by_others=[key for key in keys if key in by and key not in own],
            unknown=[key for key in keys if key not in by],
        )

    async def _closed(self, found: Sequence[Alert]) -> Collection[str]:
        """Return the keys of the closed alerts among these. Empty if this cannot be determined."""
        about_orders = any(alert.event.type in OVER_WITHOUT for alert in found)
        try:
            # Read after the alerts: each alert comes after its cause. So an alert may be shown as
            # open for too long, but never as closed too soon.
            pending = await self.outbox_reader.read() if about_orders else None
        except (AppError, ExceptionGroup) as error:
            log.warning("alerts.not_compared", extra={"why": repr(error)})
            return ()
        return {alert.key for alert in found if is_over(alert.event, pending)}
