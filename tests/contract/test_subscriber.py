"""Another subscriber of the topic, written from the documents alone, gets every event once."""

import asyncio
import base64
import json
import os
import sys
from dataclasses import replace

import pytest
from azure.storage.queue.aio import QueueClient

from development.servicebus_config import ROOT
from engine.alerts.events import STALLED, submission_rejected
from engine.words.alerts import event_in_words
from tests.support.builders import NOW, refusal

SCRIPT = ROOT / "samples/subscriber/read_alerts.py"
REJECTED = event_in_words(submission_rejected(None, refusal("no JSON"), "submission:1", NOW))
WAITING = replace(
    REJECTED,
    event_id="stalled:orders-waiting/payment:2026-01-31T08:15:00+00:00:1",
    type=STALLED,
    subject="orders-waiting/payment",
    data={
        "condition": "orders-waiting/payment",
        "status": "new",
        "count": 600,
        "first": "2026-01-31T08:15:00+00:00",
        "last": "2026-01-31T08:16:00+00:00",
        "reason": "orders wait for payment",
        "orders": ["b00-1", "b00-2"],
    },
)
"""The data of a condition, as docs/reference/events.md lists them."""


@pytest.fixture
async def queue(services):
    """The queue of the subscription, empty before and after."""
    name = services.config.topic.queue
    async with QueueClient.from_connection_string(
        services.storage_connection_string, name
    ) as queue:
        await queue.clear_messages()
        yield queue
        await queue.clear_messages()


@pytest.fixture
def read(services, tmp_path):
    """Run the script until the queue is empty; return what it has printed, and its faults."""

    async def run():
        account = {"QUEUE_ACCOUNT": services.storage_connection_string}
        arguments = ("--queue", services.config.topic.queue, "--seen", tmp_path / "seen", "--once")
        process = await asyncio.create_subprocess_exec(
            sys.executable, SCRIPT, *arguments, env=os.environ | account,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, err = await asyncio.wait_for(process.communicate(), 60)
        assert process.returncode == 0, err
        return [line.split("\t") for line in out.decode().splitlines()], err.decode()

    return run


async def test_another_subscriber_handles_every_event_once(services, on_azurite, queue, read):
    """By its stable id: one that Event Grid delivers again, also to a later run, is not handled again."""
    publish = on_azurite.engine.adapters.events.publish
    await publish([REJECTED, WAITING, REJECTED])
    (printed, faults), expected = (
        await read(),
        {alert.event_id: alert for alert in (REJECTED, WAITING)},
    )
    assert faults == ""
    assert sorted(line[0] for line in printed) == sorted(expected)
    for event_id, kind, subject, what in printed:
        event = expected[event_id]
        assert (kind, subject) == (event.type, event.subject)
        assert event.data["reason"] in what
    assert await queue.peek_messages(32) == []
    newer = replace(
        WAITING, event_id=f"{WAITING.event_id[:-1]}2", data={**WAITING.data, "status": "resolved"}
    )
    await publish([WAITING, newer])
    printed, _ = await read()
    assert [line[0] for line in printed] == [newer.event_id]


async def test_an_unreadable_message_holds_up_no_event(queue, read):
    """It is named on the standard error and taken away."""
    event = json.dumps({"id": "1", "type": "T", "data": {"reason": "r"}})
    for body in (b"[]", b"no JSON", event.encode()):
        await queue.send_message(base64.b64encode(body).decode())
    await queue.send_message(event)
    printed, faults = await read()
    assert printed == [["1", "T", "", "r"]]
    assert faults.count("is unreadable") == 3
    assert await queue.peek_messages(32) == []
