"""The alerts as operators work through them: list, group by cause, acknowledge (ALR-1)."""

import logging
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from core.alerts import Acknowledgement, Alert
from core.gathering import run_all
from core.ports import Clock
from operators.closing import Closing
from operators.pages import cut
from operators.requests import AlertsPage, Key, OperatorRequest
from operators.views import View
from stores.alert_log import AlertLog

log = logging.getLogger(__name__)

MAX_GROUPED = 1000
"""How many of the newest alerts are looked at to group them."""


class AlertView(View):
    """An alert, with whatever more its event says."""

    model_config = ConfigDict(extra="allow")

    key: str
    """Names it here, e.g. to acknowledge it."""
    id: str
    type: str
    subject: str
    at: datetime
    acknowledged: Acknowledgement | None
    closed: bool
    """Whether what it tells of is over."""


class AlertList(View):
    """One page of alerts, newest first."""

    alerts: list[AlertView]
    continuation: str | None = None


class CauseView(View):
    """The alerts that have one cause: the same thing happened, at the same step, for the same reason."""

    type: str
    step: str
    reason: str
    count: int
    open: int
    """How many of them are not closed."""
    first: datetime
    last: datetime
    unacknowledged: list[str]
    """The keys of the open ones that nobody has taken upon themselves."""


class CauseList(View):
    """The causes of the newest alerts, the one with most open ones first."""

    causes: list[CauseView]


class AcknowledgeRequest(OperatorRequest):
    """The body that acknowledges alerts."""

    alerts: Annotated[tuple[Key, ...], Field(min_length=1, max_length=MAX_GROUPED)]
    """Their keys."""


class Acknowledged(View):
    """What became of the alerts that were to be acknowledged."""

    acknowledged: list[str]
    unknown: list[str]


def alert_view(alert: Alert, *, closed: bool) -> AlertView:
    """Return an alert as it reached the operators; what we say of it goes before what its event says."""
    event = alert.event
    own = {"key": alert.key, "id": event.event_id, "type": event.type, "subject": event.subject, "at": event.at}
    return AlertView.model_validate({**event.data, **own, "acknowledged": alert.acknowledged, "closed": closed})


def causes(alerts: Iterable[Alert], closed: Collection[str]) -> list[CauseView]:
    """Return the alerts, newest first, grouped by their cause."""
    groups: dict[tuple[str, str, str], list[Alert]] = {}
    for alert in alerts:
        data = alert.event.data
        cause = (alert.event.type, _text(data.get("step")), _text(data.get("reason")))
        groups.setdefault(cause, []).append(alert)
    found = [_cause(*cause, group, closed) for cause, group in groups.items()]
    return sorted(found, key=lambda each: (each.open, each.count), reverse=True)


def _cause(kind: str, step: str, reason: str, group: list[Alert], closed: Collection[str]) -> CauseView:
    still_open = [alert for alert in group if alert.key not in closed]
    return CauseView(
        type=kind,
        step=step,
        reason=reason,
        count=len(group),
        open=len(still_open),
        first=min(alert.event.at for alert in group),
        last=max(alert.event.at for alert in group),
        unacknowledged=[alert.key for alert in still_open if alert.acknowledged is None],
    )


def _text(value: Any) -> str:
    """Return what an event says as text: events may come from elsewhere and say anything."""
    return "" if value is None else str(value)


@dataclass(frozen=True, kw_only=True)
class AlertDesk:
    """What an operator does with alerts."""

    alert_log: AlertLog
    closing: Closing
    clock: Clock

    async def list(self, page: AlertsPage) -> AlertList:
        """List the alerts that came through Event Grid, newest first."""
        found = await self.alert_log.newest(page.limit + 1, page.continuation or "")
        alerts, continuation = cut(found, page.limit, lambda alert: alert.key)
        closed = await self.closing.closed(alerts)
        views = [alert_view(alert, closed=alert.key in closed) for alert in alerts]
        return AlertList(alerts=views, continuation=continuation)

    async def causes(self) -> CauseList:
        """Group the newest alerts by their cause."""
        alerts = await self.alert_log.newest(MAX_GROUPED)
        return CauseList(causes=causes(alerts, await self.closing.closed(alerts)))

    async def acknowledge(self, request: AcknowledgeRequest) -> Acknowledged:
        """Take alerts upon yourself; the first one who does stays."""
        word = Acknowledgement(by=request.operator, at=self.clock(), note=request.note)
        keys = list(dict.fromkeys(request.alerts))
        known = dict(zip(keys, await run_all(self.alert_log.acknowledge(key, word) for key in keys), strict=True))
        log.info("operators.alerts_acknowledged", extra={"count": sum(known.values())})
        return Acknowledged(
            acknowledged=[key for key in keys if known[key]], unknown=[key for key in keys if not known[key]]
        )
