"""What clients meet that do several things at once, settle late or otherwise, or ask for what is not offered."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from azure.servicebus import ServiceBusMessage
from azure.servicebus._pyamqp.error import AMQPError
from azure.servicebus.amqp import AmqpAnnotatedMessage
from azure.servicebus.exceptions import MessageLockLostError, ServiceBusError

from functions_alone.tests.support.amqp_wire import (
    AMQP_HEADER,
    ATTACH,
    BEGIN,
    OPEN,
    SETTLED,
    TRANSFER,
    attach_receiver,
    connected,
    credit,
)
from functions_alone.tests.support.waiting import eventually


async def test_management_requests_at_the_same_time(plain):
    """Locks are renewed, and messages looked at, all at once on one link; then everything can be settled."""
    await plain.send(*map(str, range(20)))
    messages = await plain.receive(20)
    renewed, seen = await asyncio.gather(
        asyncio.gather(*map(plain.receiver.renew_message_lock, messages)),
        asyncio.gather(
            *(
                plain.receiver.peek_messages(1, sequence_number=message.sequence_number)
                for message in messages
            )
        ),
    )
    await plain.complete(*messages)
    assert all(until > datetime.now(UTC) for until in renewed)
    assert [str(message) for [message] in seen] == [str(message) for message in messages]


async def test_scheduling_at_the_same_time_leaves_the_sender_usable(plain):
    """Messages scheduled all at once on a sender's management link do not disturb what it sends afterwards."""
    far = datetime.now(UTC) + timedelta(hours=1)
    scheduled = await asyncio.gather(
        *(
            plain.sender.schedule_messages(ServiceBusMessage(str(number)), far)
            for number in range(10)
        )
    )
    await plain.send("afterwards")
    await plain.complete(*await plain.receive())
    await plain.sender.cancel_scheduled_messages([number for [number] in scheduled])


async def test_lost_lock_is_reported_only_to_whoever_settles(special, broker, monkeypatch):
    """When a lock ends the broker sends nothing: the SDK would take it for the answer to another request."""
    queue = special("quick")
    settled = dispositions(queue.receiver, monkeypatch)
    await queue.send("expires", "settled elsewhere")
    expires, elsewhere = await queue.receive(2)
    await queue.receiver._settle_message_via_mgmt_link("completed", [elsewhere.lock_token])
    await eventually(lambda: active_is(broker, "quick", 1))
    await queue.receiver.peek_messages(1)
    assert settled == []
    for lost in (expires, elsewhere):
        monkeypatch.setattr(type(lost), "_lock_expired", property(lambda _self: False))
        with pytest.raises(MessageLockLostError):
            await queue.receiver.complete_message(lost)
    await queue.complete(*await queue.receive())


async def active_is(broker, queue, count):
    """Raise, or tell that the queue has so many messages that nobody holds."""
    assert (await broker.counts(queue))["active"] == count
    return True


def dispositions(receiver, monkeypatch) -> list:
    """What the broker tells this receiver about its deliveries, from here on."""
    settled, link = [], receiver._handler._link
    original = link._incoming_disposition

    async def listening(frame):
        by_receiver, *rest = frame
        if not by_receiver:
            settled.append(rest)
        await original(frame)

    monkeypatch.setattr(link, "_incoming_disposition", listening)
    return settled


async def test_delivery_annotations(plain):
    """A delivery has the sender's delivery annotations and its lock token; one that is peeked, no token."""
    sent = AmqpAnnotatedMessage(
        data_body=b"x", delivery_annotations={"mine": 7, "x-opt-lock-token": "forged"}
    )
    await plain.sender.send_messages(sent)
    [message] = await plain.receive()
    [peeked] = await plain.receiver.peek_messages(1, sequence_number=message.sequence_number)
    annotations = message.raw_amqp_message.delivery_annotations
    assert annotations == {b"mine": 7, b"x-opt-lock-token": message.lock_token}
    assert peeked.raw_amqp_message.delivery_annotations == {b"mine": 7}
    await plain.complete(message)


async def test_dead_letter_cannot_be_dead_lettered(plain):
    """It is refused, on the link and by management, and the message can be settled otherwise."""
    await plain.send("dead")
    [message] = await plain.receive()
    await plain.receiver.dead_letter_message(message)
    dead = await plain.receive_dead()
    with pytest.raises(ServiceBusError, match="cannot be dead-lettered again"):
        await plain.dead_letters.dead_letter_message(dead)
    with pytest.raises(ServiceBusError, match="cannot be dead-lettered again"):
        await plain.dead_letters._settle_message_via_mgmt_link("suspended", [dead.lock_token])
    await plain.dead_letters.complete_message(dead)
    assert await plain.dead_letters.peek_messages(1) == []


async def settle(receiver, message, outcome, **details):
    """Settle with what an SDK for another language can say, and the one for Python cannot."""
    delivery = (message._delivery_id, message._delivery_tag)
    await receiver._handler.settle_messages_async(*delivery, outcome, await_outcome=True, **details)


async def test_properties_are_modified_by_a_settlement(plain):
    """What abandons, defers or dead-letters a message can change its application properties, each with its type."""
    await plain.send("m", application_properties={"kept": True, "tries": 0})
    [message] = await plain.receive()
    await settle(
        plain.receiver,
        message,
        "modified",
        delivery_failed=True,
        message_annotations={"tries": 1, "a": "x"},
    )
    [message] = await plain.receive()
    assert message.application_properties == {b"kept": True, b"tries": 1, b"a": b"x"}
    token = [message.lock_token]
    await plain.receiver._settle_message_via_mgmt_link(
        "abandoned", token, {"properties-to-modify": {"tries": 2}}
    )
    [message] = await plain.receive()
    changes = {"tries": 3, "deferred": 0.5}
    await settle(
        plain.receiver, message, "modified", undeliverable_here=True, message_annotations=changes
    )
    [message] = await plain.receiver.receive_deferred_messages(message.sequence_number)
    assert message.application_properties == {
        b"kept": True,
        b"tries": 3,
        b"a": b"x",
        b"deferred": 0.5,
    }
    await plain.complete(message)


async def test_properties_are_modified_by_dead_lettering(plain):
    """A dead letter has the reason and what else was to be changed."""
    await plain.send("m")
    [message] = await plain.receive()
    info = {"DeadLetterReason": "Why", "DeadLetterErrorDescription": "because", "step": 7}
    await settle(
        plain.receiver,
        message,
        "rejected",
        error=AMQPError(condition=b"com.microsoft:dead-letter", info=info),
    )
    dead = await plain.receive_dead()
    await plain.dead_letters.complete_message(dead)
    assert (dead.dead_letter_reason, dead.dead_letter_error_description) == ("Why", "because")
    assert dead.application_properties[b"step"] == 7


async def test_attach_is_answered_before_anything_is_delivered(broker, plain):
    """A client that asks for messages in one breath with its attach, while some wait, first gets the attach."""
    await plain.send("waits")
    async with connected(broker.port) as wire:
        await wire.start(AMQP_HEADER)
        wire.send(OPEN, BEGIN, attach_receiver("plain", SETTLED), credit(1))
        assert ATTACH in [frame.code for frame in await wire.receive_until(TRANSFER)]
