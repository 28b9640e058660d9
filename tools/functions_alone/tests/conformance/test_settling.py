"""What is documented of locks and settlement: complete, abandon, defer, dead-letter, renewal, deliveries, expiry."""

import os
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from azure.servicebus import ServiceBusMessage
from azure.servicebus.exceptions import MessageAlreadySettled, MessageLockLostError, ServiceBusError

from functions_alone.tests.support.both_sdks import renewed_locks
from functions_alone.tests.support.queue_user import QueueUser
from functions_alone.tests.support.waiting import eventually

MOST_DELIVERIES = 20
"""A queue that allows more is not asked how many."""


async def test_completed_message_is_gone(queue):
    """A completed message is not delivered again, and cannot be settled twice."""
    await queue.send("once")
    [message] = await queue.receive()
    await queue.complete(message)
    assert await queue.receiver.peek_messages(1, sequence_number=1) == []
    with pytest.raises(MessageAlreadySettled):
        await queue.receiver.abandon_message(message)


async def test_abandoned_message_comes_back_counted(queue):
    """An abandoned message is available at once, before those after it, with one more delivery counted."""
    await queue.send("again", "after it")
    [first] = await queue.receive()
    await queue.receiver.abandon_message(first)
    second, after_it = await queue.receive(2)
    await queue.complete(second, after_it)
    assert (second.message_id, second.sequence_number) == (first.message_id, first.sequence_number)
    assert [message.delivery_count for message in (first, second, after_it)] == [0, 1, 0]


async def test_dead_lettered_message_waits_in_the_sub_queue(queue):
    """A dead-lettered message is in the dead-letter queue with reason and description, and can be completed."""
    await queue.send("bad", application_properties={"kept": "yes"}, correlation_id="c")
    [message] = await queue.receive()
    await queue.receiver.dead_letter_message(
        message, reason="Malformed", error_description="no order id"
    )
    dead = await queue.bury()
    assert (str(dead), dead.correlation_id, dead.message_id) == ("bad", "c", message.message_id)
    assert (dead.dead_letter_reason, dead.dead_letter_error_description) == (
        "Malformed",
        "no order id",
    )
    assert dead.application_properties == {
        b"kept": b"yes",
        b"DeadLetterReason": b"Malformed",
        b"DeadLetterErrorDescription": b"no order id",
    }
    assert await queue.dead_letters.peek_messages(1, sequence_number=1) == []


async def test_dead_lettering_needs_no_reason(queue):
    """Without a reason the message is dead-lettered all the same."""
    await queue.send("no reason")
    [message] = await queue.receive()
    await queue.receiver.dead_letter_message(message)
    dead = await queue.bury()
    assert (str(dead), dead.dead_letter_reason) == ("no reason", None)


async def test_deferred_message_can_be_dead_lettered(queue):
    """Dead-lettering a deferred message, which goes by management operation, keeps reason and description."""
    await queue.send("hopeless")
    [message] = await queue.receive()
    await queue.receiver.defer_message(message)
    [deferred] = await queue.receiver.receive_deferred_messages(message.sequence_number)
    await queue.receiver.dead_letter_message(
        deferred, reason="GivenUp", error_description="after deferral"
    )
    dead = await queue.bury()
    assert (dead.dead_letter_reason, dead.dead_letter_error_description) == (
        "GivenUp",
        "after deferral",
    )


async def test_dead_letter_stays_until_it_is_completed(hasty):
    """Neither many deliveries nor dead-lettering it again takes a message out of the dead-letter queue."""
    await hasty.send("kept")
    [message] = await hasty.receive()
    await hasty.receiver.dead_letter_message(message, reason="Why")
    for _ in range(11):
        await hasty.dead_letters.abandon_message(await hasty.receive_dead())
    with suppress(ServiceBusError):  # whether that is an error is not documented
        await hasty.dead_letters.dead_letter_message(await hasty.receive_dead(), reason="Twice")
    dead = await hasty.bury()
    assert (str(dead), dead.dead_letter_reason) == ("kept", "Why")


