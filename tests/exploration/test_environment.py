"""What an author explores: every course of events of an order of their own workflow."""

import sys
from dataclasses import replace
from datetime import timedelta
from itertools import count
from unittest.mock import patch

import pytest
from pydantic import BaseModel

from bench.workflows import MEASURED
from engine.declarations.business import AgentDefinition, Application, EndpointDefinition, Sample
from engine.declarations.workflow import StepDefinition, WorkflowDefinition, Workflows
from engine.domain.errors import InvalidError
from engine.domain.submitted_order import OnFailure
from engine.workflow import Agent, Model, Operation, OrderEndpoint, Personal, Workflow, application
from scheduler.admission.admission import Admission
from testkit import FoundError, NothingEndedError, WorkflowTestEnvironment
from testkit.exploration.for_authors import FAULTS
from tests.exploration.seeded_faults import SEEDED_FAULTS


def step(name, agent, *after, **more):
    """A step that can be undone."""
    return StepDefinition(
        name=name,
        capability=agent,
        operation=f"{name}-it",
        compensation=f"undo-{name}",
        request=lambda order, results: {},
        after=after,
        **more,
    )


def business(*steps, **declared):
    """A business with an agent for each capability, declared like this."""
    names = dict.fromkeys(planned.capability for planned in steps)
    return Application(
        workflows=Workflows(WorkflowDefinition(name="trip", version=1, steps=steps)),
        default_workflow="trip",
        agents=[
            AgentDefinition(name=name, offers=name, address=name, **declared) for name in names
        ],
        payload=MEASURED.payload,
        sample=Sample(payload=MEASURED.sample.payload),
    )


FLIGHT, HOTEL = step("flight", "airline"), step("hotel", "hotelier")
IN_SEQUENCE = business(FLIGHT, step("hotel", "hotelier", "flight", on_failure=OnFailure.UNDO))
SIDE_BY_SIDE = business(FLIGHT, HOTEL)


def no_hotel_without_a_flight(order):
    """An invariant of the author."""
    assert "hotel" not in order.standing or "flight" in order.standing, "a hotel, and no flight"


def test_an_invariant_of_the_author_holds_in_every_state():
    """Where the steps come one after another, nothing is left out, and every kind of fault was tried."""
    coverage = WorkflowTestEnvironment(IN_SEQUENCE).explore(
        faults=1, invariant=no_hotel_without_a_flight
    )
    assert coverage.whole
    assert set(coverage.faults) == {*FAULTS}
    assert coverage.ends["Processed"] > 0
    assert coverage.ends["undone"] > 0


def test_a_mistake_in_a_workflow_is_reported_as_a_trace():
    """Where the author forgot the order of the steps, the shortest way there is told, with the order's history."""
    with pytest.raises(FoundError, match="a hotel, and no flight") as found:
        WorkflowTestEnvironment(SIDE_BY_SIDE).explore(faults=0, invariant=no_hotel_without_a_flight)
    lines = str(found.value).splitlines()
    assert "  1. submission takes the submission" in lines
    done = found.value.labels.index("hotelier-agent-1: the service does its work")
    assert f"{done + 1:3}. hotelier-agent-1: the service does its work" in lines
    assert lines[-1].strip().endswith("claimed: flight attempt 1 started; hotel attempt 1 started")


def test_an_exploration_stops_at_its_bound_and_says_what_it_has_covered(capsys):
    """In states or in seconds; what was left out is printed too."""
    few = WorkflowTestEnvironment(business(FLIGHT)).explore(states=300)
    printed = capsys.readouterr().out
    assert not few.whole
    assert 300 <= few.states < 342
    assert f"covered: the first {few.explored.events} events of every course" in printed
    assert "left out: what comes after these events, " in printed


