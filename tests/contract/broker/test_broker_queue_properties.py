"""What a queue's properties change: lock duration, delivery limit, time to live, duplicate detection."""

from datetime import timedelta

import pytest
from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import MessageLockLostError
from waiting import PATIENCE_SECONDS, eventually


async def test_expired_lock_makes_the_message_available_and_counts(special):
    """When a lock runs out the message is delivered again with one more delivery counted."""
    queue = special("quick")
    await queue.send("slow")
    [first] = await queue.receive()
    [second] = await queue.receive()
    await queue.complete(second)
    assert (first.delivery_count, second.delivery_count) == (0, 1)
    assert first.lock_token != second.lock_token


async def test_settling_with_an_expired_lock_raises(special):
    """A settlement after the lock ran out raises MessageLockLostError, whoever notices first."""
    queue = special("quick")
    await queue.send("late")
    [first] = await queue.receive()
    [second] = await queue.receive()
    with pytest.raises(MessageLockLostError):
        await queue.receiver.complete_message(first)
    # Past the SDK's own look at the clock, so that the broker has to refuse.
    with pytest.raises(MessageLockLostError):
        await queue.receiver._settle_message_via_mgmt_link("completed", [first.lock_token])
    with pytest.raises(MessageLockLostError):
        await queue.receiver.renew_message_lock(first)
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


async def test_renewed_lock_holds(special):
    """A lock that is renewed in time keeps the message from others for longer than its duration."""
    queue = special("renewed")
    await queue.send("not renewed", "long work")
    [lost, message] = await queue.receive(2)
    while not (back := await queue.receiver.receive_messages(1, max_wait_time=0.5)):
        await queue.receiver.renew_message_lock(message)
    await queue.complete(message, *back)
    assert [each.message_id for each in back] == [lost.message_id]


async def test_too_many_deliveries_dead_letter(special):
    """After MaxDeliveryCount failed deliveries, abandoned or timed out, the message is dead-lettered."""
    queue = special("quick")
    await queue.send("poison")
    [first] = await queue.receive()
    await queue.receiver.abandon_message(first)
    [second] = await queue.receive()
    assert second.delivery_count == 1
    dead = await queue.receive_dead()
    await queue.dead_letters.complete_message(dead)
    assert dead.dead_letter_reason == "MaxDeliveryCountExceeded"
    assert dead.delivery_count == 2


async def test_dead_letters_are_never_lost_by_deliveries(special):
    """A dead-lettered message that is abandoned again and again stays in the dead-letter queue."""
    queue = special("quick")
    await queue.send("kept")
    [message] = await queue.receive()
    await queue.receiver.dead_letter_message(message, reason="Why")
    for _ in range(4):
        dead = await queue.receive_dead()
        await queue.dead_letters.abandon_message(dead)
    dead = await queue.receive_dead()
    await queue.dead_letters.complete_message(dead)
    assert dead.dead_letter_reason == "Why"


async def test_expired_message_is_dropped(special, broker):
    """A message past the queue's time to live is not delivered, and gone."""
    queue = special("mortal")
    await queue.send("short-lived", time_to_live=timedelta(hours=1))
    await until_it_holds(broker, "mortal")


async def test_expired_message_is_dead_lettered_where_asked(special):
    """With DeadLetteringOnMessageExpiration an expired message is dead-lettered as TTLExpiredException."""
    queue = special("mourned")
    await queue.send("mourned")
    dead = await queue.receive_dead()
    await queue.dead_letters.complete_message(dead)
    assert dead.dead_letter_reason == "TTLExpiredException"


async def test_message_has_a_time_to_live_of_its_own(plain, broker):
    """A message's own time to live counts where it is shorter than the queue's."""
    await plain.send("own", time_to_live=timedelta(milliseconds=200))
    await until_it_holds(broker, "plain")


async def test_locked_message_does_not_expire_in_the_hand(special, broker):
    """A message that is locked when its time comes can still be completed."""
    queue = special("mortal")
    await queue.send("in hand", "not in hand")
    [message] = await queue.receive()
    await until_it_holds(broker, "mortal", locked=1)
    await queue.complete(message)


async def test_duplicates_are_dropped_within_the_window(special):
    """Of messages with one id only the first is kept, single, in a batch or scheduled, until the window ends."""
    queue = special("unique")
    await queue.send("first", "second", message_id="same")
    await queue.sender.send_messages(
        [ServiceBusMessage("third", message_id="same"), ServiceBusMessage("other", message_id="o")]
    )
    messages = await queue.receive(2)
    await queue.complete(*messages)
    assert [str(message) for message in messages] == ["first", "other"]
    await queue.send("completed ones count too", message_id="same")
    while not (received := await queue.receiver.receive_messages(1, max_wait_time=0.5)):
        await queue.send("after the window", message_id="same")
    [message] = received
    await queue.complete(message)
    assert str(message) == "after the window"


async def test_health_counts_each_state(special, broker):
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
