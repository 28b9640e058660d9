"""The state row of an order: what is read of it is the order that was written, or nothing."""

import json
from dataclasses import replace
from datetime import timezone

import pytest

from engine.declarations.workflow import MAX_STEPS
from engine.domain import states
from engine.domain.causes import MAX_LENGTH, Cause
from engine.domain.deadlines import Deadline, DeadlineState, WhenLate
from engine.domain.effects import Done, InDoubt, NotDone, RequestKey, UndoInDoubt
from engine.domain.errors import UnreadableRowError
from engine.domain.steps import NOTHING_SENT, Counts, StepIn, StepRules
from engine.domain.submitted_order import MAX_KEPT, OnFailure
from engine.storage.order_rows import columns_of_state, order_of, state_in, state_record
from engine.storage.orders import record_of
from engine.storage.tables import MAX_CHARACTERS, Stored, entity, stored_form
from tests.support.builders import NOW, ORDER_ID, orders, refusal, seconds

KEY = f"{ORDER_ID}|state"
PSP = RequestKey(agent="payment", provider="psp")
LATER = NOW + seconds(60)
DECLINED = refusal("declined")
COOLING = states.CoolingDown(LATER, DECLINED, LATER)


def order_with(*own):
    """Return an order with these steps."""
    return replace(orders.processing(), steps=own)


def step_in(state, effect=NOTHING_SENT):
    rules = StepRules(capability="payment", timeout=seconds(5), threshold=3)
    return StepIn(
        name="payment", rules=rules, counts=Counts(attempts=1), effect=effect, state=state
    )


def row_of(order):
    return stored_form(columns_of_state(state_record(order)))


def read(row):
    return record_of(Stored(KEY, entity("b03", KEY, row), "1"))


def again(order):
    """Return the order as it is read from the row that it is written to."""
    return order_of(order.submitted, read(row_of(order)), order.etag)


def changed(row, change):
    """Return the row with its first step, which is JSON, changed in place."""
    (first, *others) = json.loads(row["Steps"])
    change(first)
    return {**row, "Steps": json.dumps([first, *others])}


def first_step(row):
    return json.loads(row["Steps"])[0]


# What a person reads


def test_a_step_has_the_documented_word_and_beside_it_its_exact_state():
    """And what is known of its effect; what is empty is left out."""
    row = row_of(order_with(step_in(COOLING, InDoubt(key=PSP))))
    time = "2026-01-31T08:16:00Z"
    assert json.loads(row["Steps"]) == [
        {
            "Name": "payment",
            "State": "NotStarted",
            "ExactState": {
                "Is": "CoolingDown",
                "Until": time,
                "Cause": {"Code": "refused", "Facts": {"detail": "declined"}},
                "RetryBy": time,
            },
            "Effect": {"Is": "InDoubt", "Key": {"Agent": "payment", "Provider": "psp"}},
            "Attempts": 1,
            "FailureCount": 0,
        }
    ]
    assert json.loads(row["Rules"]) == [
        {"Capability": "payment", "TimeoutSeconds": 5.0, "Threshold": 3}
    ]


def test_the_name_of_a_duration_gives_its_unit():
    """Those who read rows need no other document."""
    rules = StepRules(
        capability="payment",
        timeout=seconds(5),
        threshold=3,
        max_retry_pause=seconds(6),
        cooldown=seconds(7),
        late_effect_window=seconds(8),
    )
    step = replace(step_in(states.Waiting(), NotDone(key=PSP)), rules=rules)
    (written,) = json.loads(row_of(order_with(step))["Rules"])
    assert {name: value for name, value in written.items() if isinstance(value, float)} == {
        "TimeoutSeconds": 5.0,
        "MaxRetryPauseSeconds": 6.0,
        "CooldownSeconds": 7.0,
        "LateEffectWindowSeconds": 8.0,
    }


def test_a_time_is_written_in_utc():
    """Whatever its zone is."""
    there = LATER.astimezone(timezone(seconds(3600)))
    (here,), (elsewhere,) = (
        json.loads(row_of(order_with(step_in(states.Running(time))))["Steps"])
        for time in (LATER, there)
    )
    assert here == elsewhere


