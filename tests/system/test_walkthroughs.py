"""README, `docs/operations/operate.md` and the example for senders, followed to the letter on the stack that `make run` starts."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest
from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient

from development.settings import WATCHED
from tests.support.private_queue import REPLY_TO, Mailbox
from tests.support.reading import follow, steps, with_operators
from tests.support.stacks import running

ROOT = Path(__file__).parent.parent.parent
EXAMPLE = ROOT / "samples/follow_an_order.py"
OPERATE, README = "docs/operations/operate.md", "README.md"
PAGES = {OPERATE: 20, README: 15}
"""How many steps each has at least: following it cannot succeed by finding nothing to do.

The page that counts alerts comes first."""


@pytest.fixture(scope="module")
async def embedded(tmp_path_factory):
    """A stack with the settings of `make run`."""
    folder = tmp_path_factory.mktemp("embedded")
    async with running(folder, settings=WATCHED) as (stack, _):
        yield stack


@pytest.mark.proves("OPR-2", "OPR-3", "OPR-4")
@pytest.mark.parametrize("page", [pytest.param(OPERATE, marks=pytest.mark.soak), README])
async def test_the_page_does_what_it_says(embedded, page, tmp_path):
    """Every command gives the output that the page shows."""
    assert len(list(steps(ROOT / page))) > PAGES[page]
    await follow(ROOT / page, embedded.ports.http_port, cwd=ROOT, env=with_operators(tmp_path))


@pytest.mark.proves("ALR-2")
async def test_the_example_follows_an_order_to_its_end(embedded):
    """It prints each step, and ends well; what is told of other orders stays on the queue, and nothing of its own."""
    other = {
        "orderId": "b00-other",
        "noticeId": "n1",
        "sequence": 1,
        "at": "2026-01-31T08:15:00Z",
        "event": "received",
    }
    bus = embedded.service_bus_connection_string
    async with (
        ServiceBusClient.from_connection_string(bus) as client,
        client.get_queue_sender(REPLY_TO) as queue,
    ):
        await queue.send_messages(
            ServiceBusMessage(json.dumps(other), correlation_id="b00-other", message_id="n1")
        )
    addresses = {"STATE_STORAGE": embedded.storage_connection_string, "SERVICE_BUS": bus}
    process = await asyncio.create_subprocess_exec(
        sys.executable, EXAMPLE, env=os.environ | addresses, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    for word in ("received", "processing-started", "shipment", "capture", "order-completed"):
        assert word in output.decode()
    mailbox = Mailbox(embedded)
    await mailbox.read()
    assert mailbox.received == {"b00-other": {"n1": other}}
