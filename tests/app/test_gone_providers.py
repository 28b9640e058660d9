"""What was tried at a provider whose agents are gone from the deployment is an operator's to decide (AGT-3)."""

from dataclasses import replace
from datetime import timedelta

import pytest

from engine.decisions.transitions import NotClaimed
from engine.declarations import business as core_business
from engine.domain.attempts import NotAttemptedReason
from engine.domain.causes import Cause, Code
from engine.domain.effects import InDoubt
from engine.domain.states import Failed, UndoFailed
from engine.domain.statuses import NotClaimable, ProcessState
from engine.words.causes import words_of
from engine.workflow import UNDO, Agent, Model, Operation, Text, Workflow, application
from operations.api.explain import explain
from operations.api.prospects import Actor
from testkit import WorkflowTestEnvironment
from tests.support.builders import (
    LONGEST_UPGRADE,
    NOW,
    acting_rules,
    answer,
    claimed,
    orders,
    scheduler,
    steps,
    timed_out,
)
from tests.support.builders import supervisor as recovery
from tests.support.judging import Case, step


class Content(Model):
    """What is sold."""

    item: Text


class Reference(Model):
    """What the service calls what it did."""

    reference: str | None = None


class Paying(Agent):
    """A payment provider."""

    charge = Operation(Content, Reference)
    refund = Operation(Content)


class Carrier(Agent):
    """A carrier."""

    ship = Operation(Content, Reference)


adyen, stripe = Paying("adyen", provider="adyen"), Paying("stripe", provider="stripe")
carrier = Carrier("carrier")
sale = Workflow("sale", Content)


@sale.step(adyen.charge, undo=adyen.refund, on_failure=UNDO)
def charge(content: Content) -> Content:
    """Take the money."""
    return Content(item=content.item)


@sale.step(carrier.ship, on_failure=UNDO)
def shipment(content: Content, charge: Reference) -> Content:
    """Send it."""
    return Content(item=content.item)


BOTH = application(sale, agents=[adyen, stripe, carrier], sample=Content(item="x"))
WITHOUT = application(sale, agents=[stripe, carrier], sample=Content(item="x"))


MINUTE = {"mixed_version_seconds": 60}


def calls(environment, *agents):
    """How many requests went to each of these agents."""
    queues = [message.queue for message in environment._world._parts.bus.sent]
    return [queues.count(f"{agent}-requests") for agent in agents]


@pytest.mark.proves("AGT-3")
def test_what_was_done_there_is_not_undone_elsewhere():
    """The other provider would say "undone" of a key that it has never seen (engine 1)."""
    environment = WorkflowTestEnvironment(BOTH, **MINUTE)
    environment.hang("carrier")
    order = environment.submit(Content(item="x"))
    environment.upgrade(WITHOUT)
    environment.advance(minutes=30)
    assert (order.state, order.outcome) == ("Error", "undo-incomplete")
    assert (order.steps["charge"], calls(environment, "adyen", "stripe")) == ("Failed", [1, 0])


@pytest.mark.proves("AGT-3")
def test_what_is_in_doubt_there_is_not_done_elsewhere():
    """Until an operator says that it was not done (engine 1)."""
    environment = WorkflowTestEnvironment(BOTH, **MINUTE)
    environment.hang("adyen")
    order = environment.submit(Content(item="x"))
    environment.advance(seconds=5)
    environment.upgrade(WITHOUT)
    environment.advance(minutes=2)
    assert (order.state, order.outcome) == ("Error", "failed")
    assert calls(environment, "adyen", "stripe") == [1, 0]
    environment.act(order, "settle", was_done=False)
    environment.act(order, "resubmit")
    environment.advance(minutes=1)
    assert (order.state, calls(environment, "adyen", "stripe")) == ("Processed", [1, 1])


@pytest.mark.proves("AGT-3", "FLT-12")
def test_a_new_provider_goes_on_after_old_hosts_have_left_its_steps_alone():
    """In a rolling upgrade that adds it, an old host finds a step that was tried there."""
    environment = WorkflowTestEnvironment(BOTH)
    environment.hang("adyen")
    order = environment.submit(Content(item="x"))
    environment.advance(seconds=5)
    environment.upgrade(WITHOUT)
    environment.advance(minutes=10)
    assert (order.state, calls(environment, "adyen", "stripe")) == ("Pending", [1, 0])
    environment.heal("adyen")
    environment.upgrade(BOTH)
    environment.advance(minutes=1)
    assert (order.state, calls(environment, "adyen", "stripe")) == ("Processed", [2, 0])


other = Workflow("other", Content)


@other.step(carrier.ship)
def delivery(content: Content) -> Content:
    """Send it."""
    return Content(item=content.item)


@pytest.mark.proves("FLT-12", "SCH-1")
def test_an_order_whose_workflow_is_gone_with_all_agents_of_its_step_ends():
    """It takes no slot of an agent, so it waits for none."""
    environment = WorkflowTestEnvironment(
        application(sale, other, agents=[adyen, stripe, carrier], sample=Content(item="x")),
        **MINUTE,
    )
    environment.hang("adyen")
    order = environment.submit(Content(item="x"), "sale")
    environment.upgrade(application(other, agents=[carrier], sample=Content(item="x")))
    environment.advance(minutes=5)
    assert (order.state, order.outcome) == ("Error", "failed")


