"""All roles in memory, at simulated services that remember keys in different ways."""

from dataclasses import replace
from datetime import timedelta

import pytest

from agents.service import OVERDUE
from engine.decisions.operator_actions import possible
from engine.domain.causes import Code
from engine.domain.errors import DeferredError, RefusedError, RejectedError, TransientError
from engine.domain.messages import (
    SCHEDULER_REQUESTS,
    AgentRequest,
    OrderReady,
    decode,
    decode_reply,
    requests_queue,
    responses_queue,
)
from engine.domain.statuses import ProcessState
from operations.api.requests import OperatorRequest
from samples.simulator.ledger import Ledger
from samples.simulator.rules import SimulatedCall, SimulatedFault, simulated
from samples.simulator.service import FAULT_CACHE_SECONDS, Simulator
from testkit.memory import in_memory, of_columns
from tests.support.acting import act
from tests.support.apps import app
from tests.support.builders import NOW, ORDER_ID, seconds
from tests.support.memory_world import MESSAGE

DAY = timedelta(hours=24)
KEY = f"{ORDER_ID}:payment"
GRACE = OperatorRequest(operator="grace", note="the customer has a new card")
STRIPE_LIKE = {"remembers_refusals": True, "keys_last": DAY}
CARRIER_LIKE = {"answer_within": timedelta(hours=2)}


class SimulatedRemote:
    """`RemoteService` at a simulated service, with the meaning that HTTP gives to its statuses."""

    def __init__(self, simulator):
        self.simulator = simulator

    async def call(self, request, timeout_seconds):
        del timeout_seconds
        call = SimulatedCall(order_id=request.order_id, step=request.step, order=request.content)
        answer = await self.simulator.call(
            "payment", request.operation, request.idempotency_key, call
        )
        match answer.status:
            case 200:
                return answer.result
            case 202:
                raise DeferredError(answer.reason, retry_after=answer.retry_after)
            case 410 | 422:
                raise RejectedError(answer.reason)
        raise TransientError(f"{answer.status} {answer.reason}")


class NeverDone:
    """`RemoteService` that accepts everything, and does nothing."""

    async def call(self, request, timeout_seconds):
        del request, timeout_seconds
        raise DeferredError("queued", retry_after=seconds(20))


class Everything:
    """An order for a payment, all roles, and the simulated service; who sleeps moves the clock."""

    def __init__(self, **declared):
        self.now, ids = NOW, iter(range(10**6))
        self.parts = in_memory(clock=lambda: self.now, new_id=lambda: f"c{next(ids)}")
        self.app = app(self.parts, declared=declared)
        self.simulator = Simulator(
            services=simulated(self.app.engine.business),
            called=("payment",),
            ledger=Ledger(of_columns()),
            clock=lambda: self.now,
            sleep=self.sleep,
            chance=lambda: 0,
        )
        self.parts.services["payment"] = SimulatedRemote(self.simulator)
        agent = next(
            candidate for candidate in self.app.engine.agents if candidate.name == "payment"
        )
        self.agent = replace(self.app.engine.agent(agent), sleep=self.sleep)

    async def sleep(self, time):
        self.now += seconds(time)

    async def submitted(self):
        await self.app.engine.submission.record((MESSAGE % "").encode())
        await self.settled()

    async def settled(self):
        """Deliver messages until none is left."""
        delivered = 0
        while self.parts.bus.sent:
            await self._deliver(self.parts.bus.sent.pop(0))
            delivered += 1
            assert delivered < 1000

    async def _deliver(self, message):
        if message.queue == SCHEDULER_REQUESTS:
            await self.app.engine.scheduler.on_order_ready(decode(OrderReady, message.body))
        elif message.queue == requests_queue("payment"):
            await self.agent.handle(decode(AgentRequest, message.body))
        elif message.queue == responses_queue("payment"):
            await self.app.engine.scheduler.receive(decode_reply(message.body), "payment")

    async def until(self, time):
        """Let the time pass, and sweep and poll at its end."""
        self.now = max(self.now, time)
        await self.app.engine.supervisor.sweep()
        await self.app.engine.scheduler.poll()
        await self.settled()

    async def fault(self, mode, **more):
        await self.simulator.set_fault(
            "payment", SimulatedFault.model_validate({"mode": mode} | more)
        )
        self.now += seconds(FAULT_CACHE_SECONDS)

    async def acts(self, name):
        order, now = await self.order(), self.now
        await self.app.engine.unit_of_work.commit(act(name, order, GRACE, now))
        await self.settled()

    async def order(self):
        return await self.app.engine.store.load(ORDER_ID)

    async def state(self):
        return (await self.order()).process_state

    async def effects(self):
        """The idempotency keys and actions of what has happened."""
        report = await self.simulator.report("payment", ORDER_ID)
        return [(effect["idempotencyKey"], effect["action"]) for effect in report["effects"]]

    async def in_doubt(self):
        """Let every answer be lost until the order waits for an operator."""
        await self.fault("late", latencyMs=0)
        await self.submitted()
        await self.ended()
        await self.fault("none")

    async def ended(self):
        """Let the time pass until the order waits for an operator; return when a failure counted."""
        counted_from = None
        for _ in range(60):
            order = await self.order()
            if order.failures and counted_from is None:
                counted_from = self.now
            if order.process_state is ProcessState.ERROR:
                return counted_from
            await self.until(self.now + seconds(10))
        raise AssertionError(f"the order is {order.process_state}")


