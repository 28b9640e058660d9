"""What a step shows of its state and its effect."""

from dataclasses import replace

import pytest

from engine.domain import states
from engine.domain.effects import Done, InDoubt
from engine.domain.states import (
    PATTERN_STATE,
    STATES,
    BackingOff,
    Completed,
    CoolingDown,
    Deferred,
    Delayed,
    Failed,
    LateEffectsPossible,
    NothingToUndo,
    Running,
    Scheduled,
    State,
    UndoFailed,
    UndoPending,
    Waiting,
)
from tests.support.engine_records import (
    DECLINED,
    HOUR,
    KEY,
    NOW,
    TIMED_OUT,
    in_doubt,
    running,
    step,
)

LATER = NOW + HOUR
FIRST = "s3cret"


def test_every_state_has_a_word_of_the_pattern():
    """Rows, API and events show it beside the exact state. Only an undo waits for late effects."""
    named = [kind for kind in vars(states).values() if isinstance(kind, type)]
    kinds = {kind for kind in named if issubclass(kind, State)}
    groups = {base for kind in kinds for base in kind.__bases__}
    assert kinds - groups == {*STATES, LateEffectsPossible}
    assert len(set(PATTERN_STATE.values())) == 7


@pytest.mark.parametrize(
    ("wait", "at"),
    [
        (Waiting(TIMED_OUT), None),
        (Delayed(LATER, TIMED_OUT), LATER),
        (BackingOff(LATER), LATER),
        (CoolingDown(LATER, TIMED_OUT), LATER),
        (Deferred(LATER), LATER),
        (Deferred(None), None),
        (Scheduled(LATER), LATER),
        (LateEffectsPossible(LATER), LATER),
    ],
)
def test_a_wait_says_when_the_next_attempt_may_start(wait, at):
    """The same forward and back."""
    assert step(wait).not_before == at
    assert step(UndoPending(wait)).not_before == at
    assert step(UndoPending(wait)).wait == wait


def test_what_does_not_wait_has_no_next_attempt():
    """Nor a time for it."""
    assert running().wait is None
    assert running().not_before is None
    assert running().retry_by is None


@pytest.mark.parametrize("state", [Failed(DECLINED), UndoFailed(DECLINED), NothingToUndo(DECLINED)])
def test_what_has_failed_says_why(state):
    """So does a wait after an attempt without a result; what is done has no cause."""
    assert step(state).cause == DECLINED
    assert step(UndoPending(Waiting(TIMED_OUT))).cause == TIMED_OUT
    assert step(Completed(), effect=Done(key=KEY)).cause is None


def test_the_agent_is_that_of_the_last_request():
    """Before the first one, the name of the capability stands for it."""
    assert step(capability="bank").agent == "bank"
    other = replace(KEY, agent="bank-2")
    assert step(effect=InDoubt(key=other)).agent == "bank-2"


def test_effects_are_final_once_neither_a_late_call_nor_accepted_work_can_come():
    """UND-2, AGT-11."""
    late = replace(KEY, effects_final_at=LATER)
    assert step(effect=InDoubt(key=late)).effects_final_at == LATER
    assert step(effect=InDoubt(key=late, answer_by=LATER + HOUR)).effects_final_at == LATER + HOUR
    assert step(effect=InDoubt(key=KEY, answer_by=NOW)).effects_final_at == NOW
    assert step(effect=InDoubt(key=KEY)).effects_final_at is None
    assert step().effects_final_at is None


def test_only_a_running_attempt_expires():
    """SUP-2: after the tolerance for clocks that differ."""
    attempt = in_doubt(Running(LATER))
    assert not attempt.is_expired(LATER + HOUR, HOUR)
    assert attempt.is_expired(LATER + HOUR + (LATER - NOW) / 10**6, HOUR)
    assert not in_doubt(Waiting()).is_expired(LATER + 2 * HOUR, HOUR)


def test_a_secret_is_shown_nowhere():
    """ANS-6: in no log line, for one."""
    assert FIRST not in repr(replace(step(), callback_token=FIRST))
