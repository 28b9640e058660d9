"""What every Service Bus queue does: runs against the local broker or against SERVICEBUS_CONNECTION."""

import asyncio
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from azure.servicebus import ServiceBusMessage, ServiceBusReceiveMode
from azure.servicebus.amqp import AmqpAnnotatedMessage
from azure.servicebus.exceptions import (
    MessageNotFoundError,
    MessageSizeExceededError,
    MessagingEntityNotFoundError,
    ServiceBusError,
)
from waiting import PATIENCE_SECONDS, eventually


def soon(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


async def test_message_keeps_what_the_sender_set(plain):
    """Body, properties and application properties arrive with the values and types they were sent with."""
    message_id = uuid.uuid4().hex
    properties = {"text": "ä", "number": 7, "ratio": 0.5, "flag": True, "id": uuid.UUID(int=5)}
    await plain.send(
        "body ü",
        message_id=message_id,
        correlation_id="order-1",
        subject="Allocate",
        reply_to="replies",
        to="agent",
        content_type="application/json",
        application_properties=properties,
        time_to_live=timedelta(seconds=60),
    )
    [message] = await plain.receive()
    assert message.locked_until_utc > datetime.now(UTC)
    await plain.complete(message)
    assert str(message) == "body ü"
    assert (message.message_id, message.correlation_id) == (message_id, "order-1")
    assert (message.subject, message.reply_to, message.to) == ("Allocate", "replies", "agent")
    assert message.content_type == "application/json"
    assert message.time_to_live == timedelta(seconds=60)
    received = {key.decode(): value for key, value in message.application_properties.items()}
    assert received == {**properties, "text": "ä".encode()}
    assert message.delivery_count == 0
    assert abs(message.enqueued_time_utc - datetime.now(UTC)) < timedelta(seconds=10)


async def test_other_body_types_arrive_as_sent(plain):
    """A value body and a sequence body are relayed like a data body."""
    await plain.sender.send_messages(AmqpAnnotatedMessage(value_body={"a": [1, 2]}))
    await plain.sender.send_messages(AmqpAnnotatedMessage(sequence_body=[[1, 2], [3]]))
    value, sequence = await plain.receive(2)
    await plain.complete(value, sequence)
    assert value.body == {b"a": [1, 2]}
    assert [list(part) for part in sequence.body] == [[1, 2], [3]]


async def test_messages_come_in_the_order_of_sending(plain):
    """Sequence numbers grow, and messages are received in their order."""
    await plain.send(*[f"m{i}" for i in range(10)])
    messages = await plain.receive(10)
    await plain.complete(*messages)
    assert [str(message) for message in messages] == [f"m{i}" for i in range(10)]
    numbers = [message.sequence_number for message in messages]
    assert numbers == sorted(set(numbers))


async def test_batch_is_taken_apart(plain):
    """A batch arrives as its messages, each with its own properties."""
    batch = await plain.sender.create_message_batch()
    for i in range(200):
        batch.add_message(ServiceBusMessage(f"b{i}", correlation_id=f"c{i}"))
    await plain.sender.send_messages(batch)
    messages = await plain.receive(200)
    await plain.complete(*messages)
    assert [(str(each), each.correlation_id) for each in messages] == [(f"b{i}", f"c{i}") for i in range(200)]


async def test_big_message_passes_and_too_big_is_refused(plain):
    """200 kB arrive unchanged; a message of more than 256 kB is refused with an error, not left hanging."""
    body = bytes(range(250)) * 800
    await plain.send(body)
    [message] = await plain.receive()
    await plain.complete(message)
    assert b"".join(message.body) == body
    with pytest.raises(MessageSizeExceededError):
        await plain.send(b"x" * 270_000)


async def test_completed_message_is_gone(plain):
    """A completed message is not delivered again."""
    await plain.send("once")
    [message] = await plain.receive()
    await plain.complete(message)
    assert await plain.receiver.peek_messages(1, sequence_number=message.sequence_number) == []


async def test_abandoned_message_comes_back_counted(plain):
    """An abandoned message is available at once, with one more delivery counted."""
    await plain.send("again")
    [first] = await plain.receive()
    await plain.receiver.abandon_message(first)
    [second] = await plain.receive()
    await plain.complete(second)
    assert (second.message_id, second.sequence_number) == (first.message_id, first.sequence_number)
    assert (first.delivery_count, second.delivery_count) == (0, 1)


async def test_dead_lettered_message_waits_in_the_sub_queue(plain):
    """A dead-lettered message is in the dead-letter queue with reason and description, and can be completed."""
    await plain.send("bad", application_properties={"kept": "yes"}, correlation_id="c")
    [message] = await plain.receive()
    await plain.receiver.dead_letter_message(message, reason="Malformed", error_description="no order id")
    dead = await plain.receive_dead()
    assert (str(dead), dead.correlation_id) == ("bad", "c")
    assert (dead.dead_letter_reason, dead.dead_letter_error_description) == ("Malformed", "no order id")
    assert dead.application_properties[b"kept"] == b"yes"
    await plain.dead_letters.complete_message(dead)
    assert await plain.dead_letters.peek_messages(1, sequence_number=dead.sequence_number) == []


async def test_receive_and_delete_removes_on_delivery(client, plain):
    """In receive-and-delete mode a delivered message is gone without settlement."""
    await plain.send("r1", "r2")
    mode = ServiceBusReceiveMode.RECEIVE_AND_DELETE
    async with client.get_queue_receiver(plain.name, receive_mode=mode) as deleting:
        messages = []
        while len(messages) < 2:
            messages += await deleting.receive_messages(2 - len(messages), max_wait_time=PATIENCE_SECONDS)
    assert [str(message) for message in messages] == ["r1", "r2"]
    assert await plain.receiver.peek_messages(1, sequence_number=messages[0].sequence_number) == []


async def test_renewed_lock_ends_later(plain):
    """Renewing a lock moves its end."""
    await plain.send("held")
    [message] = await plain.receive()
    before = message.locked_until_utc

    async def later():
        # Times have whole milliseconds here, and a renewal may come within the one of the delivery.
        return await plain.receiver.renew_message_lock(message) > before

    await eventually(later)
    await plain.complete(message)


async def test_scheduled_message_waits_for_its_time(plain):
    """A message scheduled with its annotation is not delivered before its time."""
    due = soon(0.5)
    await plain.send("later", scheduled_enqueue_time_utc=due)
    [message] = await plain.receive(wait=10)
    received_at = datetime.now(UTC)
    await plain.complete(message)
    assert received_at >= due - timedelta(milliseconds=50)
    assert message.enqueued_time_utc >= due - timedelta(milliseconds=50)


async def test_scheduling_operation_gives_numbers_that_cancel(plain):
    """Messages scheduled by operation can be seen, cancelled once, and otherwise arrive at their time."""
    far = await plain.sender.schedule_messages([ServiceBusMessage("a"), ServiceBusMessage("b")], soon(600))
    [near] = await plain.sender.schedule_messages(ServiceBusMessage("c"), soon(0.5))
    [seen] = await plain.receiver.peek_messages(1, sequence_number=far[0])
    assert (str(seen), seen.state.name) == ("a", "SCHEDULED")
    await plain.sender.cancel_scheduled_messages(far)
    with pytest.raises(ServiceBusError):
        await plain.sender.cancel_scheduled_messages(far[0])
    [message] = await plain.receive(wait=10)
    await plain.complete(message)
    assert str(message) == "c"
    assert near >= far[1]


async def test_peek_shows_without_locking(plain):
    """Peeked messages stay available and uncounted."""
    await plain.send("p1", "p2", "p3")
    [first] = await plain.receiver.peek_messages(1, sequence_number=1)
    rest = await plain.receiver.peek_messages(5, sequence_number=first.sequence_number + 1)
    messages = await plain.receive(3)
    await plain.complete(*messages)
    assert [str(each) for each in (first, *rest)] == ["p1", "p2", "p3"]
    assert [message.delivery_count for message in messages] == [0, 0, 0]


async def test_deferred_message_is_had_by_its_number_only(plain):
    """A deferred message is skipped by receivers, received by sequence number, and settled like any other."""
    await plain.send("deferred", "next")
    first, second = await plain.receive(2)
    await plain.receiver.defer_message(first)
    await plain.receiver.abandon_message(second)
    [next_one] = await plain.receive()
    assert str(next_one) == "next"
    await plain.complete(next_one)
    [deferred] = await plain.receiver.receive_deferred_messages(first.sequence_number)
    assert (str(deferred), deferred.state.name) == ("deferred", "DEFERRED")
    with pytest.raises(MessageNotFoundError):
        await plain.receiver.receive_deferred_messages(first.sequence_number)
    await plain.receiver.abandon_message(deferred)
    [deferred] = await plain.receiver.receive_deferred_messages(first.sequence_number)
    await plain.receiver.complete_message(deferred)
    with pytest.raises(MessageNotFoundError):
        await plain.receiver.receive_deferred_messages(first.sequence_number)


async def test_deferred_message_can_be_dead_lettered(plain):
    """Dead-lettering a deferred message, which goes by management operation, keeps reason and description."""
    await plain.send("hopeless")
    [message] = await plain.receive()
    await plain.receiver.defer_message(message)
    [deferred] = await plain.receiver.receive_deferred_messages(message.sequence_number)
    await plain.receiver.dead_letter_message(deferred, reason="GivenUp", error_description="after deferral")
    dead = await plain.receive_dead()
    await plain.dead_letters.complete_message(dead)
    assert (dead.dead_letter_reason, dead.dead_letter_error_description) == ("GivenUp", "after deferral")


async def test_prefetched_messages_are_given_back_at_close(client, plain):
    """What a receiver prefetched and did not use is available to others when it closes, and not counted."""
    await plain.send(*[f"f{i}" for i in range(20)])
    async with client.get_queue_receiver(plain.name, prefetch_count=20) as prefetching:
        [first] = await prefetching.receive_messages(1, max_wait_time=PATIENCE_SECONDS)
        await prefetching.complete_message(first)
    messages = await plain.receive(19)
    await plain.complete(*messages)
    assert sorted(str(message) for message in (first, *messages)) == sorted(f"f{i}" for i in range(20))
    assert {message.delivery_count for message in messages} == {0}


async def test_message_outside_a_receive_call_is_not_counted(plain):
    """An idle receiver releases what reaches it between two receive calls: that is no delivery."""
    assert await plain.receiver.receive_messages(1, max_wait_time=0.1) == []
    await plain.send("idle")
    [message] = await plain.receive()
    await plain.complete(message)
    assert message.delivery_count == 0


async def test_receivers_of_one_queue_share_its_messages(client, plain):
    """Two receivers get every message exactly once between them."""
    await plain.send(*[f"s{i}" for i in range(20)])

    async def take_all(receiver):
        taken = []
        while messages := await receiver.receive_messages(5, max_wait_time=0.5):
            for message in messages:
                await receiver.complete_message(message)
                taken.append(str(message))
        return taken

    async with client.get_queue_receiver(plain.name) as other:
        first, second = await asyncio.gather(take_all(plain.receiver), take_all(other))
    assert sorted(first + second) == sorted(f"s{i}" for i in range(20))


@pytest.mark.parametrize("direction", ["send", "receive"])
async def test_unknown_queue_is_an_error(client, direction):
    """Opening a link to a queue that does not exist raises; it does not hang."""
    with pytest.raises(MessagingEntityNotFoundError):  # noqa: PT012 -- opening or the first use may raise
        if direction == "send":
            async with client.get_queue_sender("no-such-queue") as sender:
                await sender.send_messages(ServiceBusMessage("x"))
        else:
            async with client.get_queue_receiver("no-such-queue") as receiver:
                await receiver.receive_messages(1, max_wait_time=2)
