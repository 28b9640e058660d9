"""Deadlines of orders, in each state."""

from dataclasses import replace

from engine.domain.deadlines import Deadline, DeadlineState, WhenLate
from tests.support.engine_records import HOUR, NOW

DUE = NOW + HOUR
SOON = DUE - HOUR / 10
OPEN = Deadline(due_by=DUE, due_soon_at=SOON, when_late=WhenLate.STOP)
UNDO = replace(OPEN, when_late=WhenLate.UNDO)
ALERT = replace(OPEN, when_late=WhenLate.ALERT)
PASSED = replace(OPEN, state=DeadlineState.PASSED)
LIFTED = replace(OPEN, state=DeadlineState.LIFTED)
