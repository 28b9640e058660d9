"""How replies are read: what they answer stands in the body, for the ids of a batch can be shifted."""

import pytest
from azure.functions.servicebus import ServiceBusMessage
from builders import ORDER_ID, answer

from adapters.memory import MemoryPoisonQueues
from scheduler.triggers import blueprint

THREE = [answer(order_id=f"{ORDER_ID[:-1]}{number}", result={"reference": f"r-{number}"}) for number in range(3)]
STRANGER = b'{"outcome":"failed","reason":"a stranger"}'


class Received:
    """A scheduler that only notes its replies, behind its triggers."""

    def __init__(self):
        self.replies = []
        self.poison = MemoryPoisonQueues()
        builders = blueprint(self, self.poison, ["payment"])._function_builders
        functions = {each._function.get_function_name(): each._function.get_user_function() for each in builders}
        self._responses = functions["scheduler_payment_responses"]

    async def receive(self, reply, agent):
        assert agent == "payment"
        self.replies.append(reply)

    async def get(self, *messages):
        """Take a batch of bodies and ids."""
        nothing = {"application_properties": {}, "user_properties": {}, "message_id": "m"}
        await self._responses([ServiceBusMessage(body=body, correlation_id=each, **nothing) for body, each in messages])

    def kept(self):
        return [(each.body, each.reason) for each in self.poison.kept]


@pytest.fixture
def scheduler():
    return Received()


def body_of(reply):
    return reply.to_json().encode()


@pytest.mark.proves("SCH-6", "FLT-6")
async def test_a_stranger_without_an_id_costs_no_reply_its_order(scheduler):
    """Azure's host leaves the gap out, so the ids are moved up by one: the bodies alone say what is answered."""
    ids = [*(reply.request_id for reply in THREE), None]
    await scheduler.get(*zip([STRANGER, *map(body_of, THREE)], ids, strict=True))
    assert scheduler.replies == THREE
    ((body, reason),) = scheduler.kept()
    assert body == STRANGER
    assert "orderId: Field required" in reason
    assert scheduler.poison.kept[0].correlation_id is None


@pytest.mark.proves("SCH-6", "FLT-6")
async def test_a_reply_whose_id_names_another_request_is_kept_apart(scheduler):
    """Neither is believed; those beside it are."""
    one, other, third = THREE
    await scheduler.get((body_of(one), one.request_id), (body_of(other), one.request_id), (body_of(third), "a:b:c:d"))
    assert scheduler.replies == [one]
    assert [body for body, _ in scheduler.kept()] == [body_of(other), body_of(third)]
    assert all("correlation id: it is not that of the request" in reason for _, reason in scheduler.kept())


@pytest.mark.parametrize("empty", [None, ""], ids=["none", "empty"])
async def test_a_reply_that_names_what_it_answers_needs_no_id(scheduler, empty):
    """The body decides."""
    await scheduler.get((body_of(THREE[0]), empty))
    assert scheduler.replies == THREE[:1]
    assert scheduler.kept() == []
