"""What is documented of the time to live."""

import asyncio
from datetime import UTC, datetime, timedelta

from functions_alone.tests.support.waiting import eventually

SHORT = timedelta(seconds=2)


async def passed(time: datetime) -> None:
    """Wait until it is a second after this time: two machines' clocks differ."""

    async def so():
        return datetime.now(UTC) > time + timedelta(seconds=1)

    await eventually(so)


async def test_shorter_time_to_live_is_shown(queue):
    """The queue's time to live stands where the message has none or a longer one; a shorter one of its own stays."""
    await queue.send("none")
    [none] = await queue.receive()
    most = none.time_to_live
    await queue.send("longer", time_to_live=most + timedelta(minutes=1))
    await queue.send("shorter", time_to_live=most / 2)
    longer, shorter = await queue.receive(2)
    await queue.complete(none, longer, shorter)
    assert (longer.time_to_live, shorter.time_to_live) == (most, most / 2)
    for message in (none, longer, shorter):
        assert message.expires_at_utc == message.enqueued_time_utc + message.time_to_live


async def test_expired_message_is_not_delivered(queue):
    """A message past its time to live is never received."""
    await queue.send("short-lived", time_to_live=SHORT)
    await queue.send("long-lived")
    await passed(datetime.now(UTC) + SHORT)
    [message] = await queue.receive()
    await queue.complete(message)
    assert str(message) == "long-lived"


async def test_locked_message_does_not_expire(queue):
    """A message that is locked when its time comes can still be completed."""
    waiting = asyncio.create_task(queue.receive())
    await queue.send("in hand", time_to_live=SHORT)
    [message] = await waiting
    await passed(message.expires_at_utc)
    await queue.complete(message)
    assert await queue.receiver.peek_messages(1, sequence_number=1) == []


async def test_expired_message_is_dead_lettered_where_requested(use):
    """A queue that dead-letters what expires gives the reason, and keeps the message there beyond its time."""
    queue = await use("SERVICEBUS_QUEUE_DEAD_LETTERING_EXPIRED")
    await queue.send("mourned", message_id="m", time_to_live=timedelta(seconds=1))
    await passed(datetime.now(UTC) + timedelta(seconds=1))
    assert await queue.receiver.receive_messages(1, max_wait_time=0.1) == []
    dead = await queue.bury()
    assert (str(dead), dead.message_id) == ("mourned", "m")
    assert dead.dead_letter_reason == "TTLExpiredException"
