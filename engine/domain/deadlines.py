"""The deadline of an order: by when it has to be over, and what follows if it is not (SCH-17)."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from pydantic import AwareDatetime


class WhenLate(StrEnum):
    """The rule for an order that is still open at its deadline (SCH-17)."""

    ALERT = "alert"
    """Operators are alerted, and the order goes on without a deadline."""
    UNDO = "undo"
    """The order is undone; past its point of no return, it stops for an operator (UND-6)."""
    STOP = "stop"
    """The order goes to `Error`, and waits for an operator."""


class DeadlineState(StrEnum):
    """What has come of a deadline."""

    OPEN = "open"
    WARNED = "warned"
    """Operators know that the order is due soon (ALR-6)."""
    PASSED = "passed"
    """The order begins nothing more, and its rule decides what follows."""
    LIFTED = "lifted"
    """It does not count any more: it only alerted, or an operator let the order go on."""


WARNING_FRACTION = 10
"""The warning comes when this fraction of the time is left, here a tenth.

The longer an order may take, the longer it takes to mend what delays it. A fixed time would be too
late for an order of weeks, and before the begin of an order of minutes.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Deadline:
    """By when an order has to be over. It never moves."""

    due_by: AwareDatetime
    due_soon_at: AwareDatetime
    """When operators are warned."""
    when_late: WhenLate = WhenLate.ALERT
    state: DeadlineState = DeadlineState.OPEN

    @property
    def is_ahead(self) -> bool:
        """Whether nobody has noticed yet that it has passed."""
        return self.state in (DeadlineState.OPEN, DeadlineState.WARNED)

    @property
    def next_check(self) -> datetime | None:
        """When a supervisor has to look at the order; None if no more."""
        if not self.is_ahead:
            return None
        return self.due_soon_at if self.state is DeadlineState.OPEN else self.due_by

    @property
    def cuts_short(self) -> bool:
        """Whether an attempt has to be over by the deadline.

        One that only alerts changes nothing of the order.
        """
        return self.is_ahead and self.when_late is not WhenLate.ALERT

    def warned(self) -> "Deadline":
        """Return the deadline of which operators were warned."""
        return replace(self, state=DeadlineState.WARNED)

    def passed(self) -> "Deadline":
        """Return the deadline once somebody has noticed that it has passed."""
        only_alerts = self.when_late is WhenLate.ALERT
        return replace(self, state=DeadlineState.LIFTED if only_alerts else DeadlineState.PASSED)

    def after_resume(self, now: datetime) -> "Deadline":
        """Return the deadline of an order that an operator lets go on at this time.

        If the deadline has passed, the operator has decided that the order goes on without one.
        """
        has_passed = self.state is DeadlineState.PASSED or now >= self.due_by
        return replace(self, state=DeadlineState.LIFTED) if has_passed else self


def deadline_of(starts_at: datetime, within: timedelta, when_late: WhenLate) -> Deadline:
    """Return the deadline of an order that may start at this time."""
    due_by = starts_at + within
    return Deadline(
        due_by=due_by, due_soon_at=due_by - within / WARNING_FRACTION, when_late=when_late
    )
