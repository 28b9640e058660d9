"""The app under what only Azure's host does to it, in full sizes; the embedded host does the same (host.md)."""

import asyncio
import json
import os
import signal
from urllib.request import urlopen

import pytest
from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient
from azure.storage.queue.aio import QueueClient

from engine.domain.messages import SCHEDULER_REQUESTS
from functions_alone.tests.support.waiting import eventually
from tests.support.client import DONE, KILLED, PATIENT
from tests.support.inspection import poisoned, processed, until_processed
from tests.support.scale import NIGHTLY
from tests.support.stacks import FUNCTIONS, names, running, workers_of
from tests.support.submitting import submit_new

MALFORMED = [b"hello", b"\xff\xfe", b"", b'{"orderId": 5}', b"[" * 1000]
SETTINGS = PATIENT | {**KILLED, "STEP_TIMEOUT_SECONDS": "8", "FAILURE_THRESHOLD": "1000"}
"""Kills and a machine that is busy count as failures, and are not held to be lasting here."""
MOST_KILLS = 12
"""So many in two minutes: on a machine that is too slow the orders end after them."""


def waiting(stack, queue):
    """How many messages lie in a queue of the bus."""
    url = f"http://127.0.0.1:{stack.ports.broker_health_port}/health"
    with urlopen(url) as answer:
        return json.load(answer)["queues"][queue]["active"]


@pytest.mark.proves("SUB-4", "FLT-6")
@pytest.mark.soak
@pytest.mark.parametrize("count", [1000 if NIGHTLY else 300])
async def test_malformed_messages_cost_only_themselves(tmp_path, count):
    """One after every ten orders, and one after every ten wake-ups: all are kept, and no other message (host.md 2)."""
    app = names(*FUNCTIONS)
    async with running(tmp_path, functions=app, settings=SETTINGS) as (stack, client):
        orders = []
        connection = stack.app_environment()["ServiceBus"]
        async with (
            ServiceBusClient.from_connection_string(connection) as bus,
            bus.get_queue_sender(SCHEDULER_REQUESTS) as orders_ready,
            QueueClient.from_connection_string(
                stack.storage_connection_string, "order-submissions"
            ) as submissions,
        ):
            for number in range(count // 10):
                orders += await submit_new(stack, 10)
                body = MALFORMED[number % len(MALFORMED)] + b" %d" % number
                await submissions.send_message(body.decode("latin-1"))
                await orders_ready.send_messages(ServiceBusMessage(body))
        await until_processed(client, orders)

        async def all_are_kept():
            return len(await poisoned(stack)) == 2 * (count // 10)

        await eventually(all_are_kept)
        done = await client.all_actions()
        assert {order_id: done[order_id] for order_id in orders} == dict.fromkeys(orders, DONE)


@pytest.mark.proves("FLT-2", "FLT-7")
@pytest.mark.soak
@pytest.mark.parametrize("count", [500])
async def test_workers_that_are_killed_use_up_no_messages_deliveries(tmp_path, count):
    """Every ten seconds, while each call fails at once until another is there (host.md 6)."""
    async with running(tmp_path, functions=names(*FUNCTIONS), settings=SETTINGS) as (stack, client):
        [host] = stack.hosts
        orders = await submit_new(stack, count)

        async def kill_workers():
            for _ in range(MOST_KILLS):
                await asyncio.sleep(10)  # that often
                os.kill(workers_of(host)[-1], signal.SIGKILL)

        async with asyncio.TaskGroup() as tasks:
            killing = tasks.create_task(kill_workers())
            await until_processed(client, orders)
            killing.cancel()
        assert len(workers_of(host)) > 2
        assert await poisoned(stack) == []
        done = await client.all_actions()
        assert {order_id: done[order_id] for order_id in orders} == dict.fromkeys(orders, DONE)


@pytest.mark.soak
@pytest.mark.parametrize("count", [1000 if NIGHTLY else 300])
async def test_a_batch_of_any_size_is_settled_within_its_lock(tmp_path, count):
    """Azure handed over 154 messages where 64 were set, and renews no lock of a batch (host.md 5)."""
    largest = {"AzureFunctionsJobHost__extensions__serviceBus__maxMessageBatchSize": "1000"}
    settings, away = SETTINGS | largest, ("scheduler_order_ready", "scheduler_poll")
    app = names(*FUNCTIONS, but=away)
    async with running(tmp_path, functions=app, settings=settings) as (stack, client):
        orders = await submit_new(stack, count)

        async def all_wait():
            return await asyncio.to_thread(waiting, stack, SCHEDULER_REQUESTS) >= count

        await eventually(all_wait)
        await stack.start_host(names(*away))
        await until_processed(client, orders)
        assert await processed(client, orders) == count
        for host in stack.hosts:
            assert "not settled" not in host.output()
        assert await poisoned(stack) == []
