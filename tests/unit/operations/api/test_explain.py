"""Why an order is where it is, even one that somebody's mistake has stranded (OPR-2)."""

import json
from dataclasses import replace
from functools import partial

import pytest

from engine.decisions.transitions import HistoryEntry, Transition
from engine.declarations.business import AgentDefinition
from engine.declarations.workflow import StepDefinition, WorkflowDefinition, Workflows
from engine.domain.causes import Cause, Code
from engine.domain.deadlines import Deadline, DeadlineState, WhenLate
from engine.domain.derive import changed
from engine.domain.errors import UnreadableRowError
from engine.domain.orders import InError
from engine.domain.states import Delayed
from engine.domain.statuses import Direction, Outcome
from engine.storage.agent_health import FRESH, SILENCE, AgentHealth, AttemptFault
from engine.storage.order_rows import StateRecord, state_record
from engine.storage.orders import columns_of_record, record_of
from engine.storage.tables import Stored, entity, stored_form
from engine.words.catalogue import text
from engine.words.causes import words_of
from engine.words.history import in_words
from engine.words.values import clock
from operations.api.explain import explain
from operations.api.prospects import Actor, recovery, what_comes_otherwise
from scheduler.service import WAKE_UP_TIME
from testkit.memory import in_memory
from tests.support.apps import app
from tests.support.builders import (
    LONGEST_UPGRADE,
    NOW,
    ORDER_ID,
    PROVIDERS,
    TIMEOUT,
    acting_rules,
    answer,
    begun_by,
    claimed,
    fault_of_all,
    orders,
    scheduler,
    seconds,
    some,
    steps,
    supervisor,
    timed_out,
)

LATER = NOW + seconds(60)
SINCE = f"{NOW:%Y-%m-%d %H:%M:%S} UTC"


def explained(order, rules=acting_rules, at=NOW):
    return explain(order, [], rules, at)


@pytest.mark.proves("OPR-2", "FLT-12")
@pytest.mark.parametrize(
    "unknown", [{"workflow_version": 9}, {"workflow": "gone"}], ids=["version", "name"]
)
def test_of_a_workflow_that_nobody_knows_it_says_until_when_it_is_waited_for(unknown):
    """And what happens then."""
    order = orders.new(**unknown)
    explanation, ends = explained(order), NOW + LONGEST_UPGRADE
    assert explanation.next_actor is Actor.SCHEDULER
    assert explanation.next_at > ends
    name = f"workflow {order.workflow} version {order.workflow_version}"
    assert name in explanation.waiting_for
    assert name in explanation.summary
    assert f"{ends:%Y-%m-%d %H:%M:%S} UTC" in explanation.if_nothing_happens


@pytest.mark.proves("OPR-2")
def test_of_a_workflow_that_was_retired_it_says_how_the_order_ends():
    """At the next claim; if a step of it runs, that answers first, or its time is up."""
    assert explained(orders.new(workflow_version=0)).next_actor is Actor.SCHEDULER
    explanation = explained(orders.having(one_of_two_runs(), workflow_version=0))
    assert (explanation.next_actor, explanation.next_at) == (Actor.AGENT, LATER)
    assert f"{LATER + seconds(1):%Y-%m-%d %H:%M:%S} UTC" in explanation.if_nothing_happens


def one_of_two_runs():
    """An order that was given back for one of its steps while another runs for a minute."""
    other = steps.running(steps.new("other", timeout=seconds(60)), complete_by=LATER)
    order = orders.processing(steps=[steps.running(), other])
    return supervisor.recover(order, timed_out(order)).after


@pytest.mark.proves("OPR-2", "SCH-12")
def test_of_a_pending_order_that_waits_for_what_runs_it_says_that():
    """It begins after the other step answers; no scheduler and no newer app is waited for."""
    order = one_of_two_runs()
    order = orders.with_steps(order, steps.failed(order.step("payment")))
    explanation = explained(order)
    assert (explanation.next_actor, explanation.next_at) == (Actor.AGENT, LATER)
    assert explained(order, at=LATER + seconds(2)).next_actor is Actor.SUPERVISOR


@pytest.mark.proves("OPR-2", "AGT-3")
def test_of_the_agents_that_make_no_calls_it_says_nothing_of_one_that_does():
    """The backup is open, but another provider's: what was tried waits for its own."""
    now = timed_out(claimed())
    order = supervisor.recover(claimed(), now).after
    apart = replace(scheduler, providers={**PROVIDERS, "payment-backup": "another"})
    closed = AgentHealth(agent="payment", instance="1", at=now, open_until=now + seconds(30))
    rules = replace(acting_rules, claim=apart.claim, agent_health=(closed,))
    explanation = explained(order, rules, now)
    assert explanation.next_at == now + seconds(30)
    assert "payment-backup" not in explanation.waiting_for