@pytest.mark.parametrize("result", [{}, {"reference": "r"}], ids=["empty", "full"])
def test_a_result_has_a_column_of_its_own(result):
    """An empty one too: the step has a result."""
    order = order_with(step_in(states.Completed(), Done(key=PSP, result=result)))
    assert json.loads(row_of(order)["Result00"]) == result
    assert again(order) == order


def test_no_scheduler_handles_an_order_but_the_row_still_says_who_claimed_it():
    """As while an external event is awaited."""
    order = order_with(step_in(states.AwaitingExternalEvent(LATER)))
    order = replace(order, derived=replace(order.derived, locked_by=None))
    row = row_of(order)
    assert ("LockedBy" in row, row["ClaimedBy"]) == (False, order.state.instance)
    assert again(order) == order


@pytest.mark.proves("SUB-2")
def test_the_longest_steps_of_the_longest_order_fit_into_their_columns():
    """Each of them with the longest texts, and each after all steps before it."""
    names = [f"s{number:02}-{'x' * 37}" for number in range(MAX_STEPS)]
    order = order_with(*(longest(name, names[:place]) for place, name in enumerate(names)))
    assert again(order) == order
    assert len(row_of(order)["Rules"]) <= MAX_CHARACTERS


def longest(name, before):
    """Return a step whose objects take the most characters."""
    rules = StepRules(
        title="t" * 60,
        capability=name,
        timeout=seconds(86399),
        threshold=1000,
        on_failure=OnFailure.COOLDOWN,
        after=tuple(before),
        uses=tuple(before),
        undoable=True,
        pivot=True,
        cooldown=seconds(10**6),
        max_cooldowns=1000,
        late_effect_window=seconds(10**6),
        fingerprint="f" * 8,
    )
    cause = refusal("\U0001f9a0" * MAX_LENGTH).shortened()
    key = RequestKey(agent=name, provider=name, generation=9, known_until=NOW, effects_final_at=NOW)
    return StepIn(
        name=name,
        rules=rules,
        counts=Counts(attempts=10**6, failures=1000, uncounted=10**6, cooldowns=1000, overloaded=9),
        effect=UndoInDoubt(key=key, result={"r": "x" * (MAX_KEPT - 8)}, answer_by=NOW),
        state=states.UndoPending(states.CoolingDown(LATER, cause, NOW)),
        callback_token="t" * 43,
    )


# What is refused


def without(name):
    return lambda step: step.pop(name)


def with_part(part, **values):
    return lambda step: step[part].update(values)


RUNNING = {"Is": "Running", "CompleteBy": "2026-01-31T08:16:00Z"}
BROKEN = {
    "no exact state": without("ExactState"),
    "no effect": without("Effect"),
    "no count of attempts": without("Attempts"),
    "an exact state without its data": lambda step: step["ExactState"].pop("Until"),
    "an exact state of no name": lambda step: step["ExactState"].pop("Is"),
    "an unknown exact state": with_part("ExactState", Is="Melting"),
    "a state for which only an undo waits": with_part("ExactState", Is="LateEffectsPossible"),
    "another exact state than the state": lambda step: step.update(ExactState=RUNNING),
    "another state than the exact state": lambda step: step.update(State="Running"),
    "an unknown state": lambda step: step.update(State="Melting"),
    "an exact state that is a text": lambda step: step.update(ExactState="CoolingDown"),
    "an unknown effect": with_part("Effect", Is="Melted"),
    "an effect that is a text": lambda step: step.update(Effect="InDoubt"),
    "a key without a provider": lambda step: step["Effect"]["Key"].pop("Provider"),
    "a key that is a text": with_part("Effect", Key="k"),
    "a time without a zone": with_part("ExactState", Until="2026-01-31T08:16:00"),
    "a cause without a code": with_part("ExactState", Cause={"Facts": {}}),
}