@pytest.mark.parametrize("limit", [{"states": 100}, {"seconds": 0}])
def test_an_exploration_in_which_nothing_ends_fails(limit):
    """No law about an end was put to the test, whatever was green (newcomer A 4)."""
    with pytest.raises(NothingEndedError) as raised:
        WorkflowTestEnvironment(IN_SEQUENCE).explore(**limit)
    coverage = raised.value.coverage
    assert not coverage.whole
    assert not coverage.ends
    assert {"ALR-2", "SUB-1"} <= set(coverage.unchecked)


def test_the_laws_that_were_put_to_no_test_are_named():
    """By the moments that never came about: where nothing fails, no event is published (newcomer A 4)."""
    smooth = WorkflowTestEnvironment(IN_SEQUENCE).explore(faults=0)
    failing = WorkflowTestEnvironment(IN_SEQUENCE).explore(faults=1)
    assert {"ALR-1", "SCH-6"} <= set(smooth.unchecked)
    assert "ALR-1" not in failing.unchecked


def test_an_exploration_is_limited_by_the_clock(monkeypatch):
    """A busy machine has less processor time, and the limit of a test runner is by the clock (newcomer A 4)."""
    times = count(step=25)
    monkeypatch.setattr("testkit.exploration.explorer.time.monotonic", lambda: next(times))
    with pytest.raises(NothingEndedError) as raised:
        WorkflowTestEnvironment(IN_SEQUENCE).explore(seconds=50)
    assert 50 < raised.value.coverage.states < 1000


def test_an_exploration_says_how_far_it_is_where_somebody_reads(monkeypatch, capsys):
    """In a terminal, or as the author wants, and beside the output of the test (newcomer C, `explore`)."""
    monkeypatch.setattr("testkit.environment.SECONDS_BETWEEN", 0)
    for in_terminal, progress, expected in (
        (False, None, False), (False, True, True), (True, None, True), (True, False, False),
    ):  # fmt: skip
        monkeypatch.setattr(sys.stderr, "isatty", lambda shown=in_terminal: shown)
        explored = WorkflowTestEnvironment(IN_SEQUENCE).explore(faults=0, progress=progress)
        printed = capsys.readouterr()
        assert printed.out == f"{explored}\n"
        assert bool(printed.err) == expected
        assert len(printed.err.splitlines()) <= explored.states
    monkeypatch.setattr("testkit.environment.SECONDS_BETWEEN", 3600)
    WorkflowTestEnvironment(IN_SEQUENCE).explore(faults=0, progress=True)
    assert capsys.readouterr().err == ""


def test_two_processes_of_every_kind_race():
    """So there is more to see, and something conflicts."""
    one = WorkflowTestEnvironment(business(FLIGHT)).explore(faults=1)
    two = WorkflowTestEnvironment(business(FLIGHT)).explore(faults=1, instances=2)
    assert two.states > one.states
    assert any(label.startswith("scheduler-2") for label in two.explored.labels)
    assert "races between two processes" in str(one)
    assert "races between two processes" not in str(two)


def test_an_operator_may_act_at_any_moment():
    """What is cancelled is undone, however far it was."""
    coverage = WorkflowTestEnvironment(IN_SEQUENCE).explore(faults=0, acts=["cancel"])
    assert coverage.whole
    assert coverage.ends["undone"] > 0
    assert "one act: cancel" in str(coverage)


ENDPOINT = EndpointDefinition(workflow="trip", content=BaseModel, open=True, cancel_until="hotel")
WITH_AN_ENDPOINT = replace(IN_SEQUENCE, endpoints=[ENDPOINT])


@pytest.mark.proves("SUB-8")
def test_a_customer_may_cancel_until_the_step_begins_that_the_endpoint_names():
    """At any moment until then; so a hotel is never booked, or never taken back because the customer asked."""
    ended = set()

    def watch(order):
        if order.outcome == "undone":
            ended.add(order.steps["hotel"])

    coverage = WorkflowTestEnvironment(WITH_AN_ENDPOINT).explore(
        faults=0, acts=["customer-cancel"], invariant=watch
    )
    assert coverage.whole
    assert coverage.ends["undone"] > 0
    assert ended == {"NotStarted"}
    assert coverage.explored.happened("customer begins to cancel")