@pytest.mark.proves("OPR-2")
def test_of_a_request_that_cannot_be_made_it_says_that():
    """It asks the rules, which try."""

    def broken(order, results):
        return {}["claimNumber"]

    step = StepDefinition(name="payment", capability="payment", operation="pay", request=broken)
    known = Workflows(WorkflowDefinition(name="payment-only", version=1, steps=(step,)))
    rules = replace(acting_rules, claim=replace(scheduler, workflows=known).claim)
    assert "KeyError 'claimNumber'" in explained(orders.new(), rules).summary


@pytest.mark.proves("OPR-2")
def test_of_what_no_agent_offers_it_says_that():
    """The settings have lost an agent: no newer version of the app is needed."""
    explanation = explained(orders.new(), replace(acting_rules, offers={}))
    assert "payment" in explanation.waiting_for
    assert (explanation.next_actor, explanation.next_at) == (Actor.OPERATOR, None)


def health(agent, **more):
    return AgentHealth(
        **{"agent": agent, "instance": "1", "at": LATER, "rate": 2.5, "running": 12} | more
    )


@pytest.mark.proves("OPR-2", "AGT-10")
def test_of_an_order_that_waits_for_capacity_it_says_since_when_and_how_the_agents_are():
    """It might have been claimed a while ago; all instances of an agent are taken together."""
    gone = health("payment", instance="3", at=LATER - FRESH, running=50)
    busy = (health("payment"), health("payment", instance="2", rate=4, running=3), gone)
    explanation = explained(orders.new(), replace(acting_rules, agent_health=busy), LATER)
    facts = ("15 ", " 6 ", "payment-backup", SINCE)
    assert [fact for fact in facts if fact not in explanation.waiting_for] == []
    assert SINCE not in explained(orders.new(), at=NOW).waiting_for


@pytest.mark.proves("OPR-2", "AGT-10")
def test_of_an_order_that_waits_for_an_agent_that_is_silent_it_says_since_when():
    """Until that was long ago; or the agent has spoken."""
    silence = health("payment", running=0, rate=None, unresponsive_since=NOW)
    fact = text("agent.unresponsive", agent="payment", since=SINCE)
    waits = partial(explained, orders.new(), at=LATER)
    assert fact in waits(replace(acting_rules, agent_health=(silence,))).waiting_for
    assert (
        fact
        not in waits(replace(acting_rules, agent_health=(silence, health("payment")))).waiting_for
    )
    long_ago = replace(silence, at=LATER - SILENCE)
    assert fact not in waits(replace(acting_rules, agent_health=(long_ago,))).waiting_for


def shown(time):
    return f"{time:%Y-%m-%d %H:%M:%S} UTC"


@pytest.mark.proves("OPR-2", "SUP-9", "SUP-10")
def test_of_an_order_whose_agents_are_all_silent_it_says_when_they_are_probed_and_it_is_given_up():
    """The scheduler sends the next requests, or gives the step up, whichever comes first."""
    silent = tuple(
        health(agent, at=LATER - seconds(20), unresponsive_since=since)
        for agent, since in (
            ("payment", LATER - seconds(140)),
            ("payment-backup", LATER - seconds(180)),
        )
    )
    rules = replace(acting_rules, agent_health=silent)
    explanation = explained(orders.new(), rules, LATER)
    probe = LATER + seconds(10)
    facts = [shown(probe), shown(NOW + rules.max_silence)]
    assert [fact for fact in facts if fact not in explanation.waiting_for] == []
    assert (explanation.next_actor, explanation.next_at) == (Actor.SCHEDULER, probe)
    bound = seconds(65)
    agents = {
        name: AgentDefinition(name=name, offers="payment", address="")
        for name in rules.offers["payment"]
    }
    claim = replace(scheduler, max_silence=bound, agents=agents).claim
    less = replace(rules, max_silence=bound, claim=claim)
    assert NOW + bound < explained(orders.new(), less, LATER).next_at < probe