@pytest.mark.proves("FLT-6")
@pytest.mark.parametrize("broken", BROKEN)
def test_a_step_that_cannot_be_read_is_refused_with_its_row(broken):
    """No part of the order is read without the rest."""
    row = row_of(order_with(step_in(COOLING, InDoubt(key=PSP))))
    assert read(row)
    with pytest.raises(UnreadableRowError, match=ORDER_ID):
        read(changed(row, BROKEN[broken]))


FLAT_STEP = {
    "Name": "payment",
    "Capability": "payment",
    "Agent": "payment",
    "TimeoutSeconds": 5.0,
    "Threshold": 3,
    "OnFailure": "error",
    "State": "Failed",
    "Attempts": 1,
    "FailureCount": 0,
}
FORMER = {
    "flat steps": {},
    "a reason in place of a cause": {"Reason": "declined"},
}


@pytest.mark.proves("FLT-12")
@pytest.mark.parametrize("more", FORMER.values(), ids=FORMER)
def test_a_row_of_a_former_form_is_refused_with_its_cure(more):
    """It would be read without the cause, or the state, of the order."""
    row = row_of(order_with(step_in(states.Failed(DECLINED), NotDone(key=PSP))))
    former = {**row, "Steps": json.dumps([{**FLAT_STEP, **more}]), **more}
    del former["Rules"]
    with pytest.raises(UnreadableRowError, match=rf"{ORDER_ID}.*make clean"):
        read(former)


# What a newer version of the app has added


def with_additions(row):
    """Return the row as a newer version writes it, which has more to say of each part."""

    def add(step):
        step["Region"] = ["eu"]
        step["ExactState"]["Mood"] = 1
        step["ExactState"]["Cause"]["Seen"] = 2
        step["Effect"]["Sure"] = 0.5
        step["Effect"]["Key"]["Zone"] = {"a": None}

    (rules,) = json.loads(row["Rules"])
    return {**changed(row, add), "Rules": json.dumps([{**rules, "Budget": 7}])}


def additions_in(row):
    """Return what is there of these additions."""
    step, (rules,) = first_step(row), json.loads(row["Rules"])
    state, effect = step["ExactState"], step["Effect"]
    found = (step.get("Region"), state.get("Mood"), state.get("Cause", {}).get("Seen"))
    return (*found, effect.get("Sure"), effect.get("Key", {}).get("Zone"), rules.get("Budget"))


ALL = (["eu"], 1, 2, 0.5, {"a": None}, 7)
DOUBTFUL = step_in(COOLING, InDoubt(key=PSP))
KEPT = {
    "nothing": (DOUBTFUL, ALL),
    "a count": (replace(DOUBTFUL, counts=Counts(attempts=2)), ALL),
    "the data of the state": (
        replace(DOUBTFUL, state=replace(COOLING, until=NOW, cause=refusal("no"))),
        ALL,
    ),
    "the cause": (
        replace(DOUBTFUL, state=replace(COOLING, cause=Cause("melted"))),
        (["eu"], 1, None, 0.5, {"a": None}, 7),
    ),
    "the state, which has the same cause": (
        replace(DOUBTFUL, state=states.Waiting(DECLINED)),
        (["eu"], None, 2, 0.5, {"a": None}, 7),
    ),
    "the state": (
        replace(DOUBTFUL, state=states.Running(NOW)),
        (["eu"], None, None, 0.5, {"a": None}, 7),
    ),
    "the key": (
        replace(DOUBTFUL, effect=InDoubt(key=replace(PSP, generation=1))),
        (["eu"], 1, 2, 0.5, None, 7),
    ),
    "the effect": (
        replace(DOUBTFUL, effect=Done(key=PSP)),
        (["eu"], 1, 2, None, {"a": None}, 7),
    ),
    "the rules": (
        replace(DOUBTFUL, rules=replace(DOUBTFUL.rules, fingerprint="f")),
        ALL,
    ),
}