@pytest.mark.soak
@pytest.mark.proves("SUB-8")
def test_a_customer_may_cancel_an_order_that_has_failed_before_that_step():
    """It is taken back, whether or not an operator has seen it."""
    coverage = WorkflowTestEnvironment(WITH_AN_ENDPOINT).explore(faults=1, acts=["customer-cancel"])
    assert coverage.whole
    assert coverage.explored.happened("the service rejects the order")
    assert coverage.ends["undone"] > coverage.ends["failed"] > 0


def test_a_customer_who_cancels_too_late_would_be_found():
    """Where the rule is not asked again after another writer was first."""
    with (
        patch(
            "engine.decisions.operator_actions.why_customer_cannot_cancel", lambda order, until: ""
        ),
        pytest.raises(FoundError, match="SUB-8"),
    ):
        WorkflowTestEnvironment(WITH_AN_ENDPOINT).explore(faults=0, acts=["customer-cancel"])


def test_without_an_endpoint_no_customer_cancels():
    """There is nothing by which they could."""
    coverage = WorkflowTestEnvironment(IN_SEQUENCE).explore(faults=0, acts=["customer-cancel"])
    assert not coverage.explored.happened("customer")


@pytest.mark.proves("OPR-9")
def test_an_agent_may_be_held_at_any_moment():
    """Nobody who has heard of it sends it anything, and when it is released the order goes on."""
    coverage = WorkflowTestEnvironment(IN_SEQUENCE).explore(faults=0, acts=["pause-agent"])
    assert coverage.whole
    assert set(coverage.ends) == {"Processed"}
    assert coverage.explored.happened("operator pauses the agent hotelier")


def test_requests_to_an_agent_that_is_held_would_be_found():
    """Where schedulers do not listen to holds."""
    with (
        patch.object(Admission, "add_reports", lambda self, reports: None),
        pytest.raises(FoundError, match="OPR-9"),
    ):
        WorkflowTestEnvironment(IN_SEQUENCE).explore(faults=0, acts=["pause-agent"])


class Form(Model):
    """The payload of a small business that asks its customer."""

    who: Personal[str]


class Consent(Model):
    """What the customer answers."""

    days: int


class Letter(Model):
    """The same, in words."""

    word: str


class Clerk(Agent):
    """Its only service."""

    book = Operation(Form)
    free = Operation(Form)


clerk = Clerk("clerk")


def no(form: Form) -> bool:
    """No gift is needed."""
    return False


def polled_first(cancel_until="book"):
    """A business that asks its customer before it books; a gift beside that is never needed."""
    flow = Workflow("asked", Form, endpoint=OrderEndpoint(open=True, cancel_until=cancel_until))

    @flow.wait_for(Letter, within=timedelta(days=1))
    def consent(form: Form) -> Form:
        return form

    @flow.step(clerk.book, condition=no)
    def gift(form: Form) -> Form:
        return form

    @flow.step(clerk.book)
    def book(form: Form) -> Form:
        return form

    return application(flow, agents=[clerk], sample=Form(who="Ada"))


def test_a_hold_may_end_between_two_looks_of_a_scheduler():
    """A scheduler that has looked again, and found no hold, may send what it claims (engine 9, proof 30b)."""
    with pytest.raises(NothingEndedError) as raised:
        WorkflowTestEnvironment(polled_first()).explore(faults=0, acts=["pause-agent"], states=600)
    assert raised.value.coverage.explored.happened("the pause of the agent clerk ends")


def test_a_customer_may_cancel_while_an_answer_is_awaited():
    """Nobody holds an order that only waits for an answer, so its customer gives it back (engine 9, proof 30a)."""
    with pytest.raises(NothingEndedError) as raised:
        WorkflowTestEnvironment(polled_first()).explore(
            faults=0, acts=["customer-cancel"], states=300
        )
    assert raised.value.coverage.explored.happened("commits “cancelled”")


