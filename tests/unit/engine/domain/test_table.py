"""The table of states and events by itself, and every verb against it."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

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
    Wait,
    Waiting,
)
from engine.domain.steps import Counts
from engine.domain.submitted_order import OnFailure
from engine.domain.table import (
    BY_OPERATOR,
    TABLE,
    Feature,
    TableEvent,
    events_in,
    features_of,
    kind_of,
    kinds,
    name_of,
    reachable,
    rows,
    targets,
    undo_pending,
)
from engine.domain.verbs import InvalidTransitionError
from engine.features import conditions, cooldown, key_generations
from engine.features.external_events import steps as external_events
from tests.support.engine_records import (
    DECLINED,
    HOUR,
    KEY,
    NOT_BEGUN,
    NOW,
    OVERLOADED,
    TIMED_OUT,
    TIMEOUT,
    external,
    step,
)

LATER = NOW + HOUR
ROOT = Path(__file__).parents[4]


CORE_WAITS = kinds(Waiting, Delayed, BackingOff)
UNDO_REQUESTED = undo_pending(Waiting, LateEffectsPossible)
BY_ITSELF = frozenset(TableEvent) - BY_OPERATOR
"""What may happen to a step without an operator's action on it."""
KINDS = {kind for _, *both in rows() for kind in both}
"""Every state that the table names."""


class TestTenQuestions:
    """Ten questions to the table alone, with its answers: its summary."""

    def test_what_may_happen_to_a_step_whose_answer_is_lost(self):
        """It waits for its next attempt, cools down, fails, is skipped, or is undone with its order."""
        given_up = kinds(Failed, Skipped)
        after = CORE_WAITS | kinds(CoolingDown) | given_up | UNDO_REQUESTED
        assert targets(TableEvent.EXPIRE, Running) == after

    def test_what_may_happen_to_a_step_whose_service_answered_202(self):
        """It is deferred. Its service is asked again, or answers over the callback URL."""
        assert targets(TableEvent.DEFER, Running) == kinds(Deferred)
        assert targets(TableEvent.START, Deferred) == kinds(Running)
        assert targets(TableEvent.EXTERNAL_EVENT, Deferred) == kinds(Completed)
        assert targets(TableEvent.REFUSE, Deferred) == kinds(Failed, Skipped)

    def test_what_becomes_of_its_steps_when_an_order_is_cancelled(self):
        """A step at an agent ends first, an event is not awaited any more; all else is undone, or stays."""
        cancel = TableEvent.REQUEST_UNDO
        assert targets(cancel, Running) == kinds()
        assert targets(cancel, Waiting) == kinds(Waiting) | UNDO_REQUESTED
        assert targets(cancel, Deferred) == kinds(Deferred) | UNDO_REQUESTED
        assert targets(cancel, Completed) == kinds(Completed) | UNDO_REQUESTED
        assert targets(cancel, Failed) == kinds(Failed) | UNDO_REQUESTED
        assert targets(TableEvent.CANCEL_REQUEST, AwaitingExternalEvent) == kinds(RequestCancelled)
        assert targets(cancel, RequestCancelled) == kinds(RequestCancelled)

    def test_what_may_happen_to_a_step_in_doubt_whose_key_was_forgotten(self):
        """It fails before its next attempt. An operator has it done under a new key, skips or settles it.

        When a key is forgotten is data of the effect: the table says what may happen then.
        """
        for wait in (Waiting, Delayed, BackingOff, Deferred, CoolingDown):
            assert targets(TableEvent.FAIL, wait) == kinds(Failed, Skipped)
        assert targets(TableEvent.FAIL, UndoPending, Waiting) == kinds(UndoFailed)
        assert targets(TableEvent.RETRY_WITH_NEW_KEY, Failed) == kinds(Waiting)
        assert targets(TableEvent.SKIP, Failed) == kinds(Skipped)
        assert targets(TableEvent.SETTLE, Failed) == kinds(Completed, Failed)

    def test_what_may_happen_to_a_failed_step_without_an_operator(self):
        """It is undone with its order, and never tried again."""
        assert events_in(Failed) & BY_ITSELF == {TableEvent.REQUEST_UNDO}
        assert reachable(Failed, by=BY_ITSELF).isdisjoint(kinds(Running, Completed))

    def test_what_may_happen_to_a_completed_step_without_an_operator(self):
        """It is undone with its order; no reply, time-out or external event changes it."""
        assert events_in(Completed) & BY_ITSELF == {TableEvent.REQUEST_UNDO}
        after = kinds(Completed, Undoing, Undone, UndoFailed, NothingToUndo)
        waits = (Waiting, Delayed, BackingOff, Deferred, CoolingDown, LateEffectsPossible)
        assert reachable(Completed, by=BY_ITSELF) == after | undo_pending(*waits)

    def test_what_may_happen_to_an_undo(self):
        """It is done, tried again after an attempt without a result, or fails; refused, perhaps nothing stands."""
        waits = undo_pending(Waiting, Delayed, BackingOff, CoolingDown)
        assert targets(TableEvent.COMPLETE, Undoing) == kinds(Undone)
        assert targets(TableEvent.EXPIRE, Undoing) == waits | kinds(UndoFailed)
        assert targets(TableEvent.REFUSE, Undoing) == kinds(UndoFailed, NothingToUndo)

    def test_what_may_happen_to_a_step_whose_external_event_does_not_come(self):
        """It is awaited again, cools down, fails or is skipped; there is nothing to undo."""
        after = kinds(Waiting, CoolingDown, Failed, Skipped)
        assert targets(TableEvent.EXPIRE, AwaitingExternalEvent) == after

    def test_which_states_a_step_does_not_leave_by_itself(self):
        """With a result, or if its event is not awaited any more, it needs an operator, or its undo."""
        left = {
            kind for kind in KINDS if not events_in(*kind) & BY_ITSELF - {TableEvent.REQUEST_UNDO}
        }
        results = kinds(Completed, Skipped, Failed, UndoFailed, Undone, NothingToUndo)
        assert left == results | kinds(RequestCancelled)

    def test_what_is_over(self):
        """An undone step, and one with nothing to undo. All others can still be finished or undone."""
        over = {kind for kind in KINDS if not events_in(*kind)}
        assert over == kinds(Undone, NothingToUndo)
        ends = over | kinds(Completed, Skipped)
        assert [kind for kind in KINDS - ends if not reachable(*kind, by=TableEvent) & ends] == []


