"""What supervisor and scheduler decide about the deadline of an order (SCH-17, ALR-6)."""

from dataclasses import replace
from datetime import timedelta

import pytest

from engine.alerts import events as alerts
from engine.decisions.actions import release, resubmit
from engine.decisions.actions.action import NoArguments, OperatorCommand
from engine.decisions.claim import claim
from engine.decisions.drafts import is_to_be_undone
from engine.decisions.recover import recover
from engine.decisions.reply import Delivery, receive
from engine.decisions.step_kinds import AttemptReport
from engine.decisions.transitions import HistoryEntry, NotClaimed
from engine.domain import events as e
from engine.domain.causes import Cause, Code
from engine.domain.deadlines import DeadlineState, WhenLate
from engine.domain.effects import Done
from engine.domain.errors import InvalidError
from engine.domain.messages import AgentRequest, CompletedReply, decode, request_id_of
from engine.domain.orders import Hold, InError, Pending, Processed, Processing
from engine.domain.states import (
    AwaitingExternalEvent,
    BackingOff,
    Completed,
    CoolingDown,
    Delayed,
    Failed,
    RequestCancelled,
    Running,
    UndoPending,
    Waiting,
)
from engine.domain.statuses import Direction, NotClaimable, Outcome
from engine.domain.steps import Counts
from engine.domain.submitted_order import OnFailure
from engine.features.external_events import actions, decide
from engine.features.external_events.decide import EventNotAcceptedError, ExternalEvent
from tests.support.due_orders import ALERT, DUE, OPEN, PASSED, SOON, UNDO
from tests.support.engine_records import (
    DECLINED,
    HOUR,
    KEY,
    NOT_BEGUN,
    NOW,
    ORDER_ID,
    TIMED_OUT,
    TIMEOUT,
    external,
    in_doubt,
    order,
    running,
    step,
)
from tests.support.engine_scheduling import CAPACITY, TOLERANCE, definition, kinds, scheduler

INSTANT = timedelta(microseconds=1)
OVER = DUE + TOLERANCE + INSTANT
"""When a supervisor notices that the deadline has passed."""
BY = Processing("scheduler-1")
DONE = Done(key=KEY, result={})
LATE = Cause(Code.DEADLINE_PASSED, {"due_by": DUE.isoformat()})
BEGUN = AttemptReport(has_begun=True, fault="")


def checked(it, now=OVER):
    """The supervisor's decision; an agent has begun each attempt."""
    reports = {request_id_of(it.order_id, one): BEGUN for one in it.steps}
    return recover(it, now, reports, TOLERANCE, 12)


def claimed(it, now, **changes):
    definitions = [definition(one.name, after=one.rules.after) for one in it.steps]
    return claim(it, now, CAPACITY, scheduler(*definitions, **changes))


def done(**changes):
    """A step that was done."""
    return step(Completed(), "pay", DONE, **changes)


SHIP = step(name="ship", after=("pay",))

# The warning


@pytest.mark.proves("ALR-6")
def test_operators_are_warned_once_before_the_deadline():
    """The tolerance for clocks that differ has to pass too."""
    it = order(step(), deadline=OPEN)
    assert checked(it, SOON + TOLERANCE) is None
    warned = checked(it, SOON + TOLERANCE + INSTANT)
    assert warned.events == (e.DueSoon(due_by=DUE),)
    assert warned.after.deadline == OPEN.warned()
    assert warned.after.state == Pending()
    assert checked(warned.after, DUE) is None


@pytest.mark.proves("ALR-6")
def test_a_warning_moves_nothing_of_the_order():
    """An agent that has a request keeps it."""
    runs = order(running(), state=BY, deadline=replace(OPEN, due_soon_at=NOW))
    warned = checked(runs, NOW + TIMEOUT)
    assert (warned.after.state, warned.after.steps) == (BY, runs.steps)
    assert kinds(warned) == [e.DueSoon]


@pytest.mark.proves("ALR-6")
def test_a_supervisor_that_comes_after_the_deadline_gives_no_warning():
    """It says at once that the deadline has passed."""
    assert kinds(checked(order(step(), deadline=ALERT))) == [e.DeadlinePassed]


def events_of(next_version):
    entry = HistoryEntry(at=OVER, actor="supervisor/v1", events=next_version.events)
    return list(alerts.of(next_version.after, entry))


