"""The new records say of every reachable order what today's say, and their table allows every change."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from converting import differences, lost
from deciding import (
    ACTIONS,
    AWAITED_ANEW,
    FOUND,
    NOTE,
    STEP_ACTIONS,
    acted_anew,
    acted_on_step_anew,
    acted_today,
    answered_anew,
    answered_today,
    awaited_anew,
    awaited_today,
    differ_in,
    repeated_today,
    submitted_anew,
    submitted_today,
)
from failed_orders import failed_orders

from bench.workflows import MEASURED
from core.agenda import ENDED_LISTS, LIST_OF, list_of
from core.answers import Answer
from core.business import Agent
from core.happenings import (
    Accepted,
    ActedOn,
    Answered,
    AskedOtherwise,
    BeginsLater,
    CoolsDown,
    Expired,
    NotNeeded,
    NotTried,
    RefusedEarly,
    Renewed,
    Settled,
    Skipped,
    StepCompleted,
    StepFailed,
    StepStarted,
    StepUndone,
    UndoRequested,
    Withdrawn,
)
from core.life import Direction, StepState
from core.messages import Submission, decode
from core.orders import OUTSIDE
from core.workflow import LONGEST_WAIT
from engine.conversion.records import to_new, to_old
from engine.decisions.actions import restore
from engine.decisions.submit import submit_again
from engine.domain.derive import changed
from engine.domain.states import STATES
from engine.domain.table import TABLE, Event, kind_of, name_of
from engine.domain.work_index import capability_of
from exploration.sample import MORE, gather
from exploration.worlds import SUBMISSION, TESTED, WAITS_BETWEEN
from operators.copies import Copied, restored
from operators.requests import OperatorRequest

OF_STEP = {
    StepStarted: {Event.START, Event.CONDITION_MET},
    StepCompleted: {Event.COMPLETE},
    StepUndone: {Event.COMPLETE},
    Answered: {Event.EXTERNAL_EVENT},
    RefusedEarly: {Event.EXTERNAL_EVENT},
    Withdrawn: {Event.CANCEL_REQUEST},
    StepFailed: {Event.REFUSE, Event.FAIL},
    NotNeeded: {Event.CONDITION_NOT_MET},
    BeginsLater: {Event.SCHEDULE},
    NotTried: {Event.NOT_ATTEMPTED},
    Accepted: {Event.DEFER},
    Expired: {Event.EXPIRE},
    CoolsDown: {Event.EXPIRE},
    Skipped: {Event.SKIP},
    Renewed: {Event.RETRY_WITH_NEW_KEY},
    Settled: {Event.SETTLE},
    AskedOtherwise: {Event.MOVE_DEADLINE},
}
"""What an event of the history does to its step."""
OF_ORDER = {
    UndoRequested: {Event.REQUEST_UNDO},
    Skipped: {Event.RESET},
    Renewed: {Event.RESET},
    Settled: {Event.RESET},
}
"""What it does to all steps of its order."""
OF_ACTION = {
    "resubmitted": {Event.RESET},
    "cancelled": {Event.REQUEST_UNDO},
    "hurried": {Event.END_COOLDOWN},
    "released": {Event.MOVE_DEADLINE},
}


def events_of(change, step):
    """What may have happened to a step by this change, as its history says."""
    found = set()
    if change.after.state.direction is Direction.UNDO:
        found.add(Event.REQUEST_UNDO)  # of a step that ran when its order turned back
    for event in change.entry.happened:
        if getattr(event, "step", None) == step.name:
            found |= OF_STEP.get(type(event), set())
        found |= OF_ORDER.get(type(event), set())
        if isinstance(event, ActedOn):
            found |= OF_ACTION.get(event.what, set())
    return found


def is_allowed(before, after, events):
    """Whether these events of the table lead from one step to the other, at most three in turn."""
    kinds = {kind_of(before.state)}
    goal = kind_of(after.state)
    if goal in kinds and before.counts.attempts == after.counts.attempts:
        return True
    for _ in range(3):
        kinds = {to for event in events for kind in kinds for to in TABLE[event].get(kind, ())}
        if goal in kinds:
            return True
    return False


def derived_otherwise(change, before, after):
    """What follows otherwise from the new records than it is recorded."""
    stored, now = change.after.state, change.entry.at
    if stored.updated_at != now:  # an erasure, which moves nothing
        return set()
    derived = changed(before, after, now).derived
    compared = {
        "complete_by": (stored.complete_by, derived.complete_by),
        "locked_by": (stored.locked_by, derived.locked_by),
        "not_before": (stored.not_before, derived.not_before),
        "ready_since": (stored.waits_since, derived.ready_since),
        "list": (list_of(change.after), in_lists(derived)),
        "work items": work_items(stored.agenda, derived, after),
    }
    return {name for name, (was, now) in compared.items() if was != now}


def in_lists(derived):
    """The list that has the order by one of its rows; several, if several rows list it."""
    kinds = [item.key.partition("|") for item in derived.work_items if item.is_listed]
    names = [
        ENDED_WORDS[rest.partition("|")[0]] if kind == ENDED else LIST_OF[kind]
        for kind, _, rest in kinds
    ]
    return " ".join(names)


ENDED = "_ended"
ENDED_WORDS = {str(situation): word for word, situation in ENDED_LISTS.items()}


def work_items(agenda, derived, after):
    """The recorded keys and the new ones; engine 7: today's have one lane of those that are needed."""
    keys = [item.key for item in derived.work_items]
    needed = {capability_of(step) for step in after.ready}
    if len(needed) > 1:
        lanes = {key.split("|")[2] for key in keys if key.startswith("!pending|")}
        assert lanes == needed
        keys = [key for key in keys if not key.startswith("!pending|")]
        agenda = [key for key in agenda if not key.startswith("!pending|")]
    return set(agenda), set(keys)


