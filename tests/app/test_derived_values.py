"""What follows from the steps of an order follows in the transition alone."""

from dataclasses import replace

import pytest

from engine.decisions.transitions import HistoryEntry
from engine.domain.orders import Derived
from engine.domain.statuses import ProcessState
from engine.domain.submitted_order import OnFailure
from engine.features.external_events import decide
from engine.features.external_events.decide import ExternalEvent
from operations.api.requests import OperatorRequest
from tests.support.acting import act as acted
from tests.support.acting import cancel, expedite, hold, release, resubmit
from tests.support.builders import (
    NOW,
    TIMEOUT,
    answer,
    claimed,
    orders,
    scheduler,
    seconds,
    steps,
    supervisor,
    transition,
)

LATER = NOW + seconds(7)
GRACE = OperatorRequest(operator="grace", note="a note")
ANYBODY = OperatorRequest(operator="grace", note="a note")
ENTRY = HistoryEntry(at=LATER, actor="t", events=())
WRONG = Derived(complete_by=NOW, not_before=NOW, locked_by="s9", ready_since=LATER)


RESTS = {
    "on_failure": OnFailure.COOLDOWN,
    "cooldown": seconds(60),
    "max_cooldowns": 1,
    "threshold": 1,
}


def runs(name="payment", *, complete_by=NOW + TIMEOUT, **rules):
    """A step with these rules that runs."""
    return steps.running(steps.new(name, **rules), complete_by=complete_by)


RUNS_ON = runs("second", complete_by=NOW + seconds(90))

STANDS = {
    "pending": orders.new(),
    "handled": claimed(),
    "awaits an answer": orders.processing(steps=[steps.awaiting_external_answer()]),
    "waits for a retry": supervisor.recover(claimed(), LATER).after,
    "held": orders.on_hold(),
    "processed": orders.processed(claimed()),
    "in error": orders.in_error(claimed()),
}


@pytest.mark.proves("SCH-2", "SUP-3")
@pytest.mark.parametrize("how", STANDS)
def test_nobody_sets_what_follows_from_the_steps(how):
    """Whatever a decision says of it, the next version says what its steps and verbs say."""
    order = STANDS[how]
    right = transition(order, order, ENTRY).after
    assert transition(order, replace(order, version=9, derived=WRONG), ENTRY).after == right


@pytest.mark.proves("SUB-2")
def test_a_new_order_begins_with_its_first_version_when_it_is_recorded():
    wrong = replace(orders.new(), version=9, derived=replace(WRONG, ready_since=NOW))
    after = transition(None, wrong, ENTRY).after
    assert after.version == 1
    assert (after.derived.ready_since, after.updated_at) == (LATER, LATER)


@pytest.mark.proves("SCH-2", "ANS-1")
@pytest.mark.parametrize(
    ("how", "who"), [("handled", "s1"), ("awaits an answer", None), ("pending", None)]
)
def test_an_order_is_locked_while_agents_work_for_a_scheduler(how, who):
    """Not while it waits for a claim, or for an answer from outside alone."""
    order = STANDS[how]
    order = replace(order, derived=replace(order.derived, locked_by="s1"))
    assert transition(order, order, ENTRY).after.derived.locked_by == who


def retried(*made):
    """An order whose steps run until the supervisor looks."""
    return supervisor.recover(orders.processing(steps=made), LATER).after


RETRY_BY = LATER + TIMEOUT


@pytest.mark.proves("SUP-3")
def test_the_time_of_the_next_attempt_stands_with_the_step_that_waits_for_it():
    """The order's own is that of the last of these."""
    third = runs("third", complete_by=NOW + seconds(90))
    never = steps.waiting(steps.new("fourth"))
    order = retried(runs(), runs("second", timeout=seconds(60)), third, never)
    assert [step.retry_by for step in order.steps] == [RETRY_BY, LATER + seconds(60), None, None]
    assert order.derived.complete_by == LATER + seconds(60)


@pytest.mark.proves("SUP-3", "SCH-3")
def test_the_attempt_that_begins_waits_for_no_retry():
    order = scheduler.claim(retried(runs()), LATER).after
    assert (order.steps[0].retry_by, order.derived.complete_by) == (None, RETRY_BY)


@pytest.mark.proves("SUP-3")
def test_an_attempt_after_a_cooldown_or_a_pause_is_due_so_much_later():
    """The attempt has its whole time then."""
    rested = retried(runs(**RESTS))
    assert rested.derived.complete_by == LATER + seconds(60) + TIMEOUT
    tired = steps.with_counts(runs(complete_by=LATER - seconds(2)), uncounted=9)
    paused = supervisor.recover(orders.processing(steps=[tired]), LATER, []).after
    (step,) = paused.steps
    assert paused.derived.complete_by == step.not_before + TIMEOUT > LATER + TIMEOUT


