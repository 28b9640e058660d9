"""What tests look for after a storm: the state of many orders at once, and what lies where nothing should lie."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest
from azure.data.tables.aio import TableClient, TableServiceClient
from azure.servicebus import ServiceBusSubQueue
from azure.servicebus.aio import ServiceBusClient
from azure.storage.queue.aio import QueueServiceClient

from development.stack import AppStack
from engine.concurrency import run_all
from engine.domain.messages import DEAD_LETTERS, bus_queues
from functions_alone.tests.support.waiting import eventually
from tests.support.client import Client


async def states_of(client: Client, order_ids: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The state rows of the orders that are recorded."""
    by_bucket: dict[str, list[str]] = defaultdict(list)
    for order_id in order_ids:
        by_bucket[order_id[:3]].append(order_id)
    wanted = {f"{order_id}|state" for ids in by_bucket.values() for order_id in ids}
    rows = await _rows(
        client, {bucket: (min(ids), max(ids) + "~") for bucket, ids in by_bucket.items()}
    )
    return {row["OrderID"]: row for row in rows if row["RowKey"] in wanted}


async def unfinished(client: Client, order_ids: Iterable[str]) -> set[str]:
    """Those of the orders that wait or are in progress. It reads the work index, which is short: ask this while waiting."""
    wanted = set(order_ids)
    rows = await _rows(client, {order_id[:3]: ("!pending", "!running~") for order_id in wanted})
    return {row["RowKey"].rpartition("|")[2] for row in rows} & wanted


async def _rows(client: Client, ranges: Mapping[str, tuple[str, str]]) -> list[dict[str, Any]]:
    """Read the range of each bucket over one connection: what is asked again and again should cost little."""
    found: list[dict[str, Any]] = []
    async with TableServiceClient.from_connection_string(client._storage) as service:
        table = service.get_table_client("orders")
        for bucket, (start, end) in ranges.items():
            query = f"PartitionKey eq '{bucket}' and RowKey ge '{start}' and RowKey lt '{end}'"
            found += [dict(row) async for row in table.query_entities(query)]
    return found


async def until_processed(client: Client, order_ids: Sequence[str]) -> None:
    """Wait until all of the orders are processed; fails at once when none is under way any more and some are not."""

    async def all_are() -> bool:
        waiting = await unfinished(client, order_ids)
        states = {} if waiting else await states_of(client, order_ids)
        some = ", ".join(sorted(waiting)[:3])
        all_are.__name__ = f"all orders are processed, but {len(waiting)} of {len(order_ids)} are under way: {some}"
        for order_id, row in states.items():
            if row["ProcessState"] == "Error":
                order = await client.order(order_id)
                pytest.fail(f"{order_id} is in Error: {order and order['history']}")
        return sum(row["ProcessState"] == "Processed" for row in states.values()) == len(order_ids)

    await eventually(all_are)


async def until_recorded(client: Client, order_ids: Sequence[str]) -> None:
    """Wait until all of the orders wait or are in progress: where they cannot end, that says that all are recorded."""

    async def all_are() -> bool:
        recorded = len(await unfinished(client, order_ids))
        all_are.__name__ = f"all orders are recorded, but {recorded} of {len(order_ids)} are"
        return recorded == len(order_ids)

    await eventually(all_are)


async def orders_of(client: Client, order_ids: Iterable[str]) -> list[dict[str, Any]]:
    """Return what operators see of the orders."""
    found = await run_all((client.order(order_id) for order_id in order_ids), at_most=16)
    assert None not in found
    return list(found)


async def processed(client: Client, order_ids: Iterable[str]) -> int:
    """How many of the orders are processed."""
    states = await states_of(client, order_ids)
    return sum(row["ProcessState"] == "Processed" for row in states.values())


async def poisoned(stack: AppStack) -> list[str]:
    """Every message that is kept as poison, or lies in a poison queue or a dead-letter queue, with the queue's name."""
    async with TableClient.from_connection_string(
        stack.storage_connection_string, "poison"
    ) as table:
        found = [
            f"{row['PartitionKey']}: {row['Reason']}"
            async for row in table.list_entities()
            if "Reason" in row
        ]
    async with QueueServiceClient.from_connection_string(
        stack.storage_connection_string
    ) as service:
        async for queue in service.list_queues():
            if queue.name.endswith("-poison"):
                messages = await service.get_queue_client(queue.name).peek_messages(max_messages=32)
                found += [f"{queue.name}: {message.content}" for message in messages]
    async with ServiceBusClient.from_connection_string(
        stack.app_environment()["ServiceBus"]
    ) as client:
        own = bus_queues([agent.name for agent in stack.agents])
        names = [*own, DEAD_LETTERS, "status-example"]
        for letters in await asyncio.gather(*(_dead_letters(client, name) for name in names)):
            found += letters
    return found


async def _dead_letters(client: ServiceBusClient, queue: str) -> list[str]:
    async with client.get_queue_receiver(
        queue, sub_queue=ServiceBusSubQueue.DEAD_LETTER
    ) as receiver:
        return [
            f"{queue}: {message}" for message in await receiver.peek_messages(max_message_count=32)
        ]
