"""Conditions: a stall with the same cause is one alert for as long as it lasts.

Pure functions. `operations/alerts/stall_detector.py` finds the stalls, and
`engine/storage/conditions.py` keeps the rows.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from pydantic import AwareDatetime

from engine.domain.causes import Cause

INTERVAL = timedelta(minutes=10)
"""The minimum time between two events of a condition if only its count has changed."""

REOPENED_WITHIN = timedelta(minutes=15)
"""A condition that returns within this time after its end is the same condition again."""

MAX_ORDERS = 5
"""The maximum number of orders that an event names."""


class ConditionStatus(StrEnum):
    """The change that the last event of a condition reports."""

    NEW = "new"
    CHANGED = "changed"
    RESOLVED = "resolved"


@dataclass(frozen=True, kw_only=True, slots=True)
class StallFinding:
    """A stall that one check has found."""

    key: str
    """The key of the condition, such as `agents/<name>`."""
    reason: Cause
    """The cause, without times or numbers."""
    since: AwareDatetime
    count: int = 1
    """The number of orders concerned, or 1. The true number may be higher if the check reached its
    limit."""
    orders: tuple[str, ...] = ()
    """Some of these orders, the longest waiting first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Condition:
    """A condition as its row keeps it."""

    key: str
    """The key of the condition, such as `agents/<name>`."""
    reason: Cause
    """Why work stands still: a code with facts, as JSON."""
    since: AwareDatetime
    """The time since which work stands still. It stays the same if the stall ends and returns
    within 15 minutes."""
    first: AwareDatetime
    """The time at which the condition was first found. With the key, it identifies the alert."""
    last: AwareDatetime
    """The time at which the condition was last found."""
    count: int
    """The number of orders that the condition concerns, or 1 if it is not about orders."""
    orders: tuple[str, ...] = ()
    """The ids of some of these orders, as JSON."""
    status: ConditionStatus = ConditionStatus.NEW
    """The change that the last event reports: `new`, `changed` or `resolved`."""
    revision: int = 1
    """The number of events of the condition."""
    raised_at: AwareDatetime
    """The time of the last event."""
    reported: int = 0
    """The latest revision whose event was written to the outbox."""

    @property
    def alert_id(self) -> str:
        """The id of the alert. Each event adds its revision."""
        return f"stalled:{self.key}:{self.first.isoformat()}"

    @property
    def is_open(self) -> bool:
        return self.status is not ConditionStatus.RESOLVED


def joined(findings: list[StallFinding]) -> StallFinding:
    """Return one finding in place of several with the same key, as from several buckets."""
    oldest = sorted(findings, key=lambda finding: finding.since)
    orders = tuple(order for finding in oldest for order in finding.orders)[:MAX_ORDERS]
    return replace(oldest[0], count=sum(finding.count for finding in findings), orders=orders)


def found(known: Condition | None, finding: StallFinding, now: datetime) -> Condition:
    """Return the condition after it was found, for the first time or again."""
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
    """Return the condition after it was not found, or None if it can be forgotten."""
    if known.is_open:
        return _raised(replace(known, last=now), ConditionStatus.RESOLVED, now)
    is_reported = known.reported == known.revision
    return None if is_reported and now - known.last > REOPENED_WITHIN else known


def _raised(condition: Condition, status: ConditionStatus, now: datetime) -> Condition:
    return replace(condition, status=status, revision=condition.revision + 1, raised_at=now)