@pytest.mark.proves("SUP-3", "OPR-7", "OPR-8")
@pytest.mark.parametrize("act", [hold, expedite])
def test_what_operators_do_with_a_pending_order_leaves_the_time_of_its_retry(act):
    """So it is with a release, and with the answer to another step."""
    order = retried(runs(), RUNS_ON)
    after = act(order, GRACE, LATER).after
    assert after.derived.complete_by == RETRY_BY
    if after.hold:
        assert release(after, GRACE, LATER).after.derived.complete_by == RETRY_BY


@pytest.mark.proves("SUP-3", "ANS-2")
def test_an_answer_leaves_the_time_of_another_step_s_retry():
    """So does a reply: the step that cools down is due when it was."""
    due = LATER + seconds(60) + TIMEOUT
    tired = runs("second", **RESTS)
    waiting = retried(steps.awaiting_external_answer(complete_by=NOW + seconds(90)), tired)
    answered = decide.recorded(waiting, ExternalEvent(step="payment", result={}), "t", LATER).after
    assert answered.derived.complete_by == due
    order = retried(runs(complete_by=NOW + seconds(90)), tired)
    replied = scheduler.receive(order, answer(), LATER).after
    assert replied.derived.complete_by == due


@pytest.mark.proves("SUP-3", "ANS-3")
@pytest.mark.parametrize("answer", [{"result": {}}, {"refusal": "no"}])
def test_a_step_that_has_ended_waits_for_no_retry(answer):
    """Somebody answered or refused while it waited to be asked again."""
    order = retried(steps.awaiting_external_answer(), RUNS_ON)
    after = decide.recorded(order, ExternalEvent(step="payment", **answer), "t", LATER).after
    assert (order.steps[0].retry_by, after.steps[0].retry_by) == (RETRY_BY, None)


@pytest.mark.proves("SUP-3", "OPR-12")
def test_a_step_that_is_settled_as_done_waits_for_no_retry():
    """It waited beside the step that failed."""
    order = retried(runs(), RUNS_ON)
    ended = orders.in_error(orders.with_steps(order, steps.failed(RUNS_ON)))
    after = acted("settle", ended, GRACE, LATER, step="payment", was_done=True).after
    assert (ended.steps[0].retry_by, after.steps[0].retry_by) == (RETRY_BY, None)


NOTHING_LEFT = {
    "skipped": orders.processing(steps=[runs(threshold=1, on_failure=OnFailure.CONTINUE)]),
    "its undo is given up": orders.processing(
        orders.undoing(steps=[steps.undoing(steps.new(threshold=1))])
    ),
    "nothing of it is to be undone": orders.undoing(
        orders.processing(steps=[runs(undoable=False)])
    ),
    "another step has failed": orders.pending(steps=[runs(), steps.failed("second")]),
}


@pytest.mark.proves("SUP-3")
@pytest.mark.parametrize("why", NOTHING_LEFT)
def test_a_pending_order_of_which_nothing_is_tried_again_has_no_complete_by(why):
    after = supervisor.recover(NOTHING_LEFT[why], LATER).after
    assert (after.process_state, after.derived.complete_by) == (ProcessState.PENDING, None)


@pytest.mark.proves("SUP-3", "OPR-3", "UND-4")
def test_a_step_that_is_turned_back_or_resubmitted_waits_for_no_retry():
    """A cancel and a resubmit begin afresh; so does what waited beside the failure."""
    order = retried(runs(), RUNS_ON)
    cancelled = cancel(order, ANYBODY, LATER).after
    assert cancelled.derived.complete_by is None
    assert [step.retry_by for step in cancelled.steps] == [None, None]
    ended = orders.in_error(orders.with_steps(order, steps.failed(RUNS_ON)))
    assert ended.step("payment").retry_by
    resubmitted = resubmit(ended, ANYBODY, LATER).after
    assert resubmitted.derived.complete_by is None
    assert [step.retry_by for step in resubmitted.steps] == [None, None]


@pytest.mark.proves("SCH-11")
def test_an_order_that_stays_in_error_has_waited_since_it_did():
    """Only what lets it go on begins its age anew."""
    order = STANDS["in error"]
    assert transition(order, order, ENTRY).after.derived.ready_since == NOW
    assert transition(order, order.resume(), ENTRY).after.derived.ready_since == LATER
