"""What is documented of receiving: peek, deferred messages, what is refused."""

import asyncio

import pytest
from azure.servicebus import NEXT_AVAILABLE_SESSION, ServiceBusMessage, ServiceBusMessageState
from azure.servicebus.exceptions import (
    MessageNotFoundError,
    MessagingEntityNotFoundError,
    ServiceBusError,
)


async def test_receiving_waits_for_the_first_message(queue):
    """A call that waits returns with what comes meanwhile."""
    waiting = asyncio.create_task(queue.receive())
    await queue.send("at last")
    [message] = await waiting
    await queue.complete(message)
    assert str(message) == "at last"


async def test_message_outside_a_receive_call_is_not_counted(queue):
    """An idle receiver releases what reaches it between two receive calls: that is no delivery."""
    assert await queue.receiver.receive_messages(1, max_wait_time=0.1) == []
    await queue.send("idle")
    [message] = await queue.receive()
    await queue.complete(message)
    assert message.delivery_count == 0


async def test_peek_shows_without_locking(queue):
    """Peeked messages stay available and uncounted, and a locked one is shown too."""
    await queue.send("p1", "p2", "p3")
    [locked] = await queue.receive()
    seen = await queue.receiver.peek_messages(5, sequence_number=1)
    rest = await queue.receive(2)
    await queue.complete(locked, *rest)
    assert [str(message) for message in seen] == ["p1", "p2", "p3"]
    assert [message.delivery_count for message in (locked, *rest)] == [0, 0, 0]


async def test_peek_goes_on_where_it_stopped(client, queue):
    """Without a sequence number a receiver peeks on; with one it begins there."""
    await queue.send("p1", "p2", "p3", "p4")
    async with client.get_queue_receiver(queue.name) as peeking:
        seen = [
            await peeking.peek_messages(1),
            await peeking.peek_messages(2),
            await peeking.peek_messages(5),
        ]
        [[first], _, [fourth]] = seen
        from_second = await peeking.peek_messages(2, sequence_number=first.sequence_number + 1)
        assert await peeking.peek_messages(1, sequence_number=fourth.sequence_number + 1) == []
    assert [[str(message) for message in some] for some in seen] == [["p1"], ["p2", "p3"], ["p4"]]
    assert [str(message) for message in from_second] == ["p2", "p3"]


async def test_peek_shows_the_dead_letter_queue(queue):
    """The dead-letter queue is peeked like any other."""
    await queue.send("dead")
    [message] = await queue.receive()
    await queue.receiver.dead_letter_message(message, reason="Peeked")
    [seen] = await queue.dead_letters.peek_messages(5, sequence_number=1)
    assert (str(seen), seen.dead_letter_reason) == ("dead", "Peeked")


async def test_deferred_message_is_had_by_its_number_only(queue):
    """A deferred message is skipped by receivers, received by sequence number, and settled like any other."""
    await queue.send("deferred", "next")
    first, second = await queue.receive(2)
    await queue.receiver.defer_message(first)
    await queue.receiver.abandon_message(second)
    [next_one] = await queue.receive()
    await queue.complete(next_one)
    assert str(next_one) == "next"
    [deferred] = await queue.receiver.receive_deferred_messages(first.sequence_number)
    assert (str(deferred), deferred.state) == ("deferred", ServiceBusMessageState.DEFERRED)
    await queue.receiver.abandon_message(deferred)
    [deferred] = await queue.receiver.receive_deferred_messages(first.sequence_number)
    await queue.receiver.complete_message(deferred)
    with pytest.raises(MessageNotFoundError):
        await queue.receiver.receive_deferred_messages(first.sequence_number)


async def test_several_deferred_messages_are_had_at_once(queue):
    """Deferred messages are received together; one that is not there lets none be received."""
    await queue.send("d1", "d2")
    numbers = []
    for message in await queue.receive(2):
        await queue.receiver.defer_message(message)
        numbers.append(message.sequence_number)
    with pytest.raises(MessageNotFoundError):
        await queue.receiver.receive_deferred_messages([*numbers, numbers[-1] + 1000])
    deferred = await queue.receiver.receive_deferred_messages(numbers)
    assert sorted(str(message) for message in deferred) == ["d1", "d2"]
    for message in deferred:
        await queue.receiver.complete_message(message)


async def test_deferred_message_of_the_dead_letter_queue(queue):
    """A dead-lettered message can be deferred too, and had by its number in the dead-letter queue."""
    await queue.send("both")
    [message] = await queue.receive()
    await queue.receiver.dead_letter_message(message, reason="Why")
    dead = await queue.receive_dead()
    await queue.dead_letters.defer_message(dead)
    [deferred] = await queue.dead_letters.receive_deferred_messages(dead.sequence_number)
    await queue.dead_letters.complete_message(deferred)
    assert (str(deferred), deferred.dead_letter_reason) == ("both", "Why")


async def test_receiving_from_an_unknown_queue_is_an_error(client):
    """A queue that does not exist raises; it does not hang."""
    with pytest.raises(MessagingEntityNotFoundError):
        async with client.get_queue_receiver("no-such-queue") as receiver:
            await receiver.receive_messages(1, max_wait_time=2)


@pytest.mark.parametrize("session", ["s1", NEXT_AVAILABLE_SESSION], ids=["by id", "next"])
async def test_session_receiver_is_refused_where_there_are_no_sessions(client, queue, session):
    """A session receiver on a queue without sessions is refused, and takes no message."""
    await queue.sender.send_messages(ServiceBusMessage("no session"))
    with pytest.raises(ServiceBusError, match="session"):
        async with client.get_queue_receiver(queue.name, session_id=session):
            pass
    await queue.complete(*await queue.receive())
