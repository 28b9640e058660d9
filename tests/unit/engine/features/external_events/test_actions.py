"""What operators do about an external event that is awaited: whether it makes sense, and what it changes."""

from dataclasses import replace

import pytest

from engine.decisions.errors import ActionRefusedError
from engine.declarations.workflow import LONGEST_WAIT
from engine.domain import events as e
from engine.domain.causes import Code
from engine.domain.errors import InvalidError
from engine.domain.orders import Hold, Processing
from engine.domain.states import AwaitingExternalEvent, Completed, Failed
from engine.domain.statuses import Direction
from engine.features.external_events.actions import extend_deadline, new_callback_url, remind
from engine.features.external_events.steps import with_callback_token
from tests.support.engine_records import (
    DECLINED,
    HOUR,
    NOW,
    TIMEOUT,
    external,
    order,
    running,
    step,
)
from tests.support.engine_scheduling import only_step

NOTE = "they are on holiday"
AWAITED = external(AwaitingExternalEvent(NOW + TIMEOUT))
OPEN = order(AWAITED, state=Processing("scheduler-1"))
LATER = NOW + HOUR
FORMER, FRESH = "former", "fresh"


def extended(until, it=OPEN, name="approve"):
    return extend_deadline(it, name, until, NOTE, NOW)


def reminded(it, name="approve"):
    return remind(it, name, NOTE, NOW)


def with_new_url(it, name="approve"):
    return new_callback_url(it, name, FRESH, NOTE, NOW)


ACTIONS = {
    "extend": lambda it, name="approve": extended(LATER, it, name),
    "remind": reminded,
    "new URL": with_new_url,
}
EVERY = pytest.mark.parametrize("act", ACTIONS.values(), ids=ACTIONS)


def refused_because(act, it, name="approve"):
    with pytest.raises(ActionRefusedError) as refusal:
        act(it, name)
    return refusal.value.cause


def test_an_event_is_awaited_until_its_new_deadline():
    """ANS-7: the supervisor looks at the order then, and nobody is woken before."""
    moved = extended(LATER)
    assert only_step(moved).state == AwaitingExternalEvent(LATER)
    assert moved.after.derived.complete_by == LATER
    assert moved.after.version == OPEN.version + 1
    assert moved.messages == ()
    taken = {"action": e.Action.EXTEND_DEADLINE, "step": "approve", "note": NOTE}
    assert moved.events == (e.DeadlineMoved(**taken, until=LATER),)


def test_a_deadline_is_in_the_future_and_not_too_far():
    """ANS-7: it may also be earlier than it was."""
    assert only_step(extended(NOW + TIMEOUT / 2)).complete_by == NOW + TIMEOUT / 2
    assert only_step(extended(NOW + LONGEST_WAIT)).complete_by == NOW + LONGEST_WAIT
    for until in (NOW, NOW + LONGEST_WAIT + TIMEOUT):
        with pytest.raises(InvalidError) as refused:
            extended(until)
        assert [fault.place for fault in refused.value.faults] == ["until"]


def test_the_deadline_of_an_order_on_hold_moves_at_its_release_alone():
    """OPR-7: a reminder goes out all the same."""
    held = replace(OPEN, hold=Hold("grace", "look", NOW))
    cause = refused_because(ACTIONS["extend"], held)
    assert (cause.code, cause.facts) == (Code.DEADLINE_ON_HOLD, {"by": "grace"})
    assert only_step(reminded(held)) == AWAITED


def test_a_reminder_changes_nothing_but_the_history():
    """ANS-7: the deadline stays."""
    decided = reminded(OPEN)
    assert only_step(decided) == AWAITED
    assert decided.after.state == OPEN.state
    taken = {"action": e.Action.REMIND, "step": "approve", "note": NOTE}
    assert decided.events == (e.StepActionTaken(**taken),)
    assert decided.messages == ()


def test_a_new_callback_url_ends_the_former_one():
    """ANS-6: its token is in no event. A step may get one before its turn."""
    for it in (AWAITED, external()):
        known = order(with_callback_token(it, FORMER), state=Processing("scheduler-1"))
        renewed = with_new_url(known)
        assert only_step(renewed).callback_token == FRESH
        assert only_step(renewed).state == it.state
        taken = {"action": e.Action.NEW_CALLBACK_URL, "step": "approve", "note": NOTE}
        assert renewed.events == (e.StepActionTaken(**taken),)


@EVERY
def test_no_other_step_awaits_an_event(act):
    """ANS-7: neither one at an agent nor an unknown one."""
    it = order(running(), AWAITED)
    for name in ("pay", "lost"):
        cause = refused_because(act, it, name)
        assert cause.code is Code.NOT_EXTERNAL
        assert cause.facts == {"step": name, "steps": ["approve"]}


@EVERY
def test_an_event_that_would_not_count_is_awaited_no_more(act):
    """ANS-3: for the same reasons as the event would be refused for."""
    done = order(external(Completed()))
    assert refused_because(act, done).code is Code.EVENT_AFTER_COMPLETION
    failed = order(external(Failed(DECLINED)))
    assert refused_because(act, failed).code is Code.EVENT_AFTER_FAILURE
    back = order(external(), step(), direction=Direction.UNDO)
    assert refused_because(act, back).code is Code.EVENT_DURING_UNDO


def test_nobody_is_reminded_of_an_event_before_its_turn():
    """ANS-7: and it has no deadline yet."""
    for name in ("extend", "remind"):
        cause = refused_because(ACTIONS[name], order(external()))
        assert cause.code is Code.EVENT_NOT_AWAITED_YET
        assert cause.facts == {"step": "approve", "state": "NotStarted"}
