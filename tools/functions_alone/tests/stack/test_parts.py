"""The parts of a stack: made once, stopped and started."""

import asyncio
import re
import signal
import socket

import aiohttp
import psutil
import pytest
from azure.core.credentials import AzureKeyCredential
from azure.core.exceptions import HttpResponseError, ServiceRequestError
from azure.core.messaging import CloudEvent
from azure.data.tables.aio import TableServiceClient
from azure.eventgrid.aio import EventGridPublisherClient
from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient

from functions_alone.ports import HOST
from functions_alone.process import Command, Process
from functions_alone.stack import Stack
from functions_alone.tests.support.delivered_events import take_events
from functions_alone.tests.support.runner import alive
from functions_alone.tests.support.waiting import eventually, until

QUEUE = "plain"


async def test_azurite_ends_and_keeps_its_data_although_somebody_holds_a_connection(own_parts):
    """A connection on which nothing was asked keeps a plain Azurite alive for ever; the stack would have to kill it."""
    async with TableServiceClient.from_connection_string(
        own_parts.storage_connection_string
    ) as tables:
        await (await tables.create_table_if_not_exists("things")).create_entity(
            {"PartitionKey": "p", "RowKey": "row"}
        )
    with socket.create_connection((HOST, own_parts.ports.blob_port)):
        await own_parts.stop_azurite()
    assert own_parts.azurite.how_it_ended == "exit code 0"
    await own_parts.start_azurite()
    async with TableServiceClient.from_connection_string(
        own_parts.storage_connection_string
    ) as tables:
        assert await tables.get_table_client("things").get_entity("p", "row")


@pytest.mark.parametrize("service", ["blob", "queue", "table"])
async def test_azurite_keeps_an_idle_connection_for_longer_than_its_clients(own_parts, service):
    """Who closes an idle connection first must be the client: a request that meets the end of it is not tried again."""
    port = getattr(own_parts.ports, f"{service}_port")
    async with aiohttp.ClientSession() as http, http.get(f"http://{HOST}:{port}/") as response:
        kept = re.fullmatch(r"timeout=(\d+)", response.headers["Keep-Alive"])
        assert int(kept[1]) > http.connector._keepalive_timeout


@pytest.mark.soak
async def test_a_part_that_cannot_be_started_again_is_tried_until_it_can(tmp_path, config_of):
    """Each try that fails is told with its reason; here nobody can write the log."""
    lines = []
    stack = Stack(config_of(in_memory=True, restart=True), lines.append)
    logs, aside = stack.azurite.log.parent, tmp_path / "aside"
    try:
        await stack.start_azurite()
        logs.rename(aside)
        logs.touch()
        await stack.azurite.kill()

        async def failed_twice():
            return (
                len(
                    [
                        line
                        for line in lines
                        if line.startswith("azurite cannot be started: [Errno 17]")
                    ]
                )
                > 1
            )

        await eventually(failed_twice)
        logs.unlink()
        aside.rename(logs)

        async def runs():
            return stack.azurite.alive

        await eventually(runs)
    finally:
        await stack.stop()


@pytest.mark.soak
async def test_a_signal_that_comes_again_does_not_end_a_part_before_it_has_saved(own_parts):
    """Linux tells a child more than once that its runner was killed."""
    async with TableServiceClient.from_connection_string(
        own_parts.storage_connection_string
    ) as tables:
        await (await tables.create_table_if_not_exists("things")).create_entity(
            {"PartitionKey": "q", "RowKey": "row"}
        )
    async with ServiceBusClient.from_connection_string(
        own_parts.service_bus_connection_string
    ) as bus:
        await _send_to(bus, 2000)
    for part in (own_parts.azurite, own_parts.broker):
        await _signal_again_and_again(part)
    await own_parts.start_azurite()
    await own_parts.start_broker()
    async with TableServiceClient.from_connection_string(
        own_parts.storage_connection_string
    ) as tables:
        assert await tables.get_table_client("things").get_entity("q", "row")
    async with ServiceBusClient.from_connection_string(
        own_parts.service_bus_connection_string
    ) as bus:
        assert len(await bus.get_queue_receiver(QUEUE).peek_messages(1)) == 1


async def _send_to(bus, count):
    async with bus.get_queue_sender(QUEUE) as sender:
        for _ in range(count // 500):
            await sender.send_messages([ServiceBusMessage("kept") for _ in range(500)])


async def _signal_again_and_again(part):
    while part.alive:
        part.signal(signal.SIGTERM)
        await asyncio.sleep(0.001)  # more often than a part can save


async def test_an_outage_of_the_storage_or_of_event_grid_loses_no_event(own_parts):
    """The publisher is told to try again, or finds nobody; afterwards the event is delivered, once."""
    event = CloudEvent(source="test", type="Tested", data={})
    key = AzureKeyCredential(own_parts.config.topic.key)
    async with EventGridPublisherClient(own_parts.event_grid_url, key, retry_total=0) as client:
        await own_parts.stop_azurite()
        with pytest.raises(HttpResponseError) as raised:
            await client.send(event)
        assert raised.value.status_code == 503
        await own_parts.stop_event_grid()
        with pytest.raises(ServiceRequestError):
            await client.send(event)
        await own_parts.start_azurite()
        await own_parts.start_event_grid()
        await client.send(event)
    assert [delivered["id"] for delivered in await take_events(own_parts)] == [event.id]


async def test_what_a_process_has_started_is_frozen_and_killed_with_it(tmp_path):
    """A functions host and its workers are one machine to those who break it."""
    arguments = ["sh", "-c", "sleep 1000 & wait"]
    process = Process(
        Command(name="two", arguments=arguments, env={}, cwd=tmp_path, log=tmp_path / "log")
    )
    await process.start()
    children = await asyncio.to_thread(until, psutil.Process(process.pid).children)
    both = [psutil.Process(process.pid), *children]

    async def become(status):
        await asyncio.to_thread(
            until, lambda: {member.status() for member in both}, lambda seen: seen == {status}
        )

    process.signal(signal.SIGSTOP)
    await become(psutil.STATUS_STOPPED)
    process.signal(signal.SIGCONT)
    await become(psutil.STATUS_SLEEPING)
    await process.kill()
    await asyncio.to_thread(until, lambda: alive(both), lambda left: left == [])
