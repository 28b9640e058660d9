"""A gateway turns every call away for a while: nothing is undone for that."""

import json
from contextlib import asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest

from engine.azure.remote import HttpRemoteService
from engine.domain.errors import GatewayError, TransientError
from engine.domain.messages import decode_reply, responses_queue
from engine.domain.orders import InError
from engine.domain.states import Completed
from engine.domain.statuses import Outcome, ProcessState
from engine.words.causes import words_of
from engine.workflow import UNDO, Agent, Model, Operation, Text, Workflow, application
from shop.business import ORDER
from testkit import WorkflowTestEnvironment, services
from tests.support.builders import answer_to, seconds
from tests.support.scale import in_soak
from tests.support.scheduling import Scheduling

PATIENT = replace(ORDER, steps=tuple(replace(step, timeout=seconds(60)) for step in ORDER.steps))
"""As long as a step has unless somebody says otherwise."""

OFFERS = {name: (name,) for name in ("payment", "inventory", "shipping")}
ROUND = seconds(2)
"""Between two looks at what has come."""


class Gateway:
    """Answers in the place of a service until it is opened; then the service does."""

    def __init__(self, status):
        self.status = status

    @asynccontextmanager
    async def request(self, method, url, **_):
        del method, url
        text = (
            b"<html>Site Disabled</html>"
            if self.status != 200
            else json.dumps({"reference": "r-1"}).encode()
        )

        class Content:
            async def iter_chunked(self, _):
                yield text

        yield SimpleNamespace(
            status=self.status, headers={}, charset=None, content=Content(), close=lambda: None
        )


class Street:
    """The shop's orders, each with goods to reserve behind the gateway; time passes only here."""

    def __init__(self, status):
        self.world = Scheduling(PATIENT, offers=OFFERS)
        self.app, self.gateway = self.world.app(instance_id="one"), Gateway(status)
        (inventory,) = (agent for agent in self.app.engine.agents if agent.name == "inventory")
        remote = HttpRemoteService(
            base_url="https://inventory",
            session=lambda: self.gateway,
            longest_wait=seconds(600),
            clock=lambda: self.world.now,
        )
        self.agent = replace(self.app.engine.agent(inventory), remote=remote, sleep=self.sleep)

    async def sleep(self, pause):
        """Of the agent, between two calls of a request: it takes one request at a time here."""
        self.world.now += seconds(pause)

    async def live(self, long):
        """Let everybody work for so long."""
        until = self.world.now + long
        while self.world.now < until:
            await self.app.engine.scheduler.poll()
            await self.app.engine.supervisor.sweep()
            for name in ("payment", "shipping"):
                for request in self.world.requests(name):
                    await self.app.engine.scheduler.receive(
                        answer_to(request, result={"reference": "r"}), name
                    )
            for request in self.world.requests("inventory"):
                await self.agent.handle(request)
            for reply in self._replies():
                await self.app.engine.scheduler.receive(reply, "inventory")
            self.world.now += ROUND

    def _replies(self):
        """Take the replies of the one that stands behind the gateway out of their queue."""
        bus, queue = self.world.parts.bus, responses_queue("inventory")
        replies = [decode_reply(message.body) for message in bus.sent if message.queue == queue]
        bus.sent = [message for message in bus.sent if message.queue != queue]
        return replies

    async def orders(self, ids):
        return [await self.world.load(order_id) for order_id in ids]


@pytest.mark.proves("AGT-6", "AGT-8")
@pytest.mark.parametrize("status", [401, *in_soak(403, 404)])
async def test_orders_outlast_a_gateway_that_is_closed_for_two_minutes(status):
    """The circuit opens; all orders are processed once the service is reached again."""
    street = Street(status)
    ids = [await street.world.record("order", f"b{number % 8:02d}") for number in range(50)]
    await street.live(seconds(120))
    assert not any(order.outcome for order in await street.orders(ids))
    street.gateway.status = 200
    await street.live(seconds(600))
    assert {order.process_state for order in await street.orders(ids)} == {ProcessState.PROCESSED}


@pytest.mark.proves("AGT-6", "SUP-3", "OPR-1")
@pytest.mark.parametrize("status", [404, *in_soak(403)])
async def test_an_order_that_a_gateway_turns_away_for_an_hour_is_left_to_an_operator(status):
    """They are too few to open a circuit: each ends in `Error`, and keeps what was done."""
    street = Street(status)
    ids = [await street.world.record("order", "b00") for _ in range(3)]
    await street.live(seconds(3600))
    for order in await street.orders(ids):
        assert order.state == InError(Outcome.FAILED)
        assert str(status) in words_of(order.cause)
        assert isinstance(order.step("payment").state, Completed)


class Sale(Model):
    item: Text


class Stock(Agent):
    take = Operation(Sale)
    put = Operation(Sale)


class Bank(Agent):
    charge = Operation(Sale)
    refund = Operation(Sale)


STOCK, BANK = Stock("stock"), Bank("bank")
SALE = Workflow("sale", Sale)


@SALE.step(STOCK.take, undo=STOCK.put)
def take(sale: Sale) -> Sale:
    return sale


@SALE.step(BANK.charge, undo=BANK.refund, after=[take], on_failure=UNDO)
def charge(sale: Sale) -> Sale:
    return sale


SALES = application(SALE, agents=[BANK, STOCK], sample=Sale(item="tea"))
FAULTS = {"turned away": GatewayError("404"), "down": TransientError("503")}


@pytest.mark.proves("SUP-3", "ALR-1")
@pytest.mark.parametrize("apart", [1, 14])
def test_only_its_own_fault_decides_about_an_order(apart, monkeypatch):
    """At one agent a gateway turns an order away, and the service fails for another (engine 13)."""
    plain = services._ServiceInMemory.call

    async def call(self, request, seconds_left):
        if request.operation == "charge":
            raise FAULTS[request.content["item"]]
        return await plain(self, request, seconds_left)

    monkeypatch.setattr(services._ServiceInMemory, "call", call)
    environment = WorkflowTestEnvironment(SALES, circuit_orders=100)
    turned_away = environment.submit(Sale(item="turned away"))
    environment.advance(seconds=apart)
    down = environment.submit(Sale(item="down"))
    environment.advance(minutes=20)
    assert (turned_away.outcome, down.outcome) == ("failed", "undone")
    assert "404" in turned_away.reason
    assert "503" in down.reason
    assert environment.effects("stock", turned_away) == ["take"]
    assert environment.effects("stock", down) == ["take", "put"]