@pytest.mark.proves("ALR-6")
def test_a_warning_and_a_late_order_that_continues_are_events_for_operators():
    """With the deadline, its rule, and what operators can do."""
    soon = checked(order(step(), deadline=OPEN), SOON + TOLERANCE + INSTANT)
    (event,) = events_of(soon)
    assert (event.type, event.subject) == (alerts.ORDER_DUE_SOON, f"orders/{ORDER_ID}")
    assert event.data["reason"] == {"code": "due-soon", "facts": {"due_by": DUE.isoformat()}}
    assert (event.data["dueBy"], event.data["whenLate"]) == (DUE.isoformat(), "stop")
    assert event.data["actions"] == ["cancel", "hold", "expedite"]
    (late,) = events_of(checked(order(step(), deadline=ALERT)))
    assert (late.type, late.data["cause"]) == (alerts.ORDER_LATE, "deadline-passed")
    assert events_of(checked(order(step(), done(), deadline=UNDO))) == []


# The deadline


@pytest.mark.proves("SCH-17")
def test_a_deadline_that_only_alerts_lets_the_order_go_on():
    """Without a deadline from then on."""
    late = checked(order(step(), deadline=ALERT))
    assert late.events == (e.DeadlinePassed(due_by=DUE, when_late=WhenLate.ALERT),)
    assert late.after.deadline.state is DeadlineState.LIFTED
    assert late.after.ready
    assert checked(late.after) is None


@pytest.mark.proves("SCH-17")
@pytest.mark.parametrize("state", [Pending(), BY])
def test_an_order_that_stops_goes_to_error_at_its_deadline(state):
    """With a cause of its own, whoever has it."""
    waits = external(AwaitingExternalEvent(DUE)) if state == BY else step()
    stopped = checked(order(done(), waits, state=state, deadline=OPEN.warned()))
    assert stopped.after.state == InError(Outcome.FAILED)
    assert stopped.after.cause == LATE
    assert stopped.events[-1] == e.OrderEnded(outcome=Outcome.FAILED, cause=LATE)
    assert stopped.events[0] == e.DeadlinePassed(due_by=DUE, when_late=WhenLate.STOP)
    assert stopped.after.derived.work_items[0].key.startswith("!error")
    assert [alert.data["cause"] for alert in events_of(stopped)] == ["deadline-passed"]


@pytest.mark.proves("SCH-17", "SUP-6")
def test_a_supervisor_only_marks_what_is_undone_and_a_scheduler_undoes_it():
    """Every step that was done is undone."""
    marked = checked(order(done(), SHIP, deadline=UNDO))
    assert (marked.after.state, marked.after.direction) == (Pending(), Direction.FORWARD)
    assert marked.after.deadline.state is DeadlineState.PASSED
    assert marked.events == (e.DeadlinePassed(due_by=DUE, when_late=WhenLate.UNDO),)
    assert len(marked.messages) == 1
    undone = claimed(marked.after, OVER)
    assert kinds(undone) == [e.Claimed, e.UndoRequested]
    assert undone.events[-1] == e.UndoRequested(cause=LATE)
    assert (undone.after.direction, undone.after.cause) == (Direction.UNDO, LATE)
    assert isinstance(undone.after.step("pay").state, UndoPending)


@pytest.mark.proves("SCH-17", "UND-1")
def test_a_deadline_that_is_still_to_come_undoes_nothing():
    """A step that failed is left to its own rule."""
    failed = step(Failed(LATE), name="ship")
    assert not is_to_be_undone(order(done(), failed, deadline=UNDO))
    assert is_to_be_undone(
        order(done(), failed, deadline=replace(UNDO, state=DeadlineState.PASSED))
    )


@pytest.mark.proves("SCH-17", "UND-6")
def test_an_order_past_its_point_of_no_return_stops_instead():
    """Nothing is undone then."""
    stopped = checked(order(done(pivot=True), SHIP, deadline=UNDO))
    assert (stopped.after.state, stopped.after.cause) == (InError(Outcome.FAILED), LATE)


@pytest.mark.proves("SCH-17", "SCH-12")
def test_what_runs_ends_first():
    """Its reply counts; nothing starts after it, and then the rule decides."""
    it = order(running(), SHIP, state=BY, deadline=OPEN)
    runs = replace(it, steps=(replace(it.steps[0], state=Running(OVER)), SHIP))
    marked = checked(runs)
    assert (marked.after.state, kinds(marked)) == (BY, [e.DeadlinePassed])
    assert marked.after.steps == runs.steps
    ended = answered(marked.after, OVER)
    assert kinds(ended) == [e.StepCompleted, e.OrderEnded]
    assert (ended.after.state, ended.after.cause) == (InError(Outcome.FAILED), LATE)


def answered(it, now):
    reply = CompletedReply(
        order_id=ORDER_ID, step="pay", attempt=1, action="do", complete_by=OVER, result={}
    )
    known = scheduler(definition("pay"), definition("ship", after=("pay",)))
    return receive(it, Delivery(reply, "bank"), now, CAPACITY, known)