@pytest.mark.proves("OPR-2")
def test_of_a_step_that_runs_it_says_what_went_wrong_so_far():
    """The agent has told its last fault; the supervisor will say it too."""
    reports = begun_by(NOW, "payment", faults=(fault_of_all("503 down"),))
    explanation = explained(claimed(), replace(acting_rules, agent_health=reports))
    assert "503 down" in explanation.waiting_for
    assert "503 down" in explanation.if_nothing_happens
    other = AttemptFault(text="503 down", requests=(f"{ORDER_ID}:payment:2:do",))
    others = begun_by(NOW, "payment", faults=(other,))
    assert "503" not in explained(claimed(), replace(acting_rules, agent_health=others)).summary


@pytest.mark.proves("OPR-2", "SUP-3")
def test_of_a_step_that_no_agent_has_begun_it_says_what_the_supervisor_will_make_of_it():
    """No failure is counted for it."""
    explanation = explained(claimed(), replace(acting_rules, agent_health=()))
    not_begun = Cause(Code.NOT_BEGUN, {"agent": "payment"})
    assert words_of(not_begun) in explanation.if_nothing_happens


@pytest.mark.proves("OPR-2", "SUP-3")
def test_of_a_step_at_an_overloaded_agent_it_says_that_no_failure_will_be_counted():
    """The supervisor will see that calls time out for other orders too."""
    order = claimed()
    requests = tuple(f"{order_id}:payment:1:do" for order_id in (ORDER_ID, "b00-2", "b00-3"))
    fault = AttemptFault(text="late", requests=requests, timed_out_at=(NOW,) * 3)
    rules = replace(acting_rules, agent_health=begun_by(NOW, "payment", faults=(fault,)))
    foreseen = what_comes_otherwise(order, rules, NOW).transition
    assert foreseen.after.step("payment").cause.code is Code.AGENT_OVERLOADED
    assert in_words(foreseen.entry.events) in explained(order, rules).if_nothing_happens


RULES_OF_TWO = json.dumps([{"Capability": "payment", "TimeoutSeconds": 5, "Threshold": 3}] * 2)
GARBAGE = {
    "a state that there is not": {"ProcessState": "Perhaps"},
    "a column that is gone": {"ReadySince": ...},
    "a column that is gone, where a new order has a default": {"FailureCount": ...},
    "a number that is a text": {"FailureCount": "many", "NotBefore": "soon", "Direction": 7},
    "a time that is none": {"UpdatedAt": "soon"},
    "a time without a zone": {"UpdatedAt": "2026-01-31T08:15:00"},
    "a name that is a number": {"LockedBy": 7},
    "a time of a step without a zone": {"Steps": '[{"CompleteBy":"2026-01-31T08:15:00"}]'},
    "a step that is a number": {"Steps": "[5]"},
    "a step that is a text": {"Steps": '["x"]'},
    "a step that is nothing": {"Steps": "[null]"},
    "steps that are nested too deeply": {"Steps": "[" * 20_000},
    "rules that are nested too deeply": {"Rules": "[" * 20_000},
    "rules of no step": {"Rules": "[]"},
    "rules of a step too many": {"Rules": RULES_OF_TWO},
    "no rules": {"Rules": ...},
    "work items that are nested too deeply": {"WorkItems": "[" * 20_000},
    "an end of an order that goes on": {"Outcome": "undone"},
    "an order in error without an end": {"ProcessState": "Error"},
    "a hold by nobody": {"HeldSince": NOW},
    "steps that are no text": {"Steps": 5},
    "a version to come": {"SchemaVersion": 99},
    "no version": {"SchemaVersion": 0},
}


@pytest.mark.proves("OPR-2")
@pytest.mark.parametrize("garbage", GARBAGE)
async def test_of_an_order_whose_rows_are_garbage_it_says_that(garbage):
    """And which row it is."""
    made, order = app(in_memory(clock=lambda: NOW)), orders.new()
    columns = stored_form(columns_of_record(state_record(order)))
    row = {**entity("b03", key := f"{order.order_id}|state", columns), **GARBAGE[garbage]}
    stored = Stored(key, {name: value for name, value in row.items() if value is not ...}, "1")

    async def load(order_id):
        assert isinstance(record_of(stored), StateRecord)

    made.engine.store.load = load
    explanation = await made.operations.orders.explain(order.order_id)
    assert f"{order.order_id}|state" in explanation.summary
    assert explanation.next_actor == Actor.OPERATOR
    assert explanation.next_at is None
    with pytest.raises(UnreadableRowError):
        record_of(stored)


