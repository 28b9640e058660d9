"""What was tried at a provider whose agents are gone from the deployment is an operator's to decide (AGT-3)."""

from dataclasses import replace

import pytest
from builders import NOW, answer, claimed, scheduler, timed_out
from builders import supervisor as recovery

from core import business as core_business
from core.life import ProcessState, StepState
from flow import UNDO, Agent, Flow, Model, Operation, Text, business
from kit import Trial


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
sale = Flow("sale", Content)


@sale.step(adyen.charge, undo=adyen.refund, on_failure=UNDO)
def charge(content: Content) -> Content:
    """Take the money."""
    return Content(item=content.item)


@sale.step(carrier.ship, on_failure=UNDO)
def shipment(content: Content, charge: Reference) -> Content:
    """Send it."""
    return Content(item=content.item)


BOTH = business(sale, agents=[adyen, stripe, carrier], sample=Content(item="x"))
WITHOUT = business(sale, agents=[stripe, carrier], sample=Content(item="x"))


def calls(trial, *agents):
    """How many requests went to each of these agents."""
    queues = [message.queue for message in trial._world._parts.bus.sent]
    return [queues.count(f"{agent}-requests") for agent in agents]


@pytest.mark.proves("AGT-3")
def test_what_was_done_there_is_not_undone_elsewhere():
    """The other provider would say "undone" of a key that it has never seen (engine 1)."""
    trial = Trial(BOTH)
    trial.hang("carrier")
    order = trial.submit(Content(item="x"))
    trial.upgrade(WITHOUT)
    trial.advance(minutes=30)
    assert (order.state, order.outcome) == ("Error", "undo-incomplete")
    assert (order.steps["charge"], calls(trial, "adyen", "stripe")) == ("Failed", [1, 0])


@pytest.mark.proves("AGT-3")
def test_what_is_in_doubt_there_is_not_done_elsewhere():
    """Until an operator says that it was not done (engine 1)."""
    trial = Trial(BOTH)
    trial.hang("adyen")
    order = trial.submit(Content(item="x"))
    trial.advance(seconds=5)
    trial.upgrade(WITHOUT)
    trial.advance(minutes=30)
    assert (order.state, order.outcome) == ("Error", "failed")
    assert calls(trial, "adyen", "stripe") == [1, 0]
    trial.act(order, "settle", was_done=False)
    trial.act(order, "resubmit")
    trial.advance(minutes=1)
    assert (order.state, calls(trial, "adyen", "stripe")) == ("Processed", [1, 1])


@pytest.mark.proves("AGT-3")
def test_a_step_whose_provider_is_gone_fails_for_an_operator():
    """It may have been done there (engine 1)."""
    order = claimed()
    now = timed_out(order)
    waiting = recovery.recover(order, now).after
    elsewhere = replace(scheduler, providers={"payment-backup": "another"})
    after = elsewhere.claim(waiting, now, {"payment": ("payment-backup",)}).after
    payment = after.step("payment")
    assert (after.state.process_state, payment.state) == (ProcessState.ERROR, StepState.FAILED)
    assert (payment.for_operator, payment.in_doubt) == (True, True)


@pytest.mark.proves("AGT-3")
def test_an_agent_of_the_provider_with_another_capability_is_no_way_to_it():
    """It cannot do the step: an operator decides, and the order does not wait for ever (engine 1)."""
    order = claimed()
    now = timed_out(order)
    waiting = recovery.recover(order, now).after
    agents = [
        core_business.Agent(name="payment-backup", offers="payment", address="A"),
        core_business.Agent(name="reports", offers="reporting", address="B", provider="psp"),
    ]
    elsewhere = replace(
        scheduler,
        providers={"payment-backup": "another", "reports": "psp"},
        agents={agent.name: agent for agent in agents},
    )
    after = elsewhere.claim(waiting, now, {"payment": ("payment-backup",)}).after
    assert after.step("payment").for_operator


@pytest.mark.proves("AGT-3")
def test_what_is_in_a_new_round_goes_to_any_provider():
    """None has its key, wherever the round before was tried."""
    waiting = scheduler.receive(
        claimed(), answer(outcome="notTried", reason="open", circuit_open=True), NOW, {}
    ).after
    waiting = waiting.with_steps(waiting.step("payment").in_next_round())
    elsewhere = replace(scheduler, providers={"payment-backup": "another"})
    now = waiting.state.not_before or NOW
    after = elsewhere.claim(waiting, now, {"payment": ("payment-backup",)}).after
    assert after.step("payment").agent == "payment-backup"
