"""Conditions: what stands still for the same cause is one alert for as long as it lasts.

Pure functions. `operations/alerts/stall_detector.py` finds what stands still;
`engine/storage/conditions.py` keeps the rows.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from pydantic import AwareDatetime

from engine.domain.causes import Cause

INTERVAL = timedelta(minutes=10)
"""How long after one event of a condition the next one says that only its count has changed."""

REOPENED_WITHIN = timedelta(minutes=15)
"""A condition that comes back so soon after its end is the same one again."""

MAX_ORDERS = 5
"""How many orders an event names."""


class ConditionStatus(StrEnum):
    """What the last event of a condition reports."""

    NEW = "new"
    CHANGED = "changed"
    RESOLVED = "resolved"


@dataclass(frozen=True, kw_only=True, slots=True)
class StallFinding:
    """What one look found to stand still."""

    key: str
    """The key of the condition, such as `agents/<name>`."""
    reason: Cause
    """Why, without times or numbers."""
    since: AwareDatetime
    count: int = 1
    """How many orders it concerns, or one; the true number may be higher where a look ends."""
    orders: tuple[str, ...] = ()
    """Some of these orders, those that wait longest first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Condition:
    """A condition as it is kept in a row."""

    key: str
    """The key of the condition, such as `agents/<name>`."""
    reason: Cause
    """Why work stands still: a code with facts, as JSON."""
    since: AwareDatetime
    """When it began. It keeps this time if it comes back soon after its end."""
    first: AwareDatetime
    """When it was first found. With the key, this time identifies the alert."""
    last: AwareDatetime
    """When it was last found."""
    count: int
    """How many orders it concerns, or one."""
    orders: tuple[str, ...] = ()
    """Some of these orders, as JSON."""
    status: ConditionStatus = ConditionStatus.NEW
    """What its last event reports: `new`, `changed` or `resolved`."""
    revision: int = 1
    """The number of its events."""
    raised_at: AwareDatetime
    """When the last of them was raised."""
    reported: int = 0
    """The revision whose event is in the outbox, or was sent."""

    @property
    def alert_id(self) -> str:
        """The id of its alert; each event adds its revision."""
        return f"stalled:{self.key}:{self.first.isoformat()}"

    @property
    def is_open(self) -> bool:
        """Whether it lasts."""
        return self.status is not ConditionStatus.RESOLVED


def joined(findings: list[StallFinding]) -> StallFinding:
    """Return one finding for several with the same key, as from several buckets."""
    oldest = sorted(findings, key=lambda finding: finding.since)
    orders = tuple(order for finding in oldest for order in finding.orders)[:MAX_ORDERS]
    return replace(oldest[0], count=sum(finding.count for finding in findings), orders=orders)


def found(known: Condition | None, finding: StallFinding, now: datetime) -> Condition:
    """Return the condition as it is after it was found (again)."""
    if known is None or (not known.is_open and now - known.last > REOPENED_WITHIN):
        return Condition(
            key=finding.key,
            reason=finding.reason,
            since=finding.since,
            first=now,
            last=now,
            count=finding.count,
            orders=finding.orders,
            raised_at=now,
        )
    seen = replace(
        known, last=now, count=finding.count, orders=finding.orders, reason=finding.reason
    )
    is_news = finding.count != known.count and now - known.raised_at >= INTERVAL
    return _raised(seen, ConditionStatus.CHANGED, now) if is_news or not known.is_open else seen


def gone(known: Condition, now: datetime) -> Condition | None:
    """Return the condition once it is not found any more; None if it can be forgotten."""
    if known.is_open:
        return _raised(replace(known, last=now), ConditionStatus.RESOLVED, now)
    is_reported = known.reported == known.revision
    return None if is_reported and now - known.last > REOPENED_WITHIN else known


def _raised(condition: Condition, status: ConditionStatus, now: datetime) -> Condition:
    return replace(condition, status=status, revision=condition.revision + 1, raised_at=now)
