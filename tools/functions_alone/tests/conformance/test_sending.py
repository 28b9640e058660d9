"""What is documented of sending: single messages, batches, schedules, and what of a message arrives."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from azure.servicebus import ServiceBusMessage, ServiceBusMessageState
from azure.servicebus.amqp import AmqpAnnotatedMessage, AmqpMessageHeader, AmqpMessageProperties
from azure.servicebus.exceptions import (
    MessageSizeExceededError,
    MessagingEntityNotFoundError,
    ServiceBusError,
)


def soon(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


async def test_message_keeps_what_the_sender_set(queue):
    """Body, properties and application properties arrive with the values and types they were sent with."""
    message_id = uuid.uuid4().hex
    properties = {"text": "ä", "number": 7, "ratio": 0.5, "flag": True, "id": uuid.UUID(int=5)}
    await queue.send(
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
    [message] = await queue.receive()
    await queue.complete(message)
    assert str(message) == "body ü"
    assert (message.message_id, message.correlation_id) == (message_id, "order-1")
    assert (message.subject, message.reply_to, message.to) == ("Allocate", "replies", "agent")
    assert message.content_type == "application/json"
    assert message.time_to_live == timedelta(seconds=60)
    received = {key.decode(): value for key, value in message.application_properties.items()}
    assert received == {**properties, "text": "ä".encode()}
    assert message.delivery_count == 0
    assert abs(message.enqueued_time_utc - datetime.now(UTC)) < timedelta(minutes=5)


async def test_message_without_an_id_is_given_one(queue):
    """The service gives each message an id of its own if the sender gave none, as the SDK for Python otherwise does."""
    subject = AmqpMessageProperties(subject="kept")
    await queue.sender.send_messages(AmqpAnnotatedMessage(data_body="no id", properties=subject))
    await queue.sender.send_messages(AmqpAnnotatedMessage(data_body="no properties"))
    await queue.send("id of the SDK's")
    messages = await queue.receive(3)
    await queue.complete(*messages)
    assert len({message.message_id for message in messages if message.message_id}) == 3
    assert [message.subject for message in messages] == ["kept", None, None]


async def test_reply_goes_where_the_request_says(queue):
    """A reply is sent to the queue of `reply_to` and bears the request's id as its correlation id."""
    await queue.send("request", message_id="request-1", reply_to=queue.name)
    [request] = await queue.receive()
    await queue.complete(request)
    assert request.reply_to == queue.name
    await queue.send("reply", correlation_id=request.message_id)
    [reply] = await queue.receive()
    await queue.complete(reply)
    assert (str(reply), reply.correlation_id) == ("reply", "request-1")


async def test_other_body_types_arrive_as_sent(queue):
    """A value body and a sequence body are relayed like a data body."""
    await queue.sender.send_messages(AmqpAnnotatedMessage(value_body={"a": [1, 2]}))
    await queue.sender.send_messages(AmqpAnnotatedMessage(sequence_body=[[1, 2], [3]]))
    value, sequence = await queue.receive(2)
    await queue.complete(value, sequence)
    assert value.body == {b"a": [1, 2]}
    assert [list(part) for part in sequence.body] == [[1, 2], [3]]


async def test_every_section_of_an_amqp_message_arrives(queue):
    """Header, annotations, delivery annotations, properties and application properties are those of the sender."""
    sent = AmqpAnnotatedMessage(
        data_body="all of it",
        header=AmqpMessageHeader(priority=5, durable=True),
        properties=AmqpMessageProperties(
            message_id="amqp", group_sequence=3, content_encoding="utf-8"
        ),
        annotations={"ours": 1},
        delivery_annotations={"on the way": 2},
        application_properties={"kept": 3},
    )
    await queue.sender.send_messages(sent)
    [message] = await queue.receive()
    await queue.complete(message)
    raw = message.raw_amqp_message
    assert (raw.header.priority, raw.header.durable) == (5, True)
    assert (raw.properties.message_id, raw.properties.group_sequence) == (b"amqp", 3)
    assert raw.properties.content_encoding == b"utf-8"
    assert raw.annotations[b"ours"] == 1
    assert raw.delivery_annotations[b"on the way"] == 2
    assert raw.application_properties[b"kept"] == 3


async def test_messages_come_in_the_order_of_sending(queue):
    """Sequence numbers grow, and messages are received in their order."""
    await queue.sender.send_messages([ServiceBusMessage(f"m{i}") for i in range(5)])
    await queue.send(*[f"m{i}" for i in range(5, 10)])
    messages = await queue.receive(10)
    await queue.complete(*messages)
    assert [str(message) for message in messages] == [f"m{i}" for i in range(10)]
    numbers = [message.sequence_number for message in messages]
    assert numbers == sorted(set(numbers))