def test_steps_side_by_side_may_need_agents_in_any_order():
    """The order waits for what the first step of the workflow needs, whatever that is called (engine 9, proof 21)."""
    for agents in ("airline", "hotelier"), ("hotelier", "airline"):
        steps = [step(f"by-{agent}", agent) for agent in agents]
        assert WorkflowTestEnvironment(business(*steps)).explore(faults=0).whole


def test_what_cannot_be_undone_does_not_stand_in_the_way():
    """A letter was sent after the flight, and has no undo: the flight is taken back (engine 9, proof 23)."""
    letter = replace(step("letter", "hotelier", "flight"), compensation=None)
    coverage = WorkflowTestEnvironment(business(FLIGHT, letter)).explore(faults=0, acts=["cancel"])
    assert coverage.whole
    assert coverage.ends["undone"] > 0


@pytest.mark.proves("SUB-9")
def test_an_order_with_a_date_begins_at_that_date():
    """An answer, which without an example is a text, may come before it (engine 9, proofs 33a and 33b)."""
    environment = WorkflowTestEnvironment(polled_first())
    date = environment.now + timedelta(days=20)
    coverage = environment.explore(faults=0, not_before=date)
    assert coverage.whole
    assert coverage.explored.longest >= timedelta(days=20)
    assert coverage.explored.happened("outside: commits “step-answered”")
    seed, _ = SEEDED_FAULTS["SUB-9 starts orders whatever their date"]
    with seed(), pytest.raises(FoundError, match="SUB-9"):
        environment.explore(faults=0, not_before=date)


def test_there_is_no_such_act():
    """An act that would never happen is no exploration."""
    with pytest.raises(LookupError, match="there is no act dance; there are resubmit, "):
        WorkflowTestEnvironment(IN_SEQUENCE).explore(acts=["cancel", "dance"])


def test_services_are_as_their_agents_declare_them():
    """One accepts and does it later, remembers refusals, and forgets keys."""
    declared = {
        "answer_within": timedelta(minutes=2),
        "remembers_refusals": True,
        "keys_last": timedelta(hours=24),
    }
    coverage = WorkflowTestEnvironment(business(FLIGHT, **declared)).explore(
        faults=1, acts=["resubmit", "retry-with-new-key"]
    )
    happened = coverage.explored.happened
    assert happened("the service accepts it, to do it later")
    assert happened("commits “resubmitted”")
    assert happened("commits “retried-with-new-key”")


def test_a_service_answers_what_the_author_says():
    """Else it answers a text for each field that is kept."""
    received = []

    def request(order, results):
        received.append(results["flight"])
        return {}

    hotel = replace(HOTEL, request=request, uses=("flight",), after=("flight",))
    trip = business(replace(FLIGHT, result_fields=("seat",)), hotel)
    WorkflowTestEnvironment(trip).explore(faults=0)
    WorkflowTestEnvironment(trip).explore(faults=0, answers={"flight": {"seat": "12A"}})
    assert {sent["seat"] for sent in received} == {"r", "12A"}


form = Workflow("form", Form)


@form.wait_for(Consent, within=timedelta(days=1), attempts=2, on_failure=OnFailure.UNDO)
def consent(form: Form) -> Form:
    """Ask the customer."""
    return form


@form.step(clerk.book, undo=clerk.free)
def book(form: Form, consent: Consent) -> Form:
    """Do what the customer wants."""
    return form


FORM = application(form, agents=[clerk], sample=Form(who="Ada"))


@pytest.mark.proves("ANS-2")
def test_somebody_outside_may_answer_at_any_moment_or_not_at_all():
    """Where they answer, the order is done; where they refuse or say nothing, it is undone."""

    def nothing_without_consent(order):
        assert "book" not in order.standing or order.steps["consent"] == "Completed"

    coverage = WorkflowTestEnvironment(FORM).explore(
        faults=0, answers={"consent": {"days": 3}}, invariant=nothing_without_consent
    )
    assert coverage.whole
    assert set(coverage.ends) == {"Processed", "undone"}
    assert coverage.explored.happened("outside begins to refuse: consent")
    assert coverage.explored.longest > timedelta(days=2)