@pytest.mark.proves("OPR-2", "OPR-4")
async def test_of_a_step_that_its_workflow_does_not_have_it_says_what_an_operator_can_do():
    """It was renamed without a new version: the steps of the order tell who needs it."""
    made = app(in_memory(clock=lambda: NOW))
    failed = scheduler.receive(claimed(), answer(outcome="failed", detail="no"), NOW).after
    named = steps.like(failed.step("payment"), "paid")
    order = orders.in_error(failed, steps=[named, steps.new("sent", uses=("paid",))])
    entry = HistoryEntry(at=NOW, actor="t", events=some("submitted"))
    await made.engine.store.commit(Transition(before=None, after=order, entry=entry))
    explanation = await made.operations.orders.explain(order.order_id)
    assert explanation.next_actor is Actor.OPERATOR
    named = [name for name in ("resubmit", "skip", "cancel") if name in explanation.waiting_for]
    assert named == ["resubmit", "cancel"]


@pytest.mark.proves("OPR-2", "SUP-2")
def test_once_the_time_is_up_it_waits_for_the_supervisor():
    """No answer counts any more."""
    order = claimed()
    assert explained(order, at=order.derived.complete_by).next_actor is Actor.AGENT
    late = explained(order, at=timed_out(order))
    assert (late.next_actor, late.next_at) == (Actor.SUPERVISOR, timed_out(order))


@pytest.mark.proves("OPR-2", "SUB-6")
def test_of_an_order_whose_wake_up_is_lost_it_says_when_a_poll_finds_it():
    """It leaves the wake-up its time."""
    explanation = explained(orders.new())
    assert explanation.next_at == NOW
    assert f"{NOW + WAKE_UP_TIME:%Y-%m-%d %H:%M:%S} UTC" in explanation.if_nothing_happens


@pytest.mark.proves("OPR-2", "FLT-12")
def test_of_an_order_that_is_given_up_it_does_not_say_that_an_agent_needs_capacity():
    """The workflow was retired with its agent: a long wait is not explained by that."""
    order = orders.new(steps=[steps.new(capability="fax")], workflow_version=0)
    explanation = explained(order, at=NOW + 2 * WAKE_UP_TIME)
    assert explanation.next_actor is Actor.SCHEDULER
    assert "fax" not in explanation.waiting_for


UNTIL = NOW + seconds(30)
PAUSES = [
    steps.scheduled(at=UNTIL),
    steps.backing_off(until=UNTIL),
    steps.cooling_down(until=UNTIL),
]


@pytest.mark.proves("OPR-2", "SUP-3", "SCH-15", "SCH-16")
@pytest.mark.parametrize("pause", PAUSES, ids=lambda step: type(step.state).__name__)
def test_of_a_step_that_waits_for_a_time_it_says_why(pause):
    """By its exact state; once the time has come, nothing is said of it."""
    order, until = orders.pending(steps=[pause]), f"{UNTIL:%Y-%m-%d %H:%M:%S} UTC"
    explanation = explained(order)
    assert until in explanation.waiting_for
    assert [step.exact_state for step in explanation.steps] == [type(order.steps[0].state).__name__]
    assert until not in explained(order, at=UNTIL).waiting_for


@pytest.mark.proves("OPR-2")
def test_it_names_the_steps_on_which_the_order_depends_now():
    """Those that run, have failed, or are next; none of an order that is over."""
    after = steps.new("ship", after=("pay",))
    seen = [steps.completed("reserve"), steps.running("pay"), steps.new("mail"), after]
    order = orders.processing(steps=seen)
    assert [step.name for step in explained(order).steps] == ["pay", "mail"]
    failed = orders.in_error(steps=[steps.completed("reserve"), steps.failed("pay"), after])
    assert [step.name for step in explained(failed).steps] == ["pay"]
    assert explained(orders.processed()).steps == []


@pytest.mark.proves("OPR-2", "UND-4")
def test_of_an_undo_that_failed_it_names_the_step():
    """The reason is that of the undo, not of what it was asked for."""
    doubtful = steps.in_doubt("payment")
    stuck = [steps.undo_failed(doubtful, reason="gone")]
    back = orders.in_error(steps=stuck, outcome=Outcome.UNDO_INCOMPLETE)
    forth = orders.in_error(steps=[steps.failed(doubtful, reason="gone")])
    for order, named in ((back, True), (forth, False)):
        summary = explained(order).summary
        assert ("gone" in summary, "payment" in summary) == (True, named)


@pytest.mark.proves("OPR-2", "FLT-9")
def test_nobody_waits_for_the_time_of_a_clock_that_was_ahead():
    """The last change bears that time, and any process may claim the order now (engine 24)."""
    ahead = NOW + seconds(3 * 3600)
    order = orders.new(updated_at=ahead, ready_since=ahead)
    assert what_comes_otherwise(order, acting_rules, NOW).at == NOW