def faults(change, before, after):
    back = to_old(after)
    found = {f"lost: {name}" for name in differences(change.after.state, back.state)}
    for old, new in zip(change.after.steps, back.steps, strict=True):
        found |= {f"lost: {name}" for name in lost(old, new)}
    found |= {f"derived: {name}" for name in derived_otherwise(change, before, after)}
    for step in before.steps if before else ():
        then = after.step(step.name)
        if not is_allowed(step, then, events_of(change, step)):
            kinds = " -> ".join(name_of(kind_of(one.state)) for one in (step, then))
            found.add(f"not allowed: {kinds} by {change.entry.event}")
    return found


def check_records(sample):
    """Raise an error with the first change of each kind that both records tell otherwise."""
    found = {}
    for change in sample.changes.values():
        before, after = change.before and to_new(change.before), to_new(change.after)
        found |= dict.fromkeys(faults(change, before, after), change)
    assert found == {}


def check_events(sample):
    """Raise an error with the first external event of each kind that is decided otherwise.

    Engine 8: that of a service counts while its order turns back.
    """
    found = {}
    for change in sample.changes.values():
        order, now = change.after, change.entry.at + timedelta(seconds=3)
        is_undo = order.state.direction is Direction.UNDO
        for step, said in product(order.steps, SAID):
            if is_undo and step.state is StepState.RUNNING:
                continue
            answer = Answer(step=step.name, **said)
            again = answered_anew(order, answer, now)
            found |= dict.fromkeys(differ_in(answered_today(order, answer, now), again), change)
    assert found == {}


def check_actions(sample):
    """Raise an error with the first action of each kind that is refused or decided otherwise."""
    found = {}
    for change in sample.changes.values():
        found |= other_actions(change.after, change.entry.at + timedelta(seconds=3))
    assert found == {}


def other_actions(order, now):
    """Return what is refused or decided otherwise, of each action on an order and on its steps."""
    it, found = to_new(order), {}
    for name in ACTIONS:
        again = acted_anew(it, name, now)
        found |= dict.fromkeys(differ_in(acted_today(order, name, now), again), (name, order))
    # Of an order that has not ended, each action on a step is refused, whatever the step is.
    named = [step.name for step in order.steps if it.has_ended]
    for name, step in product(STEP_ACTIONS, (None, *named)):
        for said in FOUND if name == "settle" else ({},):
            again = acted_on_step_anew(it, name, step, now, said)
            today = acted_today(order, name, now, step=step, **said)
            found |= dict.fromkeys(differ_in(today, again), (name, step, said, order))
    return found


def check_restores(sample):
    """Raise an error with the first order that is restored otherwise.

    Today an external step is in doubt too, though it asks no service: it stays as it is.
    """
    found = {}
    for change, agents in product(sample.changes.values(), AGENTS):
        order, at = change.after, change.entry.at
        now, external = (
            at + timedelta(seconds=3),
            (one for one in order.steps if one.capability == OUTSIDE),
        )
        today = restored(
            order, REQUEST, Copied(at=at, agents=agents, clock_tolerance=TOLERANCE), now
        )
        today = replace(today, after=today.after.with_steps(*external))
        copied = restore.Copied(at=at, agents=agents, clock_tolerance=TOLERANCE)
        again = restore.decide(to_new(order), copied, NOTE, now)
        found |= dict.fromkeys(differ_in(today, again), (agents, change))
    assert found == {}


