"""An agent that takes no requests, for a while or for ever, and many orders that need it."""

from datetime import timedelta

import pytest

from engine.decisions.operator_actions import BY_NAME
from engine.domain.backoff import LONGEST
from engine.domain.causes import Code
from engine.domain.effects import NothingSent
from engine.domain.messages import AgentRequest, Submission, decode
from engine.domain.statuses import Outcome, ProcessState
from engine.domain.submitted_order import OnFailure
from engine.storage.agent_health import LONGEST_PROBE_PAUSE, PROBE_REQUESTS
from engine.workflow import Agent, Model, Operation, Text, Workflow, application
from operations.api.agents import AgentPauseService
from operations.api.requests import OperatorRequest, PauseRequest
from testkit.environment import BEGINS
from testkit.world import EVERY, AppWorld

COUNT = 40
MAX_SILENCE, TIMEOUT = timedelta(hours=1), timedelta(seconds=60)
ENDS_WITHIN = MAX_SILENCE + LONGEST + 4 * EVERY
"""The bound, and the longest pause between two attempts of an order."""
MOST_ATTEMPTS = 80
"""Those of the first moment, when nothing is known of the agent, and three in each pause and attempt of three minutes."""
GRACE = OperatorRequest(operator="grace", note="the customer called")
AT_ONCE = 10
"""Orders that are sent before anything is known of the agent."""


class Sale(Model):
    """The payload of an order."""

    item: Text


class Store(Agent):
    """The agent that works."""

    reserve = Operation(Sale)
    release = Operation(Sale)


class Bank(Agent):
    """The agent that is switched off."""

    charge = Operation(Sale)
    refund = Operation(Sale)


STORE, BANK = Store("store"), Bank("bank")


def business(**rules):
    """A business whose second step needs the bank."""
    workflow = Workflow("sale", Sale)

    @workflow.step(STORE.reserve, undo=STORE.release)
    def reserve(sale: Sale) -> Sale:
        return sale

    @workflow.step(BANK.charge, undo=BANK.refund, after=[reserve], **rules)
    def charge(sale: Sale) -> Sale:
        return sale

    return application(workflow, agents=[STORE, BANK])


class SwitchedOff(AppWorld):
    """An app whose bank takes no requests until it is switched on."""

    def __init__(self, count=COUNT, **rules):
        self.is_on, self.requests = False, []
        settings = {
            "step_timeout_seconds": 60,
            "max_silence_seconds": 3600,
            "max_unbegun_attempts": 1000,  # the bound by time is what these tests are about
        }
        super().__init__(business(**rules), BEGINS, settings)
        self.order_ids = [f"b{number % 8:02d}-{number:026d}" for number in range(count)]
        for order_id in self.order_ids:
            self.run(self.engine.submission.record(submission(order_id, self.loop.now())))

    async def _ask(self, agent, message):
        if agent == "bank":
            self.requests.append(message)
            if not self.is_on:
                return
        await super()._ask(agent, message)

    def switch_on(self):
        """Let the bank take what lies in its queue, and all that comes."""
        self.is_on = True
        for message in self.requests:
            if decode(AgentRequest, message.body).complete_by > self.loop.now():
                self._start(super()._ask("bank", message))

    def all(self):
        return [self.run(self.engine.store.load(order_id)) for order_id in self.order_ids]

    def order(self, number=0):
        return self.all()[number]

    def history(self, order):
        entries = self.run(self.engine.store.history(order.order_id))
        return [entry.event for entry in entries]

    def explain(self, order):
        return self.run(self.operations.orders.explain(order.order_id))

    def charges(self):
        return [order.step("charge") for order in self.all()]


def submission(order_id, now):
    message = {"item": "tea", "schemaVersion": 1, "orderId": order_id, "placedAt": now}
    return Submission.model_validate(message).to_json().encode()


@pytest.fixture
def switched_off():
    worlds = []

    def made(*args, **rules):
        worlds.append(SwitchedOff(*args, **rules))
        return worlds[-1]

    yield made
    for world in worlds:
        world.end()


def ended(orders):
    return [order.order_id for order in orders if order.has_ended]


@pytest.mark.proves("SUP-10", "SUP-9")
def test_of_many_orders_few_are_sent_to_an_agent_that_is_switched_off(switched_off):
    """The others have no attempts and no history of them. Within the bound all end, and none is undone."""
    world = switched_off(on_failure=OnFailure.UNDO)
    world.advance(MAX_SILENCE)
    assert ended(world.all()) == []
    assert sum(step.counts.attempts for step in world.charges()) <= MOST_ATTEMPTS
    others = [order for order in world.all() if not order.step("charge").counts.attempts]
    assert len(others) >= COUNT - 2 * AT_ONCE
    assert max(len(world.history(order)) for order in others) <= 3
    sent = len(world.requests)
    world.advance(ENDS_WITHIN - MAX_SILENCE)
    orders = world.all()
    assert {order.outcome for order in orders} == {Outcome.FAILED}
    assert {order.cause.code for order in orders} == {Code.NO_AGENT_BEGAN}
    assert {order.is_undo for order in orders} == {False}
    never_sent = [step for step in world.charges() if not step.counts.attempts]
    assert {step.effect for step in never_sent} == {NothingSent()}
    assert len(world.requests) - sent <= PROBE_REQUESTS