WITH_BACKUP = {"payment": ("payment-backup",)}
"""The room of a host that has no agent of the provider that was asked."""
ELSEWHERE = replace(scheduler, providers={"payment-backup": "another"})
"""Its scheduler."""


def waiting_for_its_own():
    """An order whose payment may have been done, and since when it waits."""
    order = claimed()
    waiting = recovery.recover(order, timed_out(order)).after
    return waiting, waiting.derived.ready_since


@pytest.mark.proves("AGT-3", "FLT-12", "OPR-2")
def test_an_operator_reads_how_long_a_step_of_a_provider_that_is_gone_is_left_alone():
    """Then it fails for an operator; until then no slot of an agent is kept for it."""
    waiting, since = waiting_for_its_own()
    rules = replace(acting_rules, claim=ELSEWHERE.claim, offers=WITH_BACKUP)
    now = waiting.updated_at
    explanation = explain(waiting, [], rules, now)
    assert explanation.next_actor == Actor.SCHEDULER
    assert explanation.next_at == since + LONGEST_UPGRADE + timedelta(microseconds=1)
    left = ELSEWHERE.claim(waiting, now, WITH_BACKUP)
    assert left == NotClaimed(why=NotClaimable.UNKNOWN_PROVIDER)


@pytest.mark.proves("AGT-3", "FLT-12", "SCH-10")
def test_a_step_beside_one_of_an_unknown_provider_begins():
    """Only what may have been done there is left to a newer host."""
    case = Case(step("pay"), step("ship"))
    tried = steps.in_doubt(case.order.step("pay"), provider="psp")
    elsewhere = replace(case.scheduler, providers=ELSEWHERE.providers)
    after = elsewhere.claim(orders.with_steps(case.order, tried), NOW, WITH_BACKUP).after
    assert (after.step("pay"), after.step("ship").agent) == (tried, "payment-backup")


@pytest.mark.proves("AGT-3")
def test_a_step_whose_provider_is_gone_fails_for_an_operator():
    """It may have been done there (engine 1); a newer host may know the provider for a day (FLT-12)."""
    waiting, since = waiting_for_its_own()
    last = since + LONGEST_UPGRADE
    assert isinstance(ELSEWHERE.claim(waiting, last, WITH_BACKUP), NotClaimed)
    after = ELSEWHERE.claim(waiting, last + timedelta(microseconds=1), WITH_BACKUP).after
    payment = after.step("payment")
    assert after.process_state is ProcessState.ERROR
    assert payment.state == Failed(gone(), operator_decides=True)
    assert isinstance(payment.effect, InDoubt)


def gone(*, is_undo=False):
    """Why the step is an operator's to decide."""
    return Cause(Code.PROVIDER_GONE, {"provider": "psp", "is_undo": is_undo})


@pytest.mark.proves("AGT-3")
@pytest.mark.parametrize(("undo", "action"), [(False, "settle"), (True, "skip")])
def test_a_step_that_its_agent_did_not_try_is_in_doubt_too_if_its_provider_is_gone(undo, action):
    """The same request may have been delivered twice. The reason names the provider and the action."""
    turned_away = answer(
        outcome="notAttempted", detail="open", reason=NotAttemptedReason.CIRCUIT_OPEN
    )
    waiting = scheduler.receive(claimed(), turned_away, NOW, {}).after
    if undo:
        waiting = orders.undoing(waiting, steps=map(steps.undo_pending, waiting.steps))
    [step] = ELSEWHERE.claim(waiting, NOW + 2 * LONGEST_UPGRADE, WITH_BACKUP).after.steps
    failed = UndoFailed if undo else Failed
    assert step.state == failed(gone(is_undo=undo), operator_decides=True)
    assert isinstance(step.effect, InDoubt)
    assert words_of(step.cause).count(action) == 1


@pytest.mark.proves("AGT-3")
def test_an_agent_of_the_provider_with_another_capability_is_no_way_to_it():
    """It cannot do the step: an operator decides, and the order does not wait for ever (engine 1)."""
    waiting, since = waiting_for_its_own()
    agents = [
        core_business.AgentDefinition(name="payment-backup", offers="payment", address="A"),
        core_business.AgentDefinition(
            name="reports", offers="reporting", address="B", provider="psp"
        ),
    ]
    elsewhere = replace(
        scheduler,
        providers={"payment-backup": "another", "reports": "psp"},
        agents={agent.name: agent for agent in agents},
    )
    capacity = WITH_BACKUP | {"reporting": ("reports",)}
    left = elsewhere.claim(waiting, since + LONGEST_UPGRADE, capacity)
    assert left == NotClaimed(why=NotClaimable.UNKNOWN_PROVIDER)
    after = elsewhere.claim(waiting, since + 2 * LONGEST_UPGRADE, capacity).after
    assert after.step("payment").state.operator_decides


@pytest.mark.proves("AGT-3")
def test_what_is_in_a_new_round_goes_to_any_provider():
    """None has its key, wherever the round before was tried."""
    waiting = scheduler.receive(
        claimed(),
        answer(outcome="notAttempted", detail="open", reason=NotAttemptedReason.CIRCUIT_OPEN),
        NOW,
        {},
    ).after
    waiting = orders.with_steps(waiting, steps.with_new_key(waiting.step("payment")))
    after = ELSEWHERE.claim(waiting, waiting.derived.not_before or NOW, WITH_BACKUP).after
    assert after.step("payment").agent == "payment-backup"