@pytest.mark.proves("FLT-12")
@pytest.mark.parametrize(("after", "kept"), KEPT.values(), ids=KEPT)
def test_an_addition_of_a_newer_version_stays_as_long_as_what_it_belongs_to(after, kept):
    """What it says of a former state, effect, cause or key says nothing of the next one."""
    order = order_with(DOUBTFUL)
    (added,) = read(with_additions(row_of(order))).steps
    assert added == DOUBTFUL
    order = order_with(replace(after, unknown=added.unknown))
    assert additions_in(row_of(order)) == kept
    assert again(order) == order


def test_an_addition_stays_inside_the_wait_of_an_undo():
    """The wait is an object inside the exact state."""
    order = order_with(step_in(states.UndoPending(), Done(key=PSP)))
    row = changed(row_of(order), lambda step: step["ExactState"]["Wait"].update(Mood=1))
    (step,) = read(row).steps
    assert first_step(row_of(order_with(step)))["ExactState"] == first_step(row)["ExactState"]
    cooling = replace(step, state=states.UndoPending(COOLING))
    assert "Mood" not in row_of(order_with(cooling))["Steps"]


@pytest.mark.parametrize("name", ["CoolingDown", "Wait", "Rules", "Key", "Code", "Result"])
def test_an_addition_may_have_a_name_that_means_something_elsewhere(name):
    """In the step, and in its exact state."""
    order = order_with(step_in(COOLING, InDoubt(key=PSP)))
    row = changed(
        row_of(order),
        lambda step: step.update({name: "x", "ExactState": {**step["ExactState"], name: {"y": 1}}}),
    )
    (step,) = read(row).steps
    assert first_step(row_of(order_with(step))) == first_step(row)


def test_a_result_stays_that_only_a_newer_version_keeps_in_that_state():
    """Its column comes back."""
    row = {**row_of(order_with(DOUBTFUL)), "Result00": '{"partly":"done"}'}
    (step,) = read(row).steps
    assert step == DOUBTFUL
    assert row_of(order_with(step)) == row


def test_state_in_takes_nothing_of_a_step_for_a_column_of_the_order():
    """And keeps what is no column of either."""
    row = {**row_of(order_with(DOUBTFUL)), "Result07": "x", "Colour": "green"}
    assert state_in(row).state.more == {"Result07": "x", "Colour": "green"}


# A deadline


@pytest.mark.proves("SCH-17")
@pytest.mark.parametrize("state", DeadlineState)
def test_a_deadline_is_kept_with_its_order(state):
    """While nothing has come of it, nothing is written of that."""
    deadline = Deadline(
        due_by=LATER, due_soon_at=NOW, when_late=WhenLate.UNDO, state=DeadlineState(state)
    )
    order = replace(order_with(step_in(states.Waiting())), deadline=deadline)
    row = row_of(order)
    columns = {name: row[name] for name in ("DueBy", "DueSoonAt", "WhenLate")}
    assert columns == {"DueBy": LATER, "DueSoonAt": NOW, "WhenLate": "undo"}
    assert row.get("DeadlineState", "open") == str(state)
    assert again(order).deadline == deadline


def test_an_order_without_a_deadline_has_no_column_of_it():
    """As before there were deadlines."""
    row = row_of(order_with(step_in(states.Waiting())))
    assert {"DueBy", "DueSoonAt", "WhenLate", "DeadlineState"}.isdisjoint(row)
    with pytest.raises(UnreadableRowError):
        read({**row, "DueBy": LATER})


@pytest.mark.proves("SCH-17")
def test_an_attempt_that_the_deadline_cuts_short_keeps_its_start():
    """Of any other the start follows from its timeout."""
    runs = step_in(states.Running(LATER, NOW), NotDone(key=PSP))
    row = row_of(order_with(runs))
    assert first_step(row)["ExactState"]["StartedAt"] == "2026-01-31T08:15:00Z"
    assert again(order_with(runs)).steps[0].started_at == NOW
    whole = step_in(states.Running(LATER), NotDone(key=PSP))
    assert "StartedAt" not in first_step(row_of(order_with(whole)))["ExactState"]
    assert whole.started_at == LATER - seconds(5)
