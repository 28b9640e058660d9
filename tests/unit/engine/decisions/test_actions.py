"""What operators do to an order: whether it makes sense, and what it changes."""

from dataclasses import replace

import pytest

from engine.decisions.actions import cancel
from engine.decisions.actions.action import NoArguments, OperatorCommand, StepArguments
from engine.decisions.actions.settle import SettleArguments
from engine.decisions.operator_actions import ACTIONS, BY_NAME
from engine.domain import events as e
from engine.domain.causes import Cause, Code
from engine.domain.effects import Done, InDoubt, NotDone, UndoInDoubt
from engine.domain.errors import RefusedError
from engine.domain.orders import Hold, InError, Pending, Processed, Processing
from engine.domain.states import (
    AwaitingExternalEvent,
    Completed,
    CoolingDown,
    Failed,
    RequestCancelled,
    Running,
    Scheduled,
    Skipped,
    UndoPending,
    Waiting,
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
SKIP, SETTLE, RETRY_WITH_NEW_KEY = map(BY_NAME.get, ("skip", "settle", "retry-with-new-key"))


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


TWO = (in_doubt(Failed(DECLINED), name="a"), step(Failed(DECLINED), "b", NotDone(key=KEY)))
BOTH_FAILED = order(*TWO, step(name="c", uses=("a",)), state=InError(Outcome.FAILED))


def test_of_several_failed_steps_the_named_one_is_skipped():
    """OPR-4: whether another needs its result is asked of that step too."""
    assert code_of(SKIP.why_not_now(BOTH_FAILED, StepArguments(), NOW)) is Code.SEVERAL_STEPS
    assert SKIP.why_not_now(BOTH_FAILED, StepArguments(step="b"), NOW) is None
    needed = SKIP.why_not_now(BOTH_FAILED, StepArguments(step="a"), NOW)
    assert code_of(needed) is Code.RESULT_NEEDED
    command = OperatorCommand(operator="grace", note=NOTE, arguments=StepArguments(step="b"))
    after = SKIP.apply(BOTH_FAILED, command, NOW).after
    assert [type(one.state) for one in after.steps] == [Failed, Skipped, Waiting]


def test_of_several_steps_in_doubt_the_named_one_is_settled():
    """OPR-12: with its own answer, and once its own calls can take effect no more."""
    late = InDoubt(key=replace(KEY, effects_final_at=LATER))
    first = step(Failed(DECLINED), "a", late)
    both = order(first, in_doubt(Failed(DECLINED), name="b"), state=InError(Outcome.FAILED))
    several = SETTLE.why_not_now(both, SettleArguments(was_done=False), NOW)
    assert several == Cause(Code.SEVERAL_STEPS, {"action": "settle", "steps": ["a", "b"]})
    not_done = SettleArguments(step="b", was_done=False)
    assert SETTLE.why_not_now(both, not_done, NOW) is None
    early = SETTLE.why_not_now(both, replace_step(not_done, "a"), NOW)
    assert code_of(early) is Code.LATE_EFFECT_POSSIBLE
    done = SettleArguments(step="b", was_done=True, answer={})
    command = OperatorCommand(operator="grace", note=NOTE, arguments=done)
    checked = SETTLE.checked(both, command, lambda order, name, answer: {"of": name})
    assert checked.arguments.answer == {"of": "b"}
    unnamed = replace(command, arguments=done.model_copy(update={"step": None}))
    with pytest.raises(RefusedError) as caught:
        SETTLE.checked(both, unnamed, lambda order, name, answer: answer)
    assert caught.value.cause == several


def replace_step(arguments, name):
    return arguments.model_copy(update={"step": name})


def test_a_step_gets_its_next_key_in_the_next_version_of_its_order():
    """AGT-12: of the order that the operator saw."""
    forgotten = InDoubt(key=replace(KEY, known_until=NOW - HOUR))
    failed = order(step(Failed(DECLINED), effect=forgotten), state=InError(Outcome.FAILED))
    command = OperatorCommand(operator="grace", note=NOTE, arguments=StepArguments())
    retried = RETRY_WITH_NEW_KEY.apply(failed, command, NOW)
    assert (retried.before, retried.after.state) == (failed, Pending())
    assert len(retried.messages) == 1


def test_actions_are_offered_in_one_sequence():
    """First what lets a failed order go on; no two have one name."""
    names = [action.name for action in ACTIONS]
    first = ["resubmit", "skip", "retry-with-new-key", "settle", "cancel"]
    then = ["hold", "release", "expedite"]
    assert [name for name in names if name in {*first, *then}] == [*first, *then]
    assert list(BY_NAME) == names
