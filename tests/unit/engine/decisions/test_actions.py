"""What operators do to an order: whether it makes sense, and what it changes."""

from dataclasses import replace

from engine.decisions.actions import cancel
from engine.decisions.actions.action import NoArguments, OperatorCommand
from engine.decisions.operator_actions import ACTIONS, BY_NAME
from engine.domain import events as e
from engine.domain.causes import Cause, Code
from engine.domain.effects import Done, UndoInDoubt
from engine.domain.orders import Hold, InError, Pending, Processed, Processing
from engine.domain.states import (
    AwaitingExternalEvent,
    Completed,
    CoolingDown,
    Failed,
    RequestCancelled,
    Running,
    Scheduled,
    UndoPending,
)
from engine.domain.statuses import Direction, Outcome
from engine.domain.submitted_order import Priority
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
    running,
    step,
)
from tests.support.engine_scheduling import kinds, only_step

LATER = NOW + HOUR
BY = Processing("scheduler-1")
HELD = Hold("grace", "look", NOW - HOUR)
NOTE = "the customer asked"
CANCEL, HOLD, RELEASE, EXPEDITE = map(BY_NAME.get, ("cancel", "hold", "release", "expedite"))


def code_of(cause):
    return cause and cause.code


def acted(action, order):
    command = OperatorCommand(operator="grace", note=NOTE, arguments=NoArguments())
    return action.apply(order, command, NOW)


def why_not(action, order):
    return action.why_not(order, NOW)


def test_an_order_is_put_on_hold_once_and_only_while_it_is_open():
    """OPR-7: nothing of one that has ended starts by itself."""
    held = acted(HOLD, order(step()))
    assert held.after.hold == Hold("grace", NOTE, NOW)
    assert held.after.ready == ()
    assert held.messages == ()
    assert held.events == (e.ActionTaken(action=e.Action.HOLD, note=NOTE),)
    assert why_not(HOLD, order(step())) is None
    assert code_of(why_not(HOLD, held.after)) is Code.ON_HOLD_ALREADY
    ended = Cause(Code.NOTHING_TO_HOLD, {"state": "Processed"})
    assert why_not(HOLD, order(step(), state=Processed())) == ended


def test_a_release_moves_the_deadline_of_an_external_event():
    """OPR-7: by the time of the hold; and wakes a scheduler."""
    awaited = external(AwaitingExternalEvent(NOW + TIMEOUT))
    both = order(awaited, step(), hold=HELD)
    released = acted(RELEASE, both)
    assert released.after.hold is None
    assert released.after.step("approve").complete_by == NOW + TIMEOUT + HOUR
    assert len(released.messages) == 1
    assert why_not(RELEASE, both) is None
    assert code_of(why_not(RELEASE, released.after)) is Code.NOT_ON_HOLD
    again = acted(RELEASE, released.after)
    assert again.after.step("approve") == released.after.step("approve")


def test_an_expedited_order_is_claimed_before_others():
    """SCH-11, OPR-8: its cooldown ends, and other dates stay."""
    cooling = in_doubt(CoolingDown(LATER, TIMED_OUT))
    fast = acted(EXPEDITE, order(cooling, step(Scheduled(LATER), "b")))
    assert fast.after.priority is Priority.HIGH
    assert [one.not_before for one in fast.after.steps] == [None, LATER]
    assert len(fast.messages) == 1
    assert code_of(why_not(EXPEDITE, fast.after)) is Code.EXPEDITED_ALREADY
    assert why_not(EXPEDITE, order(cooling, priority=Priority.HIGH)) is None
    ended = Cause(Code.NOTHING_TO_EXPEDITE, {"state": "Processed"})
    assert why_not(EXPEDITE, order(state=Processed())) == ended


def test_expediting_ends_the_cooldown_of_an_undo_too():
    """Engine 23."""
    cooling = step(UndoPending(CoolingDown(LATER, TIMED_OUT)), effect=UndoInDoubt(key=KEY))
    slow = order(cooling, direction=Direction.UNDO, priority=Priority.HIGH)
    assert why_not(EXPEDITE, slow) is None
    fast = acted(EXPEDITE, slow)
    assert only_step(fast).not_before is None


def test_a_cancelled_order_is_undone():
    """OPR-4, UND-1: nobody outside is left waiting (SCH-12)."""
    awaited = external(AwaitingExternalEvent(NOW + TIMEOUT))
    done = step(Completed(), effect=Done(key=KEY))
    it = order(done, awaited, state=BY)
    cancelled = cancel.cancelled(it, cancel.CUSTOMER, NOTE, NOW)
    assert cancelled.after.cause == Cause(Code.CANCELLED, {"by": "customer"})
    assert cancelled.after.state == Pending()
    assert isinstance(cancelled.after.step("pay").state, UndoPending)
    assert isinstance(cancelled.after.step("approve").state, RequestCancelled)
    assert kinds(cancelled) == [e.ActionTaken, e.ExternalRequestCancelled]
    assert len(cancelled.messages) == 1


def test_a_scheduler_keeps_a_cancelled_order_while_an_agent_has_a_step():
    """SCH-12."""
    cancelled = acted(CANCEL, order(running(), state=BY))
    assert cancelled.after.state == BY
    assert isinstance(only_step(cancelled).state, Running)
    assert cancelled.after.direction is Direction.UNDO


def test_an_order_in_error_can_be_cancelled():
    """OPR-4."""
    failed = order(in_doubt(Failed(DECLINED)), state=InError(Outcome.FAILED))
    assert why_not(CANCEL, failed) is None
    assert acted(CANCEL, failed).after.state == Pending()


def test_an_order_that_is_over_or_past_its_pivot_cannot_be_cancelled():
    """OPR-4, UND-6: nor a second time."""
    assert code_of(why_not(CANCEL, order(state=Processed()))) is Code.PROCESSED_ALREADY
    undone = order(state=InError(Outcome.UNDONE), direction=Direction.UNDO)
    assert code_of(why_not(CANCEL, undone)) is Code.UNDONE_ALREADY
    back = order(step(), direction=Direction.UNDO)
    assert why_not(CANCEL, back).facts == {"has_stopped": False}
    stuck = replace(back, state=InError(Outcome.UNDO_INCOMPLETE))
    assert why_not(CANCEL, stuck).facts == {"has_stopped": True}
    passed = order(step(Completed(), effect=Done(key=KEY), pivot=True))
    assert why_not(CANCEL, passed).facts == {"steps": ["pay"]}


def test_actions_are_offered_in_one_sequence():
    """First what lets a failed order go on; no two have one name."""
    names = [action.name for action in ACTIONS]
    first = ["resubmit", "skip", "retry-with-new-key", "settle", "cancel"]
    then = ["hold", "release", "expedite"]
    assert [name for name in names if name in {*first, *then}] == [*first, *then]
    assert list(BY_NAME) == names