REQUEST = OperatorRequest(operator="grace", note=NOTE)
TOLERANCE = timedelta(seconds=1)
BANK = Agent(name="payment", offers="payment", address="payment")
AGENTS = (
    (BANK,),
    (
        replace(BANK, keys_last=timedelta(hours=1)),
        replace(BANK, name="other", provider="payment", keys_last=timedelta(minutes=1)),
    ),
    (BANK, replace(BANK, name="other")),
)
"""One service, two of one provider that forget keys, and two of different providers."""


def check_awaited(sample):
    """Raise an error with the first action on an awaited event that is refused or decided otherwise."""
    found = {}
    for change in sample.changes.values():
        order, now = change.after, change.entry.at + timedelta(seconds=3)
        orders = (order, order.put_on_hold("grace", NOTE, now)) if order.awaited() else (order,)
        for either, name in product(orders, AWAITED_ANEW):
            found |= otherwise_awaited(either, name, now)
    assert found == {}


def otherwise_awaited(order, name, now):
    """Return what is refused or decided otherwise, of one action on each step of an order."""
    it, found = to_new(order), {}
    for step in order.steps:
        for later in LATER if name == "extend" and step.waits else LATER[:1]:
            asked = name, step.name, now + later, now
            both = awaited_today(order, *asked), awaited_anew(it, *asked)
            found |= dict.fromkeys(differ_in(*both), (name, step.name, later, order))
    return found


NOW = datetime(2026, 1, 31, 8, 15, tzinfo=UTC)
SUBMITTED = (
    {},
    {"notBefore": "2026-01-31T09:15:00Z", "priority": "high", "replyTo": "status-web"},
    {"notBefore": "2026-01-31T07:15:00Z", "amount": 999},
)
"""What messages say otherwise than `SUBMISSION`."""
WORKFLOWS = (*MEASURED.workflows.all, *(world.workflow for world in MORE))


def check_submissions():
    """Raise an error with the first submission that is recorded or compared otherwise."""
    found = {}
    for workflow, more in product(WORKFLOWS, SUBMITTED):
        payload = MEASURED.payload
        message, body = sent(more)
        change = submitted_today(message, workflow, payload, NOW)
        again = submitted_anew(message, change.after.order, workflow, NOW)
        found |= dict.fromkeys(differ_in(change, again), (workflow, more))
        for kept, other in product((change.after, erased(change.after, payload)), SUBMITTED):
            message, body = sent(other)
            second = submitted_today(message, workflow, payload, NOW)
            today = repeated_today(kept, second, payload, body, NOW)
            anew = submit_again(to_new(kept), second.after.order, payload, body)
            found |= dict.fromkeys(differ_in(today, anew), (workflow, more, other))
    assert found == {}


def erased(order, payload):
    return replace(order, order=replace(order.order, payload=payload.erased(order.order.payload)))


def sent(more):
    body = json.dumps(SUBMISSION | more).encode()
    return decode(Submission, body), body


LATER = (timedelta(days=1), timedelta(), LONGEST_WAIT, LONGEST_WAIT + timedelta(seconds=1))
SAID = ({"result": {"said": "yes"}}, {"refusal": "no"})


def test_the_same_is_decided_on_the_new_records():
    """Nothing is lost, the same follows, and the table allows each change of a step by the event that it had."""
    few = gather(MORE, states=1, walks=3)  # a few courses of each world in which much can happen
    check_records(few)
    assert len(few.changes) > 100
    check_events(few)
    check_actions(few)
    check_awaited(few)
    check_restores(few)


def test_the_same_becomes_of_actions_on_failed_orders_on_the_new_records():
    """With two failed steps, of which everything may be known or in doubt."""
    message, _ = sent({})
    fresh = submitted_today(message, WAITS_BETWEEN, MEASURED.payload, NOW).after
    found = {}
    for order in failed_orders(fresh, NOW):
        found |= other_actions(order, NOW)
    assert found == {}


def test_the_same_becomes_of_submissions_on_the_new_records():
    """The same first version, and the same answer to a message about an order that is recorded."""
    check_submissions()


RARE: set[str] = set()
"""States that no world gets into."""


@pytest.mark.soak
def test_the_same_is_decided_on_the_new_records_wherever_an_exploration_gets():
    """In every state of a step that today's records tell apart, but for the differences that are named."""
    tested = (
        world for world in TESTED if "restore" not in world.operator
    )  # an external step is in doubt then
    many = gather((*MORE, *tested), states=250, walks=8)
    check_records(many)
    steps = [step for change in many.changes.values() for step in to_new(change.after).steps]
    kinds = {name_of(kind_of(step.state)) for step in steps}
    assert {state.__name__ for state in STATES} - {"UndoPending"} <= kinds | RARE
    assert len(many.changes) > 1000
    check_events(many)
    check_actions(many)
    check_awaited(many)
    check_restores(many)
