"""The table of states and events by itself, and every verb against it."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from engine_records import DECLINED, HOUR, KEY, NOT_BEGUN, NOW, TIMED_OUT, TIMEOUT, external, step

from core.orders import OnFailure
from engine.domain import verbs
from engine.domain.effects import Answered, Done, InDoubt, NotDone, NothingSent, UndoInDoubt
from engine.domain.states import (
    STATES,
    AwaitingExternalEvent,
    BackingOff,
    Completed,
    ConditionPending,
    CoolingDown,
    Deferred,
    Delayed,
    Failed,
    LateEffectsPossible,
    NothingToUndo,
    RequestCancelled,
    Running,
    Scheduled,
    Skipped,
    SkipReason,
    State,
    UndoFailed,
    Undoing,
    Undone,
    UndoPending,
    Waiting,
)
from engine.domain.steps import Counts
from engine.domain.table import (
    TABLE,
    Event,
    Feature,
    events_in,
    features_of,
    kind_of,
    name_of,
    rows,
)
from engine.domain.verbs import InvalidTransitionError
from engine.features import conditions, cooldown, external_events, key_generations

LATER = NOW + HOUR
ROOT = Path(__file__).parents[4]


def leads_to(event, *kind):
    """The names of the states to which an event leads in a state; none if it may not come."""
    return {name_of(after) for after in TABLE[event].get(kind, ())}


WAITS = {"Waiting", "Delayed", "BackingOff", "CoolingDown"}
UNDO_WAITS = {f"UndoPending({name})" for name in WAITS}


class TestTenQuestions:
    """What the table answers by itself (Done when)."""

    def test_a_step_whose_answer_is_lost(self):
        """It is tried again, cools down, is given up, or is undone if the order turned back."""
        expected = {*WAITS, "Failed", "Skipped"}
        expected |= {"UndoPending(Waiting)", "UndoPending(LateEffectsPossible)"}
        assert leads_to(Event.EXPIRE, Running) == expected

    def test_a_step_whose_service_accepted_the_work(self):
        """It waits in a state of its own, from which it is asked again, or completed over its callback."""
        assert leads_to(Event.DEFER, Running) == {"Deferred"}
        assert leads_to(Event.START, Deferred) == {"Running"}
        assert leads_to(Event.EXTERNAL_EVENT, Deferred) == {"Completed"}

    def test_a_step_that_waits_for_its_service_when_the_order_is_cancelled(self):
        """It is undone if it has an undo, perhaps once no late call can take effect."""
        undone = {"UndoPending(Waiting)", "UndoPending(LateEffectsPossible)"}
        assert leads_to(Event.REQUEST_UNDO, Deferred) == {"Deferred", *undone}

    def test_a_step_that_an_agent_has_when_the_order_is_cancelled(self):
        """The agent answers or expires first: the request cannot come before (SCH-12)."""
        assert leads_to(Event.REQUEST_UNDO, Running) == set()
        assert leads_to(Event.REQUEST_UNDO, AwaitingExternalEvent) == set()

    def test_a_step_in_doubt_whose_key_was_forgotten(self):
        """No attempt starts: it fails, and an operator lets it be done under a new key, skips or settles it."""
        assert leads_to(Event.FAIL, Waiting) == {"Failed", "Skipped"}
        assert leads_to(Event.RETRY_WITH_NEW_KEY, Failed) == {"Waiting"}
        assert leads_to(Event.SKIP, Failed) == {"Skipped"}
        assert leads_to(Event.SETTLE, Failed) == {"Completed", "Failed"}

    def test_an_undo_whose_answer_is_lost(self):
        """It is tried again, cools down, or is given up; nothing else becomes of it."""
        assert leads_to(Event.EXPIRE, Undoing) == {*UNDO_WAITS, "UndoFailed"}

    def test_an_undo_that_the_service_refuses(self):
        """The effect stands, or there was none."""
        assert leads_to(Event.REFUSE, Undoing) == {"UndoFailed", "NothingToUndo"}

    def test_an_external_event_that_does_not_come(self):
        """It is awaited again or given up; no back-off, and nothing to undo."""
        expected = {"Waiting", "CoolingDown", "Failed", "Skipped"}
        assert leads_to(Event.EXPIRE, AwaitingExternalEvent) == expected

    def test_a_completed_step_is_only_ever_undone(self):
        """No reply, time-out or action changes it; only the undo of the order does."""
        assert events_in(Completed()) == {Event.REQUEST_UNDO}

    def test_what_is_over(self):
        """No event leads out of an undone step, or of one with nothing to undo."""
        assert events_in(Undone()) == events_in(NothingToUndo(DECLINED)) == set()


def test_every_state_is_reached_and_every_other_one_is_left():
    """No state is a dead end but the two that are over; new steps are waiting, or have a condition."""
    reached = {after[0] for _, _, after in rows()} | {ConditionPending}
    left = {before[0] for _, before, after in rows() if before != after}
    assert reached == set(STATES)
    assert left == set(STATES) - {Undone, NothingToUndo}


def test_no_attempt_starts_but_from_a_wait():
    """What is completed, failed, skipped or under way never starts again (SCH-9)."""
    for kind in TABLE[Event.START]:
        assert name_of(kind).removeprefix("UndoPending").strip("()") in {
            *WAITS,
            "Deferred",
            "Scheduled",
            "LateEffectsPossible",
        }


def test_optional_behaviour_has_the_name_of_its_module():
    """The table says of each transition to which it belongs."""
    modules = {path.stem for path in (ROOT / "engine/features").glob("[a-z]*.py")}
    assert {feature.replace(" ", "_") for feature in Feature} == modules
    assert features_of(Event.START, (Waiting,), (Running,)) == set()
    both = {Feature.CONDITIONS, Feature.EXTERNAL_EVENTS}
    assert features_of(Event.START, (Scheduled,), (AwaitingExternalEvent,)) == both
    assert features_of(Event.RETRY_WITH_NEW_KEY, (Failed,), (Waiting,)) == {Feature.KEY_GENERATIONS}


# Every verb in every state

WAITING: tuple[State, ...] = (
    Waiting(TIMED_OUT),
    Delayed(LATER, TIMED_OUT),
    BackingOff(LATER),
    Deferred(LATER),
    CoolingDown(LATER, TIMED_OUT),
)
ALL: tuple[State, ...] = (
    *WAITING,
    Deferred(None),
    ConditionPending(),
    Scheduled(LATER),
    Running(LATER),
    AwaitingExternalEvent(LATER),
    RequestCancelled(),
    Completed(),
    *map(Skipped, SkipReason),
    Failed(DECLINED),
    Failed(DECLINED, condition_pending=True),
    *map(UndoPending, (*WAITING, LateEffectsPossible(LATER))),
    Undoing(LATER),
    UndoFailed(DECLINED),
    NothingToUndo(DECLINED),
    Undone(),
)
LATE = replace(KEY, effects_final_at=LATER)
EFFECTS = (
    NothingSent(),
    NotDone(key=KEY),
    InDoubt(key=KEY),
    InDoubt(key=LATE, answer_by=LATER),
    Done(key=KEY),
    UndoInDoubt(key=KEY),
    Answered(),
)
VERBS = {
    Event.START: (
        lambda it: verbs.start(it, KEY, LATER),
        lambda it: external_events.await_event(it, LATER),
    ),
    Event.COMPLETE: (lambda it: verbs.complete(it, {}),),
    Event.DEFER: (lambda it: verbs.defer(it, NOW, retry_after=HOUR, answer_within=HOUR),),
    Event.NOT_ATTEMPTED: (
        lambda it: verbs.not_attempted(it, NOW, retry_after=HOUR),
        lambda it: verbs.not_attempted(it, LATER, retry_after=0 * HOUR),
    ),
    Event.REFUSE: (lambda it: verbs.refuse(it, DECLINED),),
    Event.FAIL: (lambda it: verbs.fail(it, DECLINED),),
    Event.EXPIRE: (
        lambda it: verbs.expire(it, NOW, TIMED_OUT),
        lambda it: verbs.expire(it, NOW, TIMED_OUT, delay=HOUR),
        lambda it: verbs.expire_uncounted(it, LATER, NOT_BEGUN),
        lambda it: verbs.expire_uncounted(it, NOW, NOT_BEGUN, delay=HOUR),
        lambda it: verbs.expire_in_undo(it, NOW),
        lambda it: external_events.expire_event(it, NOW),
    ),
    Event.REQUEST_UNDO: (verbs.request_undo,),
    Event.RESET: (verbs.reset,),
    Event.SKIP: (verbs.skip,),
    Event.SETTLE: (lambda it: verbs.settle_done(it, {}), verbs.settle_not_done),
    Event.END_COOLDOWN: (cooldown.end_cooldown,),
    Event.RETRY_WITH_NEW_KEY: (key_generations.retry_with_new_key,),
    Event.CONDITION_MET: (conditions.condition_met,),
    Event.CONDITION_NOT_MET: (lambda it: conditions.skip_by_condition(it, "is_large"),),
    Event.SCHEDULE: (lambda it: conditions.schedule(it, LATER),),
    Event.EXTERNAL_EVENT: (lambda it: external_events.complete_by_event(it, {}),),
    Event.CANCEL_REQUEST: (external_events.cancel_request,),
    Event.MOVE_DEADLINE: (lambda it: external_events.move_deadline(it, LATER),),
}
RULES = (
    {},
    {"threshold": 1},
    {"threshold": 1, "on_failure": OnFailure.GO_ON},
    {"threshold": 1, "max_cooldowns": 1, "cooldown": HOUR},
)


def made(state, effect, rules):
    """A step in this state with this effect, as far as both go together."""
    if isinstance(state, AwaitingExternalEvent | RequestCancelled):
        return external(state, **rules)
    return step(state, effect=effect, counts=Counts(attempts=1), timeout=TIMEOUT, **rules)


@pytest.fixture(scope="module")
def taken():
    """Every transition that a verb makes from some state with some data."""
    found = set()
    for state, effect, rules in product(ALL, EFFECTS, RULES):
        before = made(state, effect, rules)
        for event, functions in VERBS.items():
            if kind_of(state) not in TABLE[event]:
                continue
            for function in functions:
                try:
                    after = function(before)
                except (InvalidTransitionError, ValueError):  # data that do not go together
                    continue
                found.add((event, kind_of(before.state), kind_of(after.state)))
    return found


def test_the_verbs_make_every_transition_of_the_table_and_no_other(taken):
    """No row is there that no verb takes: the table says what happens, and not what might."""
    assert set(rows()) == taken


@pytest.mark.parametrize("state", ALL, ids=lambda state: name_of(kind_of(state)))
def test_a_verb_is_refused_in_every_state_that_the_table_does_not_name(state):
    """The error names the event and the step, and nothing changes."""
    for event, functions in VERBS.items():
        if kind_of(state) in TABLE[event]:
            continue
        for function in functions:
            with pytest.raises(InvalidTransitionError) as error:
                function(made(state, InDoubt(key=KEY), {}))
            assert error.value.event is event
            assert error.value.step.state == state


def test_a_verb_may_lead_only_where_the_table_says():
    """An agent's step is not awaited from outside: the result is checked too."""
    with pytest.raises(InvalidTransitionError) as error:
        external_events.await_event(step(Deferred(LATER), effect=InDoubt(key=KEY)), LATER)
    assert error.value.after is not None
