"""What senders are told of their orders, on queues of their own (ALR-2, ALR-3)."""

import asyncio
import json
import os
import sys
from collections import defaultdict
from functools import partial
from pathlib import Path

import pytest
from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient
from client import QUICK, eventually
from failing import fault
from inspection import processed
from submitting import new_order_id, submit

EXAMPLE = Path(__file__).parents[2] / "examples/follow_an_order.py"
REPLY_TO = "status-example"
STORY = ["received", "processing-started", "step-completed", "order-completed"]
"""Of an order of one step."""


class Mailbox:
    """The private queue of a sender, read to its end again and again."""

    def __init__(self, stack):
        self._connection = stack.service_bus_connection_string
        self.received = defaultdict(dict)
        """By order and notice id."""

    async def read(self):
        async with (
            ServiceBusClient.from_connection_string(self._connection) as bus,
            bus.get_queue_receiver(REPLY_TO) as queue,
        ):
            while messages := await queue.receive_messages(100, max_wait_time=1):
                for message in messages:
                    notice = json.loads(str(message))
                    assert message.correlation_id == notice["orderId"]
                    assert message.message_id == notice["noticeId"]
                    self.received[notice["orderId"]][notice["noticeId"]] = notice
                    await queue.complete_message(message)

    async def tells(self, story, orders):
        """Whether each of the orders has been told of in full."""
        await self.read()
        for order_id in orders:
            assert self.story_of(order_id) == story, order_id
        return True

    def story_of(self, order_id):
        notices = sorted(self.received[order_id].values(), key=lambda notice: notice["sequence"])
        assert [notice["at"] for notice in notices] == sorted(notice["at"] for notice in notices)
        return [notice["event"] for notice in notices]


@pytest.mark.proves("ALR-2", "ALR-3", "FLT-3", "FLT-8")
async def test_every_notice_arrives_though_hosts_are_killed_and_the_broker_is_started_again(own_stack):
    """At least once, and in an order that the receiver can restore; nothing personal is in them."""
    stack, client = await own_stack(settings=QUICK, in_memory=False)
    orders = [new_order_id() for _ in range(40)]
    await submit(stack, *orders, workflow="payment-only", replyTo=REPLY_TO)

    async def some_are_processed():
        return await processed(client, orders) >= 5

    await eventually(some_are_processed)
    await stack.kill_host()
    await stack.stop_broker()
    await stack.start_broker()
    await stack.start_host()
    mailbox = Mailbox(stack)
    await eventually(partial(mailbox.tells, STORY, orders))
    assert "ada" not in json.dumps(mailbox.received).lower()


@pytest.mark.proves("ALR-2")
async def test_a_queue_that_is_not_there_is_given_up_with_an_alert_and_holds_nobody_else_up(client, stack):
    """The order itself is processed, and others hear of theirs at once."""
    lost, heard = new_order_id(), new_order_id()
    await submit(stack, lost, workflow="payment-only", replyTo="status-nobody")
    await submit(stack, heard, workflow="payment-only", replyTo=REPLY_TO)
    await eventually(partial(Mailbox(stack).tells, STORY, [heard]))
    await client.until(lost, "Processed")

    async def given_up():
        alerts = [each for each in await client.alerts(lost) if each["type"] == "OrderProcessing.NoticeGivenUp"]
        return alerts if not [key for key in await client.agenda_of(lost) if "!notice" in key] else None

    (alert,) = await eventually(given_up)
    assert "status-nobody" in alert["reason"]


@pytest.mark.proves("ALR-2")
async def test_an_order_that_is_undone_says_so(client, stack):
    """With the reason."""
    order_id = new_order_id()
    await fault(client, "shipment", "reject", order_id)
    await submit(stack, order_id, workflow="order", replyTo=REPLY_TO)
    mailbox = Mailbox(stack)

    async def told():
        await mailbox.read()
        story = mailbox.story_of(order_id)
        assert "order-undone" in story
        return story

    await eventually(told)
    (last,) = [each for each in mailbox.received[order_id].values() if each["event"] == "order-undone"]
    assert "address not deliverable" in last["reason"]
    assert mailbox.story_of(order_id)[-1] == "order-undone"


@pytest.mark.proves("ALR-2")
async def test_the_example_follows_an_order_to_its_end(stack):
    """It prints each step, and ends well; what is told of other orders stays on the queue, and nothing of its own."""
    await Mailbox(stack).read()  # what others were told, and nobody fetched
    other = {"orderId": "b00-other", "noticeId": "n1", "sequence": 1, "at": "2026-01-31T08:15:00Z", "event": "received"}
    async with (
        ServiceBusClient.from_connection_string(stack.service_bus_connection_string) as bus,
        bus.get_queue_sender(REPLY_TO) as queue,
    ):
        await queue.send_messages(ServiceBusMessage(json.dumps(other), correlation_id="b00-other", message_id="n1"))
    addresses = {"STATE_STORAGE": stack.storage_connection_string, "SERVICE_BUS": stack.service_bus_connection_string}
    process = await asyncio.create_subprocess_exec(
        sys.executable, EXAMPLE, env=os.environ | addresses, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    for word in ("received", "processing-started", "shipment", "capture", "order-completed"):
        assert word in output.decode()
    mailbox = Mailbox(stack)
    await mailbox.read()
    assert mailbox.received == {"b00-other": {"n1": other}}