@pytest.mark.proves("AGT-3", "OPR-3")
@pytest.mark.parametrize(
    ("declared", "then", "key"),
    [(STRIPE_LIKE, "none", f"{KEY}:1"), (CARRIER_LIKE, "accept", KEY)],
    ids=["Stripe-like", "carrier-like"],
)
async def test_a_resubmit_after_a_declined_card_works_at_both_kinds(declared, then, key):
    """Where the refusal is remembered, in a new round; where it is forgotten, with the same key."""
    world = Everything(**declared)
    await world.fault("reject")
    await world.submitted()
    assert (await world.state(), await world.effects()) == (ProcessState.ERROR, [])
    await world.fault(then, latencyMs=30_000)
    await world.acts("resubmit")
    await world.until(world.now + seconds(30))
    assert await world.state() is ProcessState.PROCESSED
    assert await world.effects() == [(key, "authorise")]
    assert (await world.order()).failures == 0


async def test_a_remembered_refusal_that_is_not_declared_comes_back():
    """This is why `remembers_refusals` is declared."""
    world = Everything()
    await world.fault("remember")
    await world.submitted()
    await world.fault("none")
    await world.acts("resubmit")
    assert (await world.state(), await world.effects()) == (ProcessState.ERROR, [])


@pytest.mark.proves("AGT-11")
async def test_what_is_accepted_is_done_later_and_once():
    """It is asked again at the time that the service names, although a poll comes before."""
    world = Everything(**CARRIER_LIKE)
    await world.fault("accept", latencyMs=30_000)
    begins = world.now
    await world.submitted()
    assert await world.state() is ProcessState.PENDING
    await world.until(begins + seconds(20))
    assert await world.effects() == []
    await world.until(begins + seconds(31))
    assert await world.state() is ProcessState.PROCESSED
    assert await world.effects() == [(KEY, "authorise")]
    assert (await world.simulator.report("payment", ORDER_ID))["calls"] == 2


@pytest.mark.proves("AGT-11", "SUP-3")
async def test_what_is_accepted_for_ever_ends():
    """Nothing is counted until the answer is overdue; then each attempt is, up to the threshold."""
    world = Everything(answer_within=seconds(90))
    begins = world.now
    world.agent = replace(world.agent, remote=NeverDone())
    await world.submitted()
    counted_from = await world.ended()
    assert counted_from - begins >= seconds(90)
    cause = (await world.order()).cause
    assert (cause.code, cause.facts["fault"]) == (Code.THRESHOLD_REACHED, OVERDUE)


@pytest.mark.proves("AGT-12")
async def test_a_key_that_was_forgotten_is_not_sent_again():
    """On Friday it was done and nobody heard; on Monday the operator finds out, and skips."""
    world = Everything(**STRIPE_LIKE)
    await world.in_doubt()
    world.now += 3 * DAY
    with pytest.raises(RefusedError):
        await world.acts("resubmit")
    assert possible(await world.order(), world.now) == [
        "skip",
        "retry-with-new-key",
        "settle",
        "cancel",
    ]
    await world.acts("skip")
    assert await world.state() is ProcessState.PROCESSED
    assert await world.effects() == [(KEY, "authorise")]


async def test_a_key_that_is_forgotten_and_not_declared_charges_twice():
    """This is why `keys_last` is declared."""
    world = Everything()
    await world.in_doubt()
    await world.fault("forget", latencyMs=1000)
    world.now += 3 * DAY
    await world.acts("resubmit")
    assert await world.effects() == [(KEY, "authorise")] * 2