def answering_over_its_link(**declared):
    """A business whose clerk answers later: of a desk where nothing is declared, nobody knows it."""
    flow = Workflow("linked", Form)

    @flow.step(desk.book)
    def book(form: Form) -> Form:
        return form

    return application(flow, agents=[Desk("desk", **declared)], sample=Form(who="Ada"))


class Desk(Agent):
    """A service that takes its time."""

    book = Operation(Form, response=Consent)


desk = Desk("desk")


@pytest.mark.proves("ANS-8")
def test_a_service_may_answer_over_its_link():
    """Early, late, again, refusing or never: in any course of events the order ends (engine 9, proof 33)."""
    for declared, callbacks in (
        ({}, ["desk"]),
        ({"answer_within": timedelta(minutes=2), "calls_back": True}, []),
    ):
        environment = WorkflowTestEnvironment(
            answering_over_its_link(**declared), failure_threshold=1
        )
        coverage = environment.explore(faults=0, callbacks=callbacks)
        assert coverage.whole
        assert set(coverage.ends) == {"Processed", "failed"}
        assert coverage.explored.happened("service: commits “step-answered”")


@pytest.mark.proves("OPR-11")
def test_an_order_may_be_restored_as_it_was_at_any_moment_before():
    """What was done since is asked of its service again, with the same key (engine 9, proof 33)."""
    coverage = WorkflowTestEnvironment(business(FLIGHT)).explore(faults=0, acts=["restore"])
    assert coverage.whole
    assert coverage.explored.happened("the store is lost, and restored from the copy")
    assert set(coverage.ends) == {"Processed"}
    assert "restored copies" not in str(coverage)


def test_what_is_left_out_is_reported():
    """Links that no agent declares, unless they are asked for, and copies (engine 9, proof 33)."""
    environment = WorkflowTestEnvironment(answering_over_its_link())
    report = str(environment.explore(faults=0))
    assert "answers over links that no agent declares" in report
    assert "restored copies" in report
    report = str(environment.explore(faults=0, callbacks=["desk"]))
    assert "answers over links" not in report
    with pytest.raises(LookupError, match="no agent office; there are desk"):
        environment.explore(callbacks=["office"])


def test_an_answer_that_nobody_could_give_is_refused():
    """The error names the argument and every fault (engine 9, proof 33b)."""
    with pytest.raises(InvalidError) as found:
        WorkflowTestEnvironment(FORM).explore(faults=0)
    (fault,) = found.value.faults
    assert fault.startswith("answers['consent']")
    assert "days" in fault


@pytest.mark.soak
def test_what_waits_may_be_erased():
    """Who the customer is goes at any moment, and the order goes on."""
    coverage = WorkflowTestEnvironment(FORM).explore(
        faults=0, acts=["erase"], answers={"consent": {"days": 3}}
    )
    assert coverage.explored.happened("commits “erased”")
    assert set(coverage.ends) == {"Processed", "undone"}


def test_a_fault_of_the_engine_is_found_on_the_author_s_workflow():
    """The invariants hold for any application: here, that steps begin in their order."""
    seed, _ = SEEDED_FAULTS["SCH-10 starts steps in any order"]
    with seed(), pytest.raises(FoundError, match="SCH-10"):
        WorkflowTestEnvironment(IN_SEQUENCE).explore(faults=0)


def test_what_cannot_be_submitted_cannot_be_explored():
    """An order that the app refuses, or none at all where the business has no sample."""
    with pytest.raises(InvalidError):
        WorkflowTestEnvironment(IN_SEQUENCE).explore({"customer": "Ada"})
    with pytest.raises(TypeError, match="no sample"):
        WorkflowTestEnvironment(replace(IN_SEQUENCE, sample=None)).explore()