# A deadline

DUE = Deadline(due_by=LATER, due_soon_at=NOW, when_late=WhenLate.STOP)


def due(deadline=DUE, **changes):
    """The explanation of a pending order with this deadline."""
    return explained(replace(orders.new(), deadline=deadline, **changes))


@pytest.mark.proves("SCH-17", "OPR-2")
@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({}, "stop"),
        ({"when_late": WhenLate.UNDO}, "undo"),
        ({"when_late": WhenLate.ALERT}, "alert"),
        ({"state": DeadlineState.WARNED}, "stop"),
        ({"state": DeadlineState.PASSED}, "passed"),
        ({"state": DeadlineState.LIFTED}, "lifted"),
    ],
)
def test_it_says_when_the_order_is_due_and_what_follows(changes, key):
    """Once it has passed, what became of that."""
    said = text(f"explain.due.{key}", due_by=clock(LATER))
    assert said in due(replace(DUE, **changes)).summary


@pytest.mark.proves("SCH-17", "OPR-2")
def test_it_says_nothing_of_a_deadline_that_does_not_count():
    """Of an undo, of an order that ended, and where there is none."""
    without = due(None).summary
    assert clock(LATER) not in without
    for changes in ({"direction": Direction.UNDO}, {"state": InError(Outcome.FAILED)}):
        assert clock(LATER) not in due(**changes).summary


@pytest.mark.proves("SCH-17", "OPR-2")
def test_past_its_point_of_no_return_it_says_that_a_late_order_stops():
    """Whatever its rule."""
    paid = steps.completed("payment")
    pivot = replace(paid, rules=replace(paid.rules, pivot=True))
    order = replace(orders.new(steps=[pivot]), deadline=replace(DUE, when_late=WhenLate.UNDO))
    assert text("explain.due.stop", due_by=clock(LATER)) in explained(order).summary


@pytest.mark.proves("SCH-17", "OPR-2")
def test_at_its_deadline_an_order_waits_for_the_supervisor():
    """Who ends it; if nothing happens before, the deadline is what comes."""
    order = replace(orders.new(), deadline=DUE)
    explanation = explained(order, at=LATER)
    assert explanation.next_actor is Actor.SUPERVISOR
    assert explanation.waiting_for == text("explain.waits-for.deadline")
    comes = recovery(replace(order, deadline=DUE.warned()), acting_rules, NOW)
    assert comes.transition.after.state == InError(Outcome.FAILED)
    warned = explained(order, at=LATER - seconds(30)).if_nothing_happens
    assert text("explain.becomes.unchanged") in warned
    undo = replace(order, deadline=replace(DUE.warned(), when_late=WhenLate.UNDO))
    assert text("explain.becomes.undo") in explained(undo, at=LATER).summary
    assert recovery(replace(order, deadline=None), acting_rules, NOW) is None


@pytest.mark.proves("SCH-17", "OPR-2")
def test_an_order_that_can_start_nothing_before_its_deadline_waits_for_the_supervisor():
    """Neither for the end of the pause, nor for an agent that makes calls after it."""
    order = replace(orders.new(), deadline=DUE.warned())
    until = DUE.due_by + seconds(60)
    paused = order.with_steps(
        replace(order.steps[0], state=Delayed(until, steps.TIMED_OUT, until + TIMEOUT))
    )
    closed = [health(agent, at=NOW, open_until=until) for agent in acting_rules.offers["payment"]]
    for explanation in (
        explained(changed(order, paused, NOW)),
        explained(order, replace(acting_rules, agent_health=closed)),
    ):
        assert explanation.next_actor is Actor.SUPERVISOR
        assert DUE.due_by < explanation.next_at < until


@pytest.mark.proves("SCH-17", "SUP-9", "OPR-2")
def test_a_step_is_not_given_up_for_silent_agents_after_the_deadline():
    """The deadline is what comes first."""
    silent = [
        health(agent, at=NOW, unresponsive_since=NOW) for agent in acting_rules.offers["payment"]
    ]
    rules = replace(acting_rules, agent_health=silent)
    order = orders.new()
    given_up = rules.given_up_at(order, NOW)
    assert given_up == NOW + rules.max_silence
    assert rules.given_up_at(replace(order, deadline=DUE), NOW) is None
    later = replace(DUE, due_by=given_up + seconds(1))
    assert rules.given_up_at(replace(order, deadline=later), NOW) == given_up
