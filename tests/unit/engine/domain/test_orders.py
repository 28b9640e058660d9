"""An order: which of its steps may start, and how its verbs change it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from engine.domain import verbs
from engine.domain.causes import Cause, Code
from engine.domain.effects import Done, InDoubt, NotDone
from engine.domain.orders import (
    ORDER_TABLE,
    Hold,
    InError,
    InvalidOrderTransitionError,
    OrderEvent,
    Pending,
    Processed,
    Processing,
)
from engine.domain.states import (
    AwaitingExternalEvent,
    Completed,
    CoolingDown,
    Failed,
    NothingToUndo,
    RequestCancelled,
    Running,
    Scheduled,
    Skipped,
    SkipReason,
    UndoFailed,
    Undoing,
    Undone,
    UndoPending,
    Waiting,
)
from engine.domain.statuses import Direction, NotClaimable, Outcome
from tests.support.engine_records import (
    DECLINED,
    HOUR,
    KEY,
    NOW,
    TIMED_OUT,
    TIMEOUT,
    external,
    in_doubt,
    order,
    refused,
    running,
    step,
)

LATER = NOW + HOUR
UP = NOW + TIMEOUT
TOLERANCE = timedelta(seconds=1)
CANCELLED = Cause(Code.CANCELLED, {"by": "operator"})
HOLD = Hold("grace", "look", NOW)
BY = Processing("scheduler-1")


def names(steps):
    return [step.name for step in steps]


def undone(*steps, **changes):
    return order(*steps, direction=Direction.UNDO, **changes)


def done(name, state=None, **changes):
    return step(state or Completed(), name, effect=Done(key=KEY), **changes)


# What may start


def test_steps_are_ready_once_all_before_them_are_finished():
    """SCH-10: also those before an external step that was completed before its turn."""
    pay, approve, ship = step(name="pay"), external(Completed(), after=("pay",)), None
    ship = step(name="ship", after=("approve",))
    assert names(order(pay, approve, ship).ready) == ["pay"]
    assert names(order(done("pay"), approve, ship).ready) == ["ship"]
    skipped = step(Skipped(SkipReason.FAILED, DECLINED), "pay")
    assert names(order(skipped, approve, ship).ready) == ["ship"]


def test_steps_side_by_side_are_ready_together_also_before_their_time():
    """SCH-10."""
    both = order(step(name="a"), step(Scheduled(LATER), "b"))
    assert names(both.ready) == ["a", "b"]


def test_no_step_is_ready_while_the_order_is_on_hold_or_a_step_has_failed():
    """OPR-7, SCH-12."""
    assert order(step(), hold=HOLD).ready == ()
    assert order(step(), step(Failed(DECLINED), "b")).ready == ()


def test_an_undo_goes_back_in_the_reverse_order_of_dependence():
    """UND-1: a step waits for those after it, and for those that still run."""
    first = done("a", UndoPending())
    second = done("b", UndoPending(), after=("a",))
    assert names(undone(first, second).ready) == ["b"]
    assert names(undone(first, step(Undone(), "b", after=("a",))).ready) == ["a"]
    assert undone(first, running("b", after=())).ready == ()
    waiting = external(AwaitingExternalEvent(UP))
    assert undone(first, waiting).ready == ()
    under_way = done("b", Undoing(UP), after=("a",))
    assert undone(first, under_way).ready == ()


def test_a_step_is_kept_if_one_that_depends_on_it_could_not_be_undone():
    """UND-4: and the undo has nothing more to do then."""
    first = done("a", UndoPending())
    stuck = done("b", UndoFailed(DECLINED), after=("a",))
    assert undone(first, stuck).ready == ()
    assert not undone(first, stuck).still_to_undo()
    aside = done("c", UndoPending())
    assert undone(first, stuck, aside).still_to_undo()
    assert undone(stuck, done("c", Undoing(UP))).still_to_undo()
    nothing = refused(NothingToUndo(DECLINED), name="b", after=("a",))
    assert names(undone(first, nothing).ready) == ["a"]


def test_the_date_of_the_order_holds_for_every_step_and_for_no_undo():
    """SUB-9 (engine 3): also for a step after one that was completed before its turn."""
    early = external(Completed())
    dated = order(early, step(name="pay", after=("approve",)), not_before=LATER)
    assert dated.next_start(NOW) == LATER
    assert dated.starts_at(step(Scheduled(LATER + HOUR))) == LATER + HOUR
    assert undone(done("pay", UndoPending()), not_before=LATER).next_start(NOW) is None


def test_the_first_step_says_when_the_order_may_go_on():
    """Nothing waits for a time that has come."""
    first = step(CoolingDown(LATER, TIMED_OUT), "a")
    assert order(first, step(Scheduled(LATER + HOUR), "b")).next_start(NOW) == LATER
    assert order(first, step(name="b")).next_start(NOW) is None
    assert order(first).next_start(LATER) is None
    assert order().next_start(NOW) is None


def test_why_an_order_cannot_be_claimed():
    """SCH-1: what could start, or could end the order, decides; then the time."""
    assert order(step()).not_claimable(NOW) is None
    assert order(step(), state=Processed()).not_claimable(NOW) is NotClaimable.ENDED
    assert order(step(), state=InError(Outcome.FAILED)).not_claimable(NOW) is NotClaimable.ENDED
    assert order(step(), hold=HOLD).not_claimable(NOW) is NotClaimable.HELD
    assert order(running()).not_claimable(NOW) is NotClaimable.RUNS
    assert order(running(), step(name="b")).not_claimable(NOW) is None
    dated = order(step())
    dated = replace(dated, derived=replace(dated.derived, not_before=LATER))
    assert dated.not_claimable(NOW) is NotClaimable.NOT_YET
    assert dated.not_claimable(LATER) is None


def test_a_step_is_overdue_after_the_tolerance():
    """SUP-2; an external event is not while the order is on hold, for its deadline moves (OPR-7)."""
    both = order(running("a"), external(AwaitingExternalEvent(UP)))
    assert both.overdue(UP + TOLERANCE, TOLERANCE) == ()
    late = UP + 2 * TOLERANCE
    assert names(both.overdue(late, TOLERANCE)) == ["a", "approve"]
    assert names(replace(both, hold=HOLD).overdue(late, TOLERANCE)) == ["a"]


def test_a_pivot_is_passed_once_its_step_may_be_done():
    """UND-6: while it is being done, it may be."""
    passed = {
        "running": running(pivot=True),
        "done": done("pay", pivot=True),
        "in doubt": in_doubt(Failed(DECLINED), pivot=True),
        "skipped": step(Skipped(SkipReason.OPERATOR), pivot=True),
    }
    assert all(order(one).passed_pivots() == (one,) for one in passed.values())
    not_passed = refused(Failed(DECLINED), pivot=True), step(pivot=True), in_doubt(Waiting())
    assert order(*not_passed).passed_pivots() == ()


def test_accepted_work_that_is_refused_at_last_passes_no_pivot():
    """UND-6, AGT-11 (engine 5): the final word ends the doubt, and a cancel is possible again."""
    accepted = verbs.defer(running(pivot=True), NOW, retry_after=HOUR, answer_within=HOUR)
    assert order(accepted).passed_pivots()
    final = verbs.refuse(verbs.start(accepted, KEY, UP), DECLINED)
    assert order(final).passed_pivots() == ()


# The verbs


def test_an_order_goes_through_its_states():
    """SCH-2, SUP-3, SCH-5."""
    claimed = order(step()).claimed_by("scheduler-1")
    assert claimed.state == BY
    assert claimed.claimed_by("scheduler-2").state == Processing("scheduler-2")
    assert claimed.requeue().state == Pending()
    assert claimed.complete().state == Processed()
    ended = claimed.end(Outcome.FAILED, DECLINED)
    assert (ended.state, ended.cause) == (InError(Outcome.FAILED), DECLINED)


def test_every_other_way_is_refused():
    """What has ended is claimed, requeued, completed and ended no more; only an error is resumed."""
    for state in (Processed(), InError(Outcome.FAILED)):
        over = order(step(), state=state)
        tried = (
            lambda over=over: over.claimed_by("scheduler-1"),
            over.requeue,
            over.complete,
            lambda over=over: over.end(Outcome.FAILED, DECLINED),
        )
        events = (OrderEvent.CLAIM, OrderEvent.REQUEUE, OrderEvent.COMPLETE, OrderEvent.END)
        for event, verb in zip(events, tried, strict=True):
            with pytest.raises(InvalidOrderTransitionError) as refused:
                verb()
            assert (refused.value.event, refused.value.before) == (event, state)
    for state in (Pending(), BY, Processed()):
        with pytest.raises(InvalidOrderTransitionError):
            order(step(), state=state).resume()
    with pytest.raises(InvalidOrderTransitionError):
        order(step(), state=Processed()).request_undo(CANCELLED)


def test_no_order_ends_while_an_attempt_is_under_way():
    """SCH-12: no running step is left without somebody who looks at it."""
    for under_way in (running(), external(AwaitingExternalEvent(UP))):
        with pytest.raises(InvalidOrderTransitionError) as refused:
            order(under_way, state=BY).end(Outcome.FAILED, DECLINED)
        assert (refused.value.event, refused.value.before) == (OrderEvent.END, BY)


def test_every_change_of_an_order_is_one_of_its_table():
    """The two states that are over are reached, and left only from an error."""
    ways = {way for ways in ORDER_TABLE.values() for way in ways}
    assert {after for _, after in ways} == {Pending, Processing, Processed, InError}
    assert {before for before, _ in ways} == {Pending, Processing, InError}


def test_an_undo_is_requested_of_every_step_that_no_agent_has():
    """UND-1, SCH-12: the scheduler that handles the order keeps it while an agent has one."""
    before = order(done("a"), running("b"), external(RequestCancelled(), "c"), state=BY)
    turned = before.request_undo(CANCELLED)
    assert [type(one.state) for one in turned.steps] == [UndoPending, Running, RequestCancelled]
    assert (turned.direction, turned.cause, turned.state) == (Direction.UNDO, CANCELLED, BY)
    assert order(done("a"), state=BY).request_undo(CANCELLED).state == Pending()
    failed = order(refused(Failed(DECLINED)), state=InError(Outcome.FAILED))
    assert failed.request_undo(CANCELLED).state == Pending()


def test_an_external_event_has_to_be_given_up_before_the_undo_is_requested():
    """SCH-12: nobody outside is left waiting for an order that turns back."""
    with pytest.raises(verbs.InvalidTransitionError):
        order(external(AwaitingExternalEvent(UP))).request_undo(CANCELLED)


def test_a_resumed_order_starts_afresh():
    """OPR-3: no complete-by time from before is left."""
    tried = step(CoolingDown(LATER, TIMED_OUT, retry_by=LATER), "a", effect=InDoubt(key=KEY))
    failed = in_doubt(Failed(DECLINED), name="b")
    error = order(tried, failed, state=InError(Outcome.FAILED), cause=DECLINED, failures=2)
    resumed = error.resume(verbs.reset(failed))
    assert (resumed.state, resumed.cause, resumed.failures) == (Pending(), None, 0)
    assert resumed.step("a").retry_by is None
    assert resumed.step("b").state == Waiting()


def test_an_undo_that_is_resumed_has_a_cause():
    """The order is being undone, and the failure that ended it counts no more (engine 29 g)."""
    error = order(step(), state=InError(Outcome.UNDO_INCOMPLETE), cause=DECLINED)
    assert error.resume().cause is None
    assert replace(error, direction=Direction.UNDO).resume().cause == Cause(Code.UNDO_RESUMED)


def test_a_hold_is_put_and_released():
    """OPR-7."""
    held = order(step()).put_on_hold(HOLD)
    assert held.hold == HOLD
    assert held.release().hold is None


def test_steps_are_found_by_name_and_state():
    """A group of states is one of their base classes."""
    both = order(step(Failed(DECLINED), "a"), refused(UndoFailed(DECLINED), name="b"))
    assert both.step("b").name == "b"
    assert both.step("c") is None
    assert [one.state.cause for one in both.in_state(Failed)] == [DECLINED]
    assert both.has_any(Running, UndoFailed)
    assert not both.has_any(Running)
    assert both.with_steps() is both


def test_what_is_over():
    """Nothing is due for it any more: an operator has to act on any other error."""
    assert order(step(), state=Processed()).is_over
    assert order(step(), state=InError(Outcome.UNDONE)).is_over
    assert not order(step(), state=InError(Outcome.FAILED)).is_over
    assert not order(step(), state=InError(Outcome.UNDO_INCOMPLETE)).is_over
    assert not order(step()).has_ended


def test_a_step_that_was_not_done_is_no_reason_to_keep_another():
    """UND-4: only what may stand keeps those before it."""
    first = done("a", UndoPending())
    nothing = step(NothingToUndo(DECLINED), "b", effect=NotDone(key=KEY), after=("a",))
    assert undone(first, nothing).still_to_undo()
