"""What the sender of an order is told, from its submission to its end (ALR-2, ALR-3)."""

import json
import re
from dataclasses import replace

import pytest

from engine.domain.messages import AgentRequest, OrderReady, decode
from engine.storage.agent_health import AgentHealth, AttemptFault
from tests.support.builders import (
    NOW,
    ORDER_ID,
    THRESHOLD,
    TIMEOUT,
    TOLERANCE,
    answer_to,
    next_try,
    seconds,
    under_way,
)
from tests.support.memory_world import World

QUEUE = "status-example"
DONE = {"outcome": "completed", "result": {"reference": "r-1"}}
REFUSED = {"outcome": "failed", "detail": "not to be had"}
INSTANCES = ("submission-7f3a", "scheduler-7f3a", "supervisor-7f3a")


class Sender:
    """Submits an order and reads the queue that it named; each turn of others takes a second."""

    def __init__(self):
        self.world = world = World()
        submitter, scheduler, supervisor = INSTANCES
        world.submission = replace(world.submission, instance=submitter)
        world.scheduler = replace(
            world.scheduler, rules=replace(world.scheduler.rules, instance=scheduler)
        )
        self.supervisor = world.supervised_by(supervisor)

    async def submits(self, workflow="payment-only"):
        await self.world.submitted(f',"replyTo":"{QUEUE}"', workflow)
        await self._a_second_passes()
        await self.order_is_claimed()

    async def order_is_claimed(self):
        await self.world.scheduler.on_order_ready(OrderReady(order_id=ORDER_ID))
        await self._a_second_passes()

    async def step_is_answered(self, step, reply):
        """By the agent, to the last request."""
        sent = [
            message for message in self.world.parts.bus.sent if f":{step}:" in message.message_id
        ]
        agent = sent[-1].queue.removesuffix("-requests")
        await self.world.scheduler.receive(
            answer_to(decode(AgentRequest, sent[-1].body), **reply), agent
        )
        await self._a_second_passes()

    async def step_times_out(self):
        """Though its agent has begun it."""
        begun = under_way(await self.world.order())
        report = AgentHealth(
            agent="payment",
            instance="1",
            at=self.world.now,
            begun=begun,
            faults=(AttemptFault(text="", requests=begun),),
        )
        await self.world.app.engine.agent_health.publish(report)
        self.world.now += TIMEOUT + TOLERANCE
        await self.supervisor.sweep()
        await self._a_second_passes()
        self.world.now = next_try(await self.world.order(), self.world.now)

    async def _a_second_passes(self):
        await self.world.outbox.relay()
        self.world.now += seconds(1)

    @property
    def messages(self):
        return [message for message in self.world.parts.bus.sent if message.queue == QUEUE]

    def notices(self):
        return [json.loads(message.body) for message in self.messages]

    def events(self):
        return [notice["event"] for notice in self.notices()]


@pytest.fixture
def sender():
    return Sender()


def notice(number, event, second, **more):
    """A whole notice as it has to arrive; `number` is of the transition and of the notice in it."""
    version, _, place = number.partition(".")
    return {
        "orderId": ORDER_ID,
        "event": event,
        "at": (NOW + seconds(second)).isoformat(),
        "sequence": int(version) * 100 + int(place or 0),
        "noticeId": f"{ORDER_ID}:{version}:{place or 0}",
    } | more


@pytest.mark.proves("ALR-2", "ALR-3")
async def test_the_sender_gets_a_notice_of_what_happens_and_of_nothing_else(sender):
    """Each thing is told once, in these words: what happened to which order, and nobody's name."""
    await sender.submits()
    await sender.step_is_answered("payment", DONE)
    assert sender.notices() == [
        notice("1", "received", 0),
        notice("2", "processing-started", 1),
        notice("3", "step-completed", 2, step="payment"),
        notice("3.1", "order-completed", 2),
    ]


@pytest.mark.proves("ALR-2", "ALR-3")
async def test_the_sender_gets_a_notice_that_the_order_failed_and_why(sender):
    """With the reason that the service gave."""
    await sender.submits()
    await sender.step_is_answered("payment", REFUSED)
    assert sender.notices()[2:] == [notice("3", "order-failed", 2, reason="not to be had")]


@pytest.mark.proves("ALR-2")
async def test_the_sender_gets_a_notice_that_the_supervisor_gave_the_order_up(sender):
    """It is told once, however often it was tried; a sender need not know of further tries."""
    await sender.submits()
    for _ in range(THRESHOLD):
        await sender.step_times_out()
        await sender.order_is_claimed()
    assert sender.events() == ["received", "processing-started", "order-failed"]
    assert "timed out 3 times" in sender.notices()[-1]["reason"]


@pytest.mark.proves("ALR-2")
async def test_the_sender_gets_a_notice_that_the_order_was_undone(sender):
    """And why; of the undo of each step nothing."""
    await sender.submits("order")
    await sender.step_is_answered("payment", DONE)
    await sender.step_is_answered("stock", REFUSED)
    await sender.order_is_claimed()
    for step in ("payment", "stock"):
        await sender.step_is_answered(step, DONE)
    assert sender.events() == ["received", "processing-started", "step-completed", "order-undone"]
    assert sender.notices()[-1]["reason"] == "stock: not to be had"


@pytest.mark.proves("ALR-2")
async def test_every_notice_has_an_id_and_belongs_to_the_order(sender):
    """The order's id correlates them, a notice's own id names it, and the sequence orders them."""
    await sender.submits("order")
    for step in ("stock", "payment", "shipment", "capture"):
        await sender.step_is_answered(step, DONE)
    assert {message.correlation_id for message in sender.messages} == {ORDER_ID}
    ids = [message.message_id for message in sender.messages]
    assert ids == [received["noticeId"] for received in sender.notices()]
    assert len(set(ids)) == len(ids) == 7
    sequence = [received["sequence"] for received in sender.notices()]
    assert sequence == sorted(set(sequence))


@pytest.mark.proves("ALR-3")
@pytest.mark.parametrize("reply", [DONE, REFUSED], ids=["completed", "failed"])
async def test_neither_knows_which_instance_of_the_other_it_deals_with(sender, reply):
    """No notice names who handled the order; a sender is known by its queue alone."""
    await sender.submits("order")
    await sender.step_times_out()
    await sender.order_is_claimed()
    for step in ("stock", "payment"):
        await sender.step_is_answered(step, reply)
    actors = {entry.actor.partition("/")[2] for entry in await sender.world.store.history(ORDER_ID)}
    assert actors == set(INSTANCES)
    sent = " ".join(f"{message.message_id} {message.body}" for message in sender.messages)
    assert not re.search("|".join(INSTANCES), sent)


async def test_a_sender_that_names_no_queue_gets_no_notice(sender):
    """The private queue is an offer."""
    await sender.world.submitted()
    await sender.order_is_claimed()
    assert sender.world.parts.bus.sent
    assert [
        message for message in sender.world.parts.bus.sent if message.queue.startswith("status-")
    ] == []