async def test_batch_is_taken_apart(queue):
    """A batch arrives as its messages, each with its own properties."""
    batch = await queue.sender.create_message_batch()
    for i in range(100):
        batch.add_message(ServiceBusMessage(f"b{i}", correlation_id=f"c{i}"))
    await queue.sender.send_messages(batch)
    messages = await queue.receive(100)
    await queue.complete(*messages)
    assert [(str(message), message.correlation_id) for message in messages] == [
        (f"b{i}", f"c{i}") for i in range(100)
    ]


async def test_batch_takes_as_many_messages_as_it_may_hold(queue):
    """What does not fit into a batch any more is refused there, and the full batch is sent."""
    batch = await queue.sender.create_message_batch()
    count = 3
    part = b"x" * (batch.max_size_in_bytes // (count + 1))
    for _ in range(count):
        batch.add_message(ServiceBusMessage(part))
    with pytest.raises(MessageSizeExceededError):
        batch.add_message(ServiceBusMessage(b"x" * (batch.max_size_in_bytes - batch.size_in_bytes)))
    await queue.sender.send_messages(batch)
    messages = await queue.receive(count)
    await queue.complete(*messages)
    assert [b"".join(message.body) for message in messages] == [part] * count


async def test_big_message_passes_and_too_big_is_refused(queue):
    """A message near the limit arrives unchanged; one above it is refused with an error, not left hanging."""
    limit = (await queue.sender.create_message_batch()).max_size_in_bytes
    body = bytes(range(250)) * (limit // 300)
    await queue.send(body)
    [message] = await queue.receive()
    await queue.complete(message)
    assert b"".join(message.body) == body
    with pytest.raises(MessageSizeExceededError):
        await queue.send(b"x" * (limit + 1000))


async def test_scheduled_message_waits_for_its_time(queue):
    """A message that names its time is not delivered before it."""
    due = soon(0.5)
    await queue.send("later", scheduled_enqueue_time_utc=due)
    [message] = await queue.receive()
    received_at = datetime.now(UTC)
    await queue.complete(message)
    assert received_at >= due - timedelta(milliseconds=50)
    assert message.enqueued_time_utc >= due - timedelta(milliseconds=50)
    assert abs(message.scheduled_enqueue_time_utc - due) < timedelta(milliseconds=2)


async def test_scheduling_gives_numbers_that_cancel(queue):
    """Scheduled messages can be seen by their numbers, cancelled once, and otherwise arrive at their time."""
    far = await queue.sender.schedule_messages(
        [ServiceBusMessage("a"), ServiceBusMessage("b")], soon(600)
    )
    [near] = await queue.sender.schedule_messages(ServiceBusMessage("c"), soon(0.5))
    seen = await queue.receiver.peek_messages(3, sequence_number=far[0])
    assert [(str(received), received.sequence_number) for received in seen] == [
        ("a", far[0]),
        ("b", far[1]),
        ("c", near),
    ]
    assert {received.state for received in seen} == {ServiceBusMessageState.SCHEDULED}
    await queue.sender.cancel_scheduled_messages(far)
    with pytest.raises(ServiceBusError):
        await queue.sender.cancel_scheduled_messages(far[0])
    [message] = await queue.receive()
    await queue.complete(message)
    assert str(message) == "c"
    assert await queue.receiver.peek_messages(1, sequence_number=1) == []


async def test_sending_to_an_unknown_queue_is_an_error(client):
    """A queue that does not exist raises; it does not hang."""
    with pytest.raises(MessagingEntityNotFoundError):
        async with client.get_queue_sender("no-such-queue") as sender:
            await sender.send_messages(ServiceBusMessage("x"))


@pytest.mark.usefixtures("local")
async def test_local_broker_says_that_it_has_no_topics(client):
    """Sender and receiver of a topic are told that the local broker offers queues only."""
    with pytest.raises(MessagingEntityNotFoundError, match="not topics"):
        async with client.get_topic_sender("orders"):
            pass
    with pytest.raises(MessagingEntityNotFoundError, match="not topics"):
        async with client.get_subscription_receiver("orders", "all"):
            pass


async def test_duplicates_are_dropped_within_the_window(use):
    """Of messages with one id only the first is kept, sent singly or in a batch, also once it is completed."""
    queue = await use("SERVICEBUS_QUEUE_WITHOUT_DUPLICATES")
    same, other = uuid.uuid4().hex, uuid.uuid4().hex
    await queue.send("first", "second", message_id=same)
    await queue.sender.send_messages(
        [ServiceBusMessage("third", message_id=same), ServiceBusMessage("other", message_id=other)]
    )
    messages = await queue.receive(2)
    await queue.complete(*messages)
    assert [str(message) for message in messages] == ["first", "other"]
    await queue.send("completed ones count too", message_id=same)
    assert await queue.receiver.peek_messages(1, sequence_number=1) == []