def test_every_state_is_reached_and_every_other_one_is_left():
    """No state is a dead end but the two that are over; new steps are waiting, or have a condition."""
    reached = {after[0] for _, _, after in rows()} | {ConditionPending}
    left = {before[0] for _, before, after in rows() if before != after}
    assert reached == set(STATES)
    assert left == set(STATES) - {Undone, NothingToUndo}


def test_a_state_in_which_the_undo_waits_has_the_name_of_its_wait_too():
    """Tables and messages name it so."""
    assert name_of((Running,)) == "Running"
    assert name_of((UndoPending, Waiting)) == "UndoPending(Waiting)"


def test_no_attempt_starts_but_from_a_wait():
    """What is completed, failed, skipped or under way never starts again (SCH-9)."""
    assert [kind for kind in TABLE[TableEvent.START] if not issubclass(kind[-1], Wait)] == []


def test_optional_behaviour_has_the_name_of_its_module():
    """The table says of each transition to which it belongs."""
    modules = {path.name.partition(".")[0] for path in (ROOT / "engine/features").glob("[a-z]*")}
    assert {feature.replace(" ", "_") for feature in Feature} == modules
    assert features_of(TableEvent.START, (Waiting,), (Running,)) == set()
    both = {Feature.CONDITIONS, Feature.EXTERNAL_EVENTS}
    assert features_of(TableEvent.START, (Scheduled,), (AwaitingExternalEvent,)) == both
    assert features_of(TableEvent.RETRY_WITH_NEW_KEY, (Failed,), (Waiting,)) == {
        Feature.KEY_GENERATIONS
    }


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
    TableEvent.START: (
        lambda it: verbs.start(it, KEY, LATER),
        lambda it: external_events.await_event(it, LATER),
    ),
    TableEvent.COMPLETE: (lambda it: verbs.complete(it, {}),),
    TableEvent.DEFER: (lambda it: verbs.defer(it, NOW, retry_after=HOUR, answer_within=HOUR),),
    TableEvent.NOT_ATTEMPTED: (
        lambda it: verbs.not_attempted(it, NOW, retry_after=HOUR),
        lambda it: verbs.not_attempted(it, LATER, retry_after=0 * HOUR),
    ),
    TableEvent.REFUSE: (lambda it: verbs.refuse(it, DECLINED),),
    TableEvent.FAIL: (lambda it: verbs.fail(it, DECLINED),),
    TableEvent.EXPIRE: (
        lambda it: verbs.expire(it, NOW, TIMED_OUT),
        lambda it: verbs.expire(it, NOW, TIMED_OUT, delay=HOUR),
        lambda it: verbs.expire_uncounted(it, LATER, NOT_BEGUN, unbegun=1),
        lambda it: verbs.expire_uncounted(it, NOW, TIMED_OUT, unbegun=0),
        lambda it: verbs.expire_overloaded(it, LATER, OVERLOADED),
        lambda it: verbs.expire_overloaded(it, NOW, OVERLOADED),
        lambda it: verbs.give_up_unbegun(it, NOW, NOT_BEGUN),
        lambda it: verbs.expire_in_undo(it, NOW),
        lambda it: external_events.expire_event(it, NOW),
    ),
    TableEvent.REQUEST_UNDO: (verbs.request_undo,),
    TableEvent.RESET: (verbs.reset,),
    TableEvent.SKIP: (verbs.skip,),
    TableEvent.SETTLE: (lambda it: verbs.settle_done(it, {}), verbs.settle_not_done),
    TableEvent.END_COOLDOWN: (cooldown.end_cooldown,),
    TableEvent.RETRY_WITH_NEW_KEY: (key_generations.retry_with_new_key,),
    TableEvent.CONDITION_MET: (conditions.condition_met,),
    TableEvent.CONDITION_NOT_MET: (lambda it: conditions.skip_by_condition(it, "is_large"),),
    TableEvent.SCHEDULE: (lambda it: conditions.schedule(it, LATER),),
    TableEvent.EXTERNAL_EVENT: (
        lambda it: external_events.complete_by_event(it, {}),
        lambda it: external_events.complete_by_callback(it, {}),
        lambda it: external_events.refuse_early(it, DECLINED),
    ),
    TableEvent.CANCEL_REQUEST: (external_events.cancel_request,),
    TableEvent.MOVE_DEADLINE: (lambda it: external_events.move_deadline(it, LATER),),
}
RULES = (
    {},
    {"threshold": 1},
    {"threshold": 1, "on_failure": OnFailure.CONTINUE},
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