@pytest.mark.proves("SCH-17")
def test_a_reply_after_the_deadline_starts_nothing():
    """Also if no supervisor has noticed the deadline yet."""
    it = order(running(), SHIP, state=BY, deadline=OPEN)
    runs = replace(it, steps=(replace(it.steps[0], state=Running(DUE)), SHIP))
    after = answered(runs, DUE).after
    assert isinstance(after.step("pay").state, Completed)
    assert (after.state, after.step("ship").state) == (Pending(), Waiting())


@pytest.mark.proves("SCH-17")
def test_an_order_whose_last_step_was_done_is_processed_whatever_the_time():
    """A claim completes it after the deadline, too."""
    marked = checked(order(done(), deadline=OPEN))
    assert isinstance(marked.after.state, Pending)
    assert isinstance(claimed(marked.after, OVER).after.state, Processed)


@pytest.mark.proves("SCH-17", "SUP-3")
def test_an_attempt_that_expires_at_the_deadline_is_not_tried_again():
    """It counts as ever; the deadline comes first in the history."""
    it = order(running(), SHIP, state=BY, deadline=OPEN)
    runs = replace(it, steps=(replace(it.steps[0], state=Running(DUE)), SHIP))
    ended = checked(runs)
    assert kinds(ended) == [e.DeadlinePassed, e.AttemptExpired, e.OrderEnded]
    assert (ended.after.failures, ended.after.cause) == (1, LATE)
    assert ended.after.step("pay").retry_by is None
    undone = checked(replace(runs, deadline=UNDO))
    assert kinds(undone) == [e.DeadlinePassed, e.AttemptExpired, e.Recovered]
    assert undone.after.is_late


@pytest.mark.proves("SCH-17")
def test_a_step_that_has_failed_names_the_end_of_a_late_order():
    """Its own rule may ask for the undo; so may the deadline."""
    failed = step(Failed(DECLINED), "pay", on_failure=OnFailure.ERROR)
    late = order(failed, SHIP, deadline=PASSED, state=Pending())
    assert claimed(late, OVER).events[-1].step == "pay"
    back = claimed(replace(late, deadline=replace(UNDO, state=DeadlineState.PASSED)), OVER)
    assert back.after.direction is Direction.UNDO


@pytest.mark.proves("SCH-17", "SCH-12")
def test_what_is_awaited_from_outside_is_awaited_no_more():
    """A late answer to it is refused."""
    waits = external(AwaitingExternalEvent(HOUR + DUE))
    it = order(running(), waits, state=BY, deadline=OPEN)
    runs = replace(it, steps=(replace(it.steps[0], state=Running(OVER)), waits))
    marked = checked(runs)
    assert kinds(marked) == [e.DeadlinePassed, e.ExternalRequestCancelled]
    assert isinstance(marked.after.step("approve").state, RequestCancelled)
    with pytest.raises(EventNotAcceptedError) as refused:
        decide.record(marked.after, ExternalEvent(step="approve", result={}), OVER)
    assert refused.value.cause.facts["why"] == LATE.as_json()


@pytest.mark.proves("SCH-17", "OPR-7")
@pytest.mark.parametrize(
    ("deadline", "state"), [(OPEN, InError(Outcome.FAILED)), (UNDO, Pending())]
)
def test_the_deadline_of_an_order_on_hold_stands(deadline, state):
    """What has to be undone waits for the release."""
    held = order(done(), SHIP, hold=Hold("grace", "", NOW), deadline=deadline)
    late = checked(held).after
    assert (late.state, late.hold) == (state, held.hold)
    assert (late.blocked() is None) is False


@pytest.mark.parametrize(
    "changes",
    [
        {"direction": Direction.UNDO},
        {"state": InError(Outcome.FAILED)},
        {"state": Processed()},
        {"deadline": PASSED, "steps": (running(),), "state": BY},
        {"deadline": None},
    ],
)
def test_no_other_order_is_checked(changes):
    """Not an undo, not one that ended, and none twice."""
    it = replace(order(step(), deadline=OPEN), **changes)
    assert recover(it, NOW + TIMEOUT, {}, TOLERANCE, 12) is None
    if not it.has_any(Running):
        assert checked(it) is None


# Attempts before it


@pytest.mark.proves("SCH-17", "SCH-2")
def test_an_attempt_has_to_be_over_by_the_deadline():
    """The request says so to its agent, and expires then; the attempt keeps its start."""
    now = DUE - TIMEOUT / 3
    begun = claimed(order(step(), deadline=OPEN), now)
    runs = begun.after.step("pay")
    assert (runs.complete_by, runs.started_at) == (DUE, now)
    assert begun.after.derived.complete_by == DUE
    (message,) = begun.messages
    assert message.time_to_live == TIMEOUT / 3
    assert decode(AgentRequest, message.body).complete_by == DUE