@pytest.mark.proves("SUP-10", "WRK-1")
@pytest.mark.parametrize("minutes", [2, 55])
def test_all_orders_are_processed_soon_once_the_agent_works_again(switched_off, minutes):
    """The pause ends by itself: a poll finds the orders."""
    world = switched_off(30, on_failure=OnFailure.UNDO)
    world.advance(timedelta(minutes=minutes))
    world.switch_on()
    world.advance(LONGEST_PROBE_PAUSE + TIMEOUT + 4 * EVERY)
    assert {order.process_state for order in world.all()} == {ProcessState.PROCESSED}


@pytest.mark.proves("SUP-10", "OPR-2")
def test_an_order_that_waits_for_a_silent_agent_is_explained(switched_off):
    """Since when the agent is silent, who acts next and when, and when the step is given up."""
    world = switched_off(20)
    world.advance(timedelta(minutes=20))
    now, order = world.loop.now(), world.order(19)
    explanation = world.explain(order)
    assert explanation.next_actor == "scheduler"
    assert now - EVERY <= explanation.next_at <= now + LONGEST_PROBE_PAUSE
    given_up = BEGINS + MAX_SILENCE
    for time in (BEGINS, given_up):
        assert f"{time:%Y-%m-%d %H:%M:%S} UTC" in explanation.waiting_for


@pytest.mark.proves("SUP-10", "OPR-8")
def test_an_order_whose_priority_is_raised_is_sent_with_the_next_probe(switched_off):
    """It does not end the pause, which is that of the agent."""
    world = switched_off(20)
    world.advance(timedelta(minutes=20))
    assert world.order(19).step("charge").counts.attempts == 0
    world.run(world.operations.orders.act(BY_NAME["expedite"], world.order_ids[19], GRACE))
    assert world.order(19).step("charge").counts.attempts == 0
    world.advance(LONGEST_PROBE_PAUSE + TIMEOUT + 2 * EVERY)
    assert world.order(19).step("charge").counts.attempts == 1


@pytest.mark.proves("SUP-9", "SUP-3")
def test_a_cooldown_comes_first_and_the_bound_counts_anew_after_it(switched_off):
    """An agent that is back meanwhile gets the order."""
    rules = {"on_failure": OnFailure.COOLDOWN, "cooldown": timedelta(hours=2), "max_cooldowns": 1}
    world = switched_off(1, **rules)
    world.advance(ENDS_WITHIN)
    assert world.order().step("charge").counts.cooldowns == 1
    world.advance(timedelta(hours=2))
    assert not world.order().has_ended
    world.advance(ENDS_WITHIN)
    assert world.order().cause.code is Code.NO_AGENT_BEGAN


@pytest.mark.proves("SUP-9", "SCH-13")
def test_an_order_goes_on_without_an_optional_step_that_no_agent_begins(switched_off):
    """It ends well."""
    world = switched_off(1, on_failure=OnFailure.CONTINUE)
    world.advance(ENDS_WITHIN)
    assert world.order().process_state is ProcessState.PROCESSED


@pytest.mark.proves("SUP-9", "UND-4")
def test_an_undo_that_no_agent_begins_ends_too(switched_off):
    """What was sent may have been done, and an operator is alerted."""
    world = switched_off(1)
    world.advance(2 * TIMEOUT)
    world.run(world.operations.orders.act(BY_NAME["cancel"], world.order_ids[0], GRACE))
    world.advance(ENDS_WITHIN + 2 * TIMEOUT)
    assert world.order().outcome is Outcome.UNDO_INCOMPLETE
    assert world.order().cause.code is Code.NO_AGENT_BEGAN


@pytest.mark.proves("SUP-9", "OPR-9")
def test_an_agent_that_is_paused_is_not_silent(switched_off):
    """Orders wait for the end of the pause, however long that is."""
    world = switched_off(3)
    world.advance(3 * TIMEOUT)
    request = PauseRequest(operator="grace", note="a migration", until=BEGINS + 3 * MAX_SILENCE)
    engine = world.engine
    pauses = AgentPauseService(
        agents=engine.agent_names, agent_health=engine.agent_health, clock=world.loop.now
    )
    world.run(pauses.pause("bank", request))
    world.advance(2.5 * MAX_SILENCE)
    assert ended(world.all()) == []
    world.switch_on()
    world.advance(MAX_SILENCE / 2 + 4 * EVERY)
    assert {order.process_state for order in world.all()} == {ProcessState.PROCESSED}