async def test_renewed_lock_ends_later(queue):
    """Renewing a lock moves its end, and tells when it is."""
    await queue.send("held")
    [message] = await queue.receive()
    before = message.locked_until_utc

    async def later():
        # Times have whole milliseconds, and a renewal may come within the one of the delivery.
        return await queue.receiver.renew_message_lock(message) > before

    await eventually(later)
    assert message.locked_until_utc > before
    await queue.complete(message)


async def test_message_is_dead_lettered_after_its_last_delivery(hasty):
    """An abandoned message is delivered with a growing count, and dead-lettered when it has come too often."""
    await hasty.send("poison", application_properties={"kept": "yes"})
    deliveries = 0
    while not await hasty.dead_letters.peek_messages(1, sequence_number=1):
        if deliveries == MOST_DELIVERIES:
            assert "SERVICEBUS_CONNECTION" in os.environ, "the local broker's queue allows two"
            pytest.skip(f"{hasty.name} allows more than {MOST_DELIVERIES} deliveries")
        [message] = await hasty.receive()
        assert message.delivery_count == deliveries
        await hasty.receiver.abandon_message(message)
        deliveries += 1
    dead = await hasty.bury()
    assert dead.dead_letter_reason == "MaxDeliveryCountExceeded"
    assert dead.delivery_count == deliveries
    assert dead.application_properties[b"kept"] == b"yes"


async def test_lost_lock_lets_the_message_be_delivered_again(hasty):
    """When a lock runs out, its holder can do nothing with the message, which is delivered again and counted."""
    await hasty.send("slow")
    [first] = await hasty.receive()
    [second] = await hasty.receive()
    with pytest.raises(MessageLockLostError):
        await hasty.receiver.complete_message(first)
    with pytest.raises(MessageLockLostError):
        await hasty.receiver.renew_message_lock(first)
    assert first.lock_token != second.lock_token
    assert first.sequence_number == second.sequence_number
    assert (first.delivery_count, second.delivery_count) == (0, 1)
    await hasty.complete(second)


async def test_renewed_lock_holds_beside_one_that_is_lost(lasting):
    """A renewed lock keeps its message for longer than its duration; that another was lost disturbs no request."""
    await lasting.send("not renewed", "long work")
    [lost, message] = await lasting.receive(2)

    async def lost_for_long():
        await lasting.receiver.renew_message_lock(message)
        await lasting.receiver.peek_messages(1, sequence_number=1)
        return datetime.now(UTC) > lost.locked_until_utc + timedelta(seconds=1)

    await eventually(lost_for_long)
    [back] = await lasting.receive()
    await lasting.complete(message, back)
    assert back.message_id == lost.message_id


async def keeps_locks(queue: QueueUser, count: int, seconds: float) -> None:
    """Have so many locks renewed by `AutoLockRenewer` for so long, and until one that is not renewed is lost."""
    await queue.sender.send_messages([ServiceBusMessage(str(number)) for number in range(count)])
    await queue.send("not renewed")
    *messages, lost = await queue.receive(count + 1)
    until = datetime.now(UTC) + timedelta(seconds=seconds)
    back: list[str] = []

    async def the_time_is_over():
        for message in await queue.receiver.receive_messages(1, max_wait_time=0.5):
            back.append(message.message_id)
            await queue.complete(message)
        return back and datetime.now(UTC) >= until

    async with renewed_locks(queue.receiver, messages):
        await eventually(the_time_is_over)
        assert [message.auto_renew_error for message in messages] == [None] * count
        await queue.complete(*messages)
    assert back == [lost.message_id]


async def test_auto_lock_renewer_keeps_many_messages(lasting):
    """`AutoLockRenewer` keeps twenty messages of one receiver while the lock of one that is not renewed is lost."""
    await keeps_locks(lasting, 20, 0)


@pytest.mark.soak
async def test_auto_lock_renewer_keeps_a_hundred_messages_for_a_minute(leisurely):
    """`AutoLockRenewer` keeps a hundred messages of one receiver for a minute, and one that it lets go comes back."""
    await keeps_locks(leisurely, 100, 60)
