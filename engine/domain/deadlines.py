"""The deadline of an order, and the rule for an order that is late (SCH-17)."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from pydantic import AwareDatetime


class WhenLate(StrEnum):
    """The rule for an order that is still open at its deadline (SCH-17)."""

    ALERT = "alert"
    """Operators are alerted, and the order continues without a deadline."""
    UNDO = "undo"
    """The order is undone. After its pivot, it stops for an operator instead (UND-6)."""
    STOP = "stop"
    """The order goes to `Error` and waits for an operator."""


class DeadlineState(StrEnum):
    """The progress of a deadline."""

    OPEN = "open"
    WARNED = "warned"
    """Operators were warned that the order is due soon (ALR-6)."""
    PASSED = "passed"
    """The order starts no more steps, and its rule decides what follows."""
    LIFTED = "lifted"
    """The deadline no longer counts: it only raised an alert, or an operator resumed the order."""


# The longer an order may take, the longer a repair takes. A fixed time would be too late for an
# order of weeks, and before the start of an order of minutes.
WARNING_FRACTION = 10
"""Operators are warned when this fraction of the time is left: one tenth."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Deadline:
    """The time by which an order has to be over. It never moves."""

    due_by: AwareDatetime
    due_soon_at: AwareDatetime
    """The time at which operators are warned."""
    when_late: WhenLate = WhenLate.ALERT
    state: DeadlineState = DeadlineState.OPEN

    @property
    def is_ahead(self) -> bool:
        """Whether no supervisor has recorded yet that the deadline has passed."""
        return self.state in (DeadlineState.OPEN, DeadlineState.WARNED)

    @property
    def next_check(self) -> datetime | None:
        """The time of the supervisor's next check of the order, or None if no check is left."""
        if not self.is_ahead:
            return None
        return self.due_soon_at if self.state is DeadlineState.OPEN else self.due_by

    @property
    def cuts_short(self) -> bool:
        """Whether the attempts of the order have to end by the deadline.

        A deadline that only alerts does not shorten attempts.
        """
        return self.is_ahead and self.when_late is not WhenLate.ALERT

    def warned(self) -> "Deadline":
        return replace(self, state=DeadlineState.WARNED)

    def passed(self) -> "Deadline":
        """Return the deadline after a supervisor recorded that it has passed."""
        only_alerts = self.when_late is WhenLate.ALERT
        return replace(self, state=DeadlineState.LIFTED if only_alerts else DeadlineState.PASSED)

    def after_resume(self, now: datetime) -> "Deadline":
        """Return the deadline of an order that an operator resumes at this time.

        If the deadline has passed, the order continues without a deadline.
        """
        # By the action, the operator has decided that the order continues without a deadline.
        has_passed = self.state is DeadlineState.PASSED or now >= self.due_by
        return replace(self, state=DeadlineState.LIFTED) if has_passed else self


def deadline_of(starts_at: datetime, within: timedelta, when_late: WhenLate) -> Deadline:
    due_by = starts_at + within
    return Deadline(
        due_by=due_by, due_soon_at=due_by - within / WARNING_FRACTION, when_late=when_late
    )
