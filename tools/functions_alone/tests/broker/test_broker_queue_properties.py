"""What the broker does by itself when a time comes, and what it says of its queues."""

from datetime import timedelta

import pytest
from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import MessageLockLostError

from functions_alone.tests.support.waiting import PATIENCE_SECONDS, eventually


async def test_broker_refuses_a_late_settlement_by_management(special):
    """A settlement by management operation, which no clock of the SDK's stands before, is refused after the lock."""
    queue = special("quick")
    await queue.send("late")
    [first] = await queue.receive()
    token = first.lock_token
    [second] = await queue.receive()
    with pytest.raises(MessageLockLostError):
        await queue.receiver._settle_message_via_mgmt_link("completed", [token])
    await queue.complete(second)


async def test_broker_refuses_a_late_settlement_on_the_link(special, broker, monkeypatch):
    """A client whose clock is behind is told by the broker that the lock is lost."""
    queue = special("quick")
    await queue.send("behind")
    [message] = await queue.receive()
    monkeypatch.setattr(type(message), "_lock_expired", property(lambda _self: False))
    await until_it_holds(broker, "quick", active=1)
    with pytest.raises(MessageLockLostError):
        await queue.receiver.complete_message(message)
    [again] = await queue.receive()
    await queue.complete(again)


async def test_expired_message_is_dropped(special, broker):
    """A message past the queue's time to live is not delivered, and gone."""
    queue = special("mortal")
    await queue.send("short-lived", time_to_live=timedelta(hours=1))
    await until_it_holds(broker, "mortal")


async def test_duplicates_are_taken_after_the_window(special):
    """A message id is forgotten when the window ends, and not before."""
    queue = special("unique")
    await queue.send("first", message_id="same")
    await queue.complete(*await queue.receive())

    async def taken():
        await queue.send("after the window", message_id="same")
        return await queue.receiver.receive_messages(1, max_wait_time=0.5)

    [message] = await eventually(taken)
    await queue.complete(message)
    assert str(message) == "after the window"


async def test_health_counts_every_state(special, broker):
    """The health endpoint names, for every queue, the messages that are active, locked, scheduled and dead."""
    queue = special("plain")
    await queue.send("dead", "locked", "active")
    dead, locked, active = await queue.receive(3)
    await queue.receiver.dead_letter_message(dead, reason="x")
    await queue.receiver.abandon_message(active)
    numbers = await queue.sender.schedule_messages(ServiceBusMessage("s"), locked.locked_until_utc)
    health = await broker.health()
    assert health["status"] == "healthy"
    assert health["queues"]["plain"] == counts(active=1, locked=1, scheduled=1, deadLettered=1)
    await queue.sender.cancel_scheduled_messages(numbers)
    await queue.complete(locked, *await queue.receive(1))
    for message in await queue.dead_letters.receive_messages(1, max_wait_time=PATIENCE_SECONDS):
        await queue.dead_letters.complete_message(message)
    assert (await broker.health())["queues"]["plain"] == counts()


def counts(**given: int) -> dict[str, int]:
    return {"active": 0, "locked": 0, "scheduled": 0, "deadLettered": 0, **given}


async def until_it_holds(broker, queue, **given: int) -> None:
    """Wait until the queue holds that, and nothing else."""

    async def so():
        assert await broker.counts(queue) == counts(**given)
        return True

    await eventually(so)
