"""What becomes of the messages of a batch: each is told by its body, and goes its own way."""

from unittest.mock import patch

import pytest
from azure.functions.servicebus import ServiceBusMessage

from engine.domain.errors import ConflictError, NewerWorkflowError, UnavailableError
from engine.domain.messages import PAUSE, SCHEDULER_REQUESTS, OrderReady, decode
from engine.runtime.unread import UnreadableMessageHandler
from engine.storage.poison import PoisonStore
from engine.words.causes import words_of
from scheduler.triggers import ONCE_MORE, Inbox, scheduler_functions
from testkit.memory import MemoryBus, of_columns
from tests.support.builders import LONGEST_UPGRADE, NOW, ORDER_ID, answer, seconds
from tests.support.kept import kept

THREE = [
    answer(order_id=f"{ORDER_ID[:-1]}{number}", result={"reference": f"r-{number}"})
    for number in range(3)
]
STRANGER = b'{"outcome":"failed","reason":"a stranger"}'


class Received:
    """A scheduler that only notes its messages; what it `cannot` do raises this."""

    def __init__(self):
        self.now = NOW
        self.replies, self.orders_ready, self.cannot, self.leaves = [], [], {}, set()
        self.poison, self.bus = PoisonStore(of_columns()), MemoryBus()
        parts = {"bus": self.bus, "clock": lambda: self.now}
        unread = UnreadableMessageHandler(
            poison=self.poison, version_overlap=LONGEST_UPGRADE, **parts
        )
        inbox = Inbox(service=self, unread=unread, **parts)
        builders = scheduler_functions(inbox, ["payment"])._function_builders
        self._functions = {
            builder._function.get_function_name(): builder._function.get_user_function()
            for builder in builders
        }

    async def receive(self, reply, agent):
        assert agent == "payment"
        self._note(reply, self.replies)

    async def on_order_ready(self, order_ready):
        self._note(order_ready, self.orders_ready)
        return order_ready.order_id in self.leaves

    def _note(self, message, messages):
        if message.order_id in self.cannot:
            raise self.cannot[message.order_id]
        messages.append(message)

    async def get(self, *messages, function="scheduler_payment_responses"):
        """Take a batch of bodies and ids."""
        nothing = {"application_properties": {}, "user_properties": {}, "message_id": "m"}
        batch = [
            ServiceBusMessage(body=body, correlation_id=correlation_id, **nothing)
            for body, correlation_id in messages
        ]
        await self._functions[function](batch)

    async def kept(self):
        return [(message.body, words_of(message.reason)) for message in await kept(self.poison)]


@pytest.fixture
def scheduler():
    return Received()


def body_of(reply):
    return reply.to_json().encode()


@pytest.mark.proves("SCH-6", "FLT-6")
async def test_a_stranger_without_an_id_costs_no_reply_its_order(scheduler):
    """Azure's host moves the ids up over the gap: only the bodies say what is answered."""
    ids = [*(reply.request_id for reply in THREE), None]
    await scheduler.get(*zip([STRANGER, *map(body_of, THREE)], ids, strict=True))
    assert scheduler.replies == THREE
    ((body, reason),) = await scheduler.kept()
    assert body == STRANGER
    assert "orderId: Field required" in reason
    assert (await kept(scheduler.poison))[0].correlation_id is None


@pytest.mark.proves("SCH-6", "FLT-6")
async def test_a_reply_whose_id_names_another_request_is_kept_apart(scheduler):
    """Neither is believed; those beside it are."""
    one, other, third = THREE
    await scheduler.get(
        (body_of(one), one.request_id),
        (body_of(other), one.request_id),
        (body_of(third), "a:b:c:d"),
    )
    assert scheduler.replies == [one]
    assert [body for body, _ in await scheduler.kept()] == [body_of(other), body_of(third)]
    ids = [(message.source, message.correlation_id) for message in await kept(scheduler.poison)]
    assert ids == [("payment-responses", one.request_id), ("payment-responses", "a:b:c:d")]
    assert all("correlation id: " in reason for _, reason in await scheduler.kept())


@pytest.mark.parametrize("empty", [None, ""], ids=["none", "empty"])
async def test_a_reply_that_names_what_it_answers_needs_no_id(scheduler, empty):
    """The body decides."""
    await scheduler.get((body_of(THREE[0]), empty))
    assert scheduler.replies == THREE[:1]
    assert await scheduler.kept() == []


async def at_once(function, work):
    """Stands in for `retry_while_unavailable`, without its patience."""
    del function
    return await work()


NEIGHBOURS = {
    "of a newer version": NewerWorkflowError(),
    "with a row that nobody can read": KeyError("State"),
    "that conflicts for ever": ConflictError(),
    "that cannot be reached": UnavailableError(),
}
"""What is wrong with an order whose message travels beside those of others."""


@pytest.fixture(params=NEIGHBOURS)
def with_a_neighbour(request, scheduler):
    """A scheduler that cannot act on messages of the second of three orders."""
    scheduler.cannot[THREE[1].order_id] = NEIGHBOURS[request.param]
    with patch("scheduler.triggers.retry_while_unavailable", at_once):
        yield scheduler


@pytest.mark.proves("SCH-6", "FLT-6", "FLT-12")
async def test_a_reply_that_cannot_be_acted_on_comes_again_alone(with_a_neighbour):
    """A little later, and for no longer than it counts; those beside it are settled."""
    replies = [reply.model_copy(update={"complete_by": NOW + seconds(5)}) for reply in THREE]
    await with_a_neighbour.get(*((body_of(reply), reply.request_id) for reply in replies))
    assert with_a_neighbour.replies == [replies[0], replies[2]]
    (again,) = with_a_neighbour.bus.sent
    first = replies[1].to_bus("payment", NOW)
    assert again.queue == first.queue
    assert again.correlation_id == first.correlation_id
    assert again.body == first.body
    assert (again.not_before, again.time_to_live) == (NOW + PAUSE, seconds(5) - PAUSE)
    assert await with_a_neighbour.kept() == []


@pytest.mark.proves("SCH-6")
async def test_a_reply_whose_time_is_over_does_not_come_again(with_a_neighbour):
    """Nothing follows from it any more."""
    late = THREE[1].model_copy(update={"complete_by": NOW + PAUSE})
    await with_a_neighbour.get((body_of(late), late.request_id))
    assert (with_a_neighbour.replies, with_a_neighbour.bus.sent) == ([], [])


@pytest.mark.proves("SCH-1", "FLT-6")
async def test_a_wake_up_that_comes_to_nothing_brings_no_other_back(with_a_neighbour):
    """The poll finds its order."""
    orders_ready = [OrderReady(order_id=reply.order_id) for reply in THREE]
    bodies = [(body_of(message), message.order_id) for message in orders_ready]
    await with_a_neighbour.get(*bodies, function="scheduler_order_ready")
    assert with_a_neighbour.orders_ready == [orders_ready[0], orders_ready[2]]


async def test_a_wake_up_that_leaves_its_order_comes_once_more(scheduler):
    """Under another id: the queue may know the first."""
    first = OrderReady(order_id=ORDER_ID, needs="payment", since=NOW)
    scheduler.leaves.add(ORDER_ID)
    await scheduler.get((body_of(first), ORDER_ID), function="scheduler_order_ready")
    (message,) = scheduler.bus.sent
    assert decode(OrderReady, message.body) == first.model_copy(update={"again": True})
    assert (message.queue, message.not_before) == (SCHEDULER_REQUESTS, NOW + ONCE_MORE)
    assert message.message_id != first.to_bus().message_id
