"""What is documented of receivers: peek-lock, receive-and-delete, the longest wait, prefetch, several of one queue.

A receiver asks for its first message when it opens. So no other may be open here.
"""

import asyncio

import pytest
from azure.servicebus import ServiceBusMessageState, ServiceBusReceiveMode

from functions_alone.tests.support.waiting import PATIENCE_SECONDS


async def test_peek_locked_message_is_hidden_from_other_receivers(client, unread):
    """A locked message is delivered to nobody else, and bears its lock and when that ends."""
    await unread.send("locked", "free")
    async with (
        client.get_queue_receiver(unread.name) as one,
        client.get_queue_receiver(unread.name) as other,
    ):
        [locked] = await one.receive_messages(1, max_wait_time=PATIENCE_SECONDS)
        [free] = await other.receive_messages(2, max_wait_time=PATIENCE_SECONDS)
        assert locked.lock_token != free.lock_token
        assert locked.locked_until_utc > locked.enqueued_time_utc
        await other.complete_message(free)
        await one.complete_message(locked)
    assert {str(locked), str(free)} == {"locked", "free"}
    assert locked.state == ServiceBusMessageState.ACTIVE


async def test_receive_and_delete_removes_on_delivery(client, unread):
    """In receive-and-delete mode a delivered message is gone without settlement, has no lock, and cannot be settled."""
    await unread.send("r1", "r2")
    mode = ServiceBusReceiveMode.RECEIVE_AND_DELETE
    async with client.get_queue_receiver(unread.name, receive_mode=mode) as deleting:
        messages = []
        while len(messages) < 2:
            messages += await deleting.receive_messages(
                2 - len(messages), max_wait_time=PATIENCE_SECONDS
            )
        with pytest.raises(ValueError, match="RECEIVE_AND_DELETE"):
            await deleting.complete_message(messages[0])
    assert [str(message) for message in messages] == ["r1", "r2"]
    assert await unread.receiver.peek_messages(1, sequence_number=1) == []


async def test_receiving_ends_after_the_longest_wait(client, unread):
    """With nothing to receive a call returns an empty list, and an iteration ends, when `max_wait_time` is over."""
    await unread.send("one", "two")
    texts = []
    async with client.get_queue_receiver(unread.name, max_wait_time=0.5) as receiver:
        async for message in receiver:
            texts.append(str(message))
            await receiver.complete_message(message)
        assert await receiver.receive_messages(1, max_wait_time=0.1) == []
    assert texts == ["one", "two"]


async def test_prefetched_messages_are_given_back_at_close(client, unread):
    """What a receiver prefetched and did not use is available to others when it closes, and not counted."""
    await unread.send(*[f"f{i}" for i in range(20)])
    async with client.get_queue_receiver(unread.name, prefetch_count=20) as prefetching:
        [first] = await prefetching.receive_messages(1, max_wait_time=PATIENCE_SECONDS)
        await prefetching.complete_message(first)
    messages = await unread.receive(19)
    await unread.complete(*messages)
    assert sorted(str(message) for message in (first, *messages)) == sorted(
        f"f{i}" for i in range(20)
    )
    assert {message.delivery_count for message in messages} == {0}


async def test_receivers_of_one_queue_share_its_messages(client, unread):
    """Two receivers get every message exactly once between them."""
    await unread.send(*[f"s{i}" for i in range(20)])

    async def take_all(receiver):
        taken = []
        while messages := await receiver.receive_messages(5, max_wait_time=0.5):
            for message in messages:
                await receiver.complete_message(message)
                taken.append(str(message))
        return taken

    async with (
        client.get_queue_receiver(unread.name) as one,
        client.get_queue_receiver(unread.name) as other,
    ):
        first, second = await asyncio.gather(take_all(one), take_all(other))
    assert sorted(first + second) == sorted(f"s{i}" for i in range(20))