def test_an_attempt_that_ends_before_the_deadline_has_its_whole_timeout():
    """Nothing of it is kept beside that."""
    runs = claimed(order(step(), deadline=OPEN), NOW).after.step("pay")
    assert runs.state == Running(NOW + TIMEOUT)
    assert runs.started_at == NOW


def test_a_deadline_that_only_alerts_cuts_nothing_short():
    """The order goes on behind it."""
    now = DUE - TIMEOUT / 3
    after = claimed(order(step(), deadline=ALERT), now).after
    assert after.step("pay").complete_by == now + TIMEOUT
    assert after.derived.complete_by == DUE


@pytest.mark.proves("SCH-17")
def test_nobody_claims_an_order_to_start_something_at_its_deadline():
    """The reason says for whom it waits."""
    it = order(step(), deadline=OPEN)
    assert claimed(it, DUE) == NotClaimed(NotClaimable.DEADLINE_PASSED)
    assert claimed(it, DUE - INSTANT).after.state == BY


@pytest.mark.proves("SCH-17", "ANS-7")
def test_an_operator_moves_no_answer_behind_the_deadline_of_the_order():
    """Nor does the release of a hold."""
    waits = external(AwaitingExternalEvent(NOW + TIMEOUT))
    it = order(waits, state=BY, deadline=OPEN)
    moved = actions.extend_deadline(it, "approve", DUE, "late", NOW)
    assert moved.after.step("approve").complete_by == DUE
    with pytest.raises(InvalidError) as refused:
        actions.extend_deadline(it, "approve", DUE + INSTANT, "late", NOW)
    assert [fault.code for fault in refused.value.faults] == ["after-due-by"]
    held = replace(it, hold=Hold("grace", "", NOW))
    command = OperatorCommand(operator="grace", note="", arguments=NoArguments())
    released = release.ACTION.apply(held, command, DUE)
    assert released.after.step("approve").complete_by == DUE
    free = replace(held, deadline=ALERT)
    assert release.ACTION.apply(free, command, DUE).after.step("approve").complete_by > DUE


# After it


@pytest.mark.proves("SCH-17", "OPR-3")
@pytest.mark.parametrize(("now", "state"), [(DUE, "lifted"), (DUE - INSTANT, "open")])
def test_an_order_that_is_resubmitted_after_its_deadline_goes_on_without_one(now, state):
    """Before it, the deadline stays."""
    failed = step(Failed(DECLINED), "pay")
    it = order(failed, state=InError(Outcome.FAILED), deadline=OPEN, cause=DECLINED)
    command = OperatorCommand(operator="grace", note="", arguments=NoArguments())
    after = resubmit.ACTION.apply(it, command, now).after
    assert (str(after.deadline.state), after.deadline.due_by) == (state, DUE)
    assert after.ready


@pytest.mark.proves("SCH-17", "OPR-3")
def test_an_order_that_stopped_at_its_deadline_can_be_resubmitted():
    """No step of it has failed, and what was awaited is asked for anew."""
    waits = replace(external(AwaitingExternalEvent(DUE)), counts=Counts(attempts=1))
    stopped = checked(order(done(), waits, state=BY, deadline=OPEN)).after
    assert resubmit.ACTION.why_not(stopped, OVER) is None
    command = OperatorCommand(operator="grace", note="", arguments=NoArguments())
    after = resubmit.ACTION.apply(stopped, command, OVER).after
    assert (after.state, after.deadline.state) == (Pending(), DeadlineState.LIFTED)
    assert [one.name for one in after.ready] == ["approve"]


@pytest.mark.proves("SCH-17", "OPR-3")
@pytest.mark.parametrize(
    "wait",
    [
        Waiting(TIMED_OUT),
        Delayed(OVER + HOUR, TIMED_OUT),
        BackingOff(OVER + HOUR, NOT_BEGUN),
        CoolingDown(OVER + HOUR, TIMED_OUT),
    ],
)
def test_a_step_that_the_deadline_interrupted_starts_afresh_with_a_resubmit(wait):
    """Its pause ends, and its counts: one more failure does not stop the order again."""
    counts = Counts(attempts=9, failures=1, uncounted=4, unbegun=4, cooldowns=1, overloaded=3)
    stopped = checked(order(replace(in_doubt(wait), counts=counts), SHIP, deadline=OPEN)).after
    command = OperatorCommand(operator="grace", note="", arguments=NoArguments())
    after = resubmit.ACTION.apply(stopped, command, OVER).after
    assert after.step("pay") == replace(in_doubt(Waiting()), counts=Counts(attempts=9))
    assert (after.step("ship"), after.derived.not_before) == (SHIP, None)
