"""The deadline of an order: its times, and what has come of it."""

from dataclasses import replace

import pytest

from engine.domain.deadlines import DeadlineState, WhenLate, deadline_of
from engine.domain.derive import derive
from engine.domain.keys import sortable
from engine.domain.orders import InError, Pending, Processed, Processing
from engine.domain.states import Completed, Failed, Waiting
from engine.domain.statuses import Direction, NotClaimable, Outcome
from tests.support.due_orders import ALERT, DUE, LIFTED, OPEN, PASSED, SOON, UNDO
from tests.support.engine_records import (
    DECLINED,
    HOUR,
    NOW,
    ORDER_ID,
    TIMEOUT,
    order,
    running,
    step,
)


def rows(it):
    """The work items of an order that was changed now, without those that list it."""
    items = derive(it, it, NOW).work_items
    return [item.key for item in items if item.key.startswith("!due")]


@pytest.mark.proves("SCH-17", "ALR-6")
def test_the_warning_comes_when_a_tenth_of_the_time_is_left():
    """A longer order is announced earlier."""
    assert deadline_of(NOW, HOUR, WhenLate.STOP) == OPEN
    assert deadline_of(NOW, HOUR / 2, WhenLate.STOP).due_soon_at == NOW + HOUR * 9 / 20


@pytest.mark.proves("SCH-17")
@pytest.mark.parametrize(
    ("deadline", "check"),
    [(OPEN, SOON), (OPEN.warned(), DUE), (OPEN.passed(), None), (LIFTED, None)],
)
def test_a_deadline_is_checked_at_the_warning_and_when_it_is_over(deadline, check):
    """The one row of the work index has the next of these times."""
    assert deadline.next_check == check
    expected = [f"!due|{sortable(check)}|{ORDER_ID}"] if check else []
    assert rows(order(step(), deadline=deadline)) == expected


@pytest.mark.proves("SCH-17")
@pytest.mark.parametrize(
    "changes",
    [
        {"direction": Direction.UNDO},
        {"state": InError(Outcome.FAILED)},
        {"state": Processed()},
        {"deadline": None},
    ],
)
def test_no_row_is_kept_for_an_undo_or_an_order_that_ended(changes):
    """Nor for one without a deadline; a resubmit brings it back."""
    assert rows(order(step(), **{"deadline": OPEN} | changes)) == []


def test_the_rule_says_what_a_deadline_that_passed_is_worth():
    """One that only alerts counts no more."""
    assert OPEN.passed().state is DeadlineState.PASSED
    assert UNDO.warned().passed().state is DeadlineState.PASSED
    assert ALERT.passed().state is DeadlineState.LIFTED


@pytest.mark.parametrize("deadline", [OPEN, OPEN.warned(), PASSED])
def test_an_operator_lifts_a_deadline_that_has_passed(deadline):
    """One that is ahead stays."""
    assert deadline.after_resume(DUE).state is DeadlineState.LIFTED
    assert OPEN.after_resume(DUE - TIMEOUT) == OPEN


@pytest.mark.proves("SCH-17")
def test_a_late_order_starts_nothing_and_waits_for_a_claim_that_ends_it():
    """So does one of which a step has failed; agents answer first."""
    late = order(step(), deadline=PASSED)
    assert (late.is_late, late.is_stopping, late.ready) == (True, True, ())
    assert late.blocked() is None
    runs = order(running(), step(name="b"), deadline=PASSED, state=Processing("s"))
    assert runs.blocked() is NotClaimable.RUNS
    failed = order(step(Failed(DECLINED)), step(name="b"))
    assert (failed.is_late, failed.is_stopping) == (False, True)


@pytest.mark.parametrize("deadline", [None, OPEN, OPEN.warned(), LIFTED])
def test_an_order_with_any_other_deadline_goes_on(deadline):
    """An undo has none."""
    assert order(step(), deadline=deadline).ready
    back = order(step(), deadline=PASSED, direction=Direction.UNDO)
    assert (back.is_late, back.is_stopping, back.attempts_end_by) == (False, False, None)


@pytest.mark.proves("SCH-17")
def test_a_step_may_start_before_the_deadline_and_not_at_it():
    """Also if nobody has noticed the deadline yet; one that only alerts hinders nothing."""
    it = order(step(), deadline=OPEN)
    (first,) = it.steps
    assert it.may_start(first, DUE - TIMEOUT)
    assert not it.may_start(first, DUE)
    assert order(step(), deadline=ALERT).may_start(first, DUE)
    assert order(step(), deadline=LIFTED).may_start(first, DUE)
    assert not order(step(), not_before=DUE).may_start(first, NOW)


@pytest.mark.proves("SCH-17", "SCH-2")
@pytest.mark.parametrize("deadline", [OPEN, ALERT])
@pytest.mark.parametrize("due_in", [TIMEOUT / 2, HOUR])
def test_complete_by_is_never_later_than_a_deadline_ahead(deadline, due_in):
    """Of what runs, and of what is tried again."""
    near = replace(deadline, due_by=NOW + due_in)
    expected = NOW + min(due_in, TIMEOUT)
    runs = order(running(), state=Processing("s"), deadline=near)
    again = order(step(Waiting(None, NOW + TIMEOUT)), state=Pending(), deadline=near)
    assert derive(runs, runs, NOW).complete_by == expected
    assert derive(again, again, NOW).complete_by == expected
    lifted = replace(again, deadline=replace(near, state=DeadlineState.LIFTED))
    assert derive(lifted, lifted, NOW).complete_by == NOW + TIMEOUT


def test_an_order_is_finished_when_every_step_is():
    """Skipped or completed."""
    assert order(step(Completed())).is_finished
    assert not order(step(Completed()), step(name="b")).is_finished
