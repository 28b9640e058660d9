"""What tests look for after a storm: the state of many orders at once, and what lies where nothing should lie."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from azure.servicebus import ServiceBusSubQueue
from azure.servicebus.aio import ServiceBusClient
from azure.storage.queue.aio import QueueServiceClient
from client import Client

from local.servicebus_config import queues
from local.stack import Stack


async def states_of(client: Client, order_ids: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The state rows of the orders that are recorded."""
    by_bucket: dict[str, set[str]] = defaultdict(set)
    for order_id in order_ids:
        by_bucket[order_id[:3]].add(order_id)
    found: dict[str, dict[str, Any]] = {}
    for bucket, wanted in by_bucket.items():
        rows = await client.rows(min(wanted), max(wanted) + "~", bucket)
        found |= {
            row["OrderID"]: row for key, row in rows.items() if key.endswith("|state") and row["OrderID"] in wanted
        }
    return found


async def unfinished(client: Client, order_ids: Iterable[str]) -> set[str]:
    """Those of the orders that wait or are in progress. It reads the agenda, which is short: ask this while waiting."""
    wanted = set(order_ids)
    found: set[str] = set()
    for bucket in {order_id[:3] for order_id in wanted}:
        rows = await client.rows("!pending", "!running~", bucket)
        found |= {key.rpartition("|")[2] for key in rows} & wanted
    return found


async def all_processed(client: Client, order_ids: Sequence[str]) -> bool:
    """Whether all of the orders are processed; it fails when none is under way any more and some ended otherwise."""
    if await unfinished(client, order_ids):
        return False
    states = await states_of(client, order_ids)
    failed = [order_id for order_id, row in states.items() if row["ProcessState"] == "Error"]
    if failed:
        order = await client.order(failed[0])
        raise AssertionError(f"{len(failed)} are in Error, such as {failed[0]}: {order and order['history']}")
    return sum(row["ProcessState"] == "Processed" for row in states.values()) == len(order_ids)


async def processed(client: Client, order_ids: Iterable[str]) -> int:
    """How many of the orders are processed."""
    states = await states_of(client, order_ids)
    return sum(row["ProcessState"] == "Processed" for row in states.values())


async def poisoned(stack: Stack) -> list[str]:
    """Every message in a poison queue or a dead-letter queue, with the queue's name."""
    found = []
    async with QueueServiceClient.from_connection_string(stack.storage_connection_string) as service:
        async for queue in service.list_queues():
            if queue.name.endswith("-poison"):
                messages = await service.get_queue_client(queue.name).peek_messages(max_messages=32)
                found += [f"{queue.name}: {message.content}" for message in messages]
    async with ServiceBusClient.from_connection_string(stack.app_environment()["ServiceBus"]) as client:
        names = [queue["name"] for queue in queues()["serviceBusQueues"]]
        for letters in await asyncio.gather(*(_dead_letters(client, name) for name in names)):
            found += letters
    return found


async def _dead_letters(client: ServiceBusClient, queue: str) -> list[str]:
    async with client.get_queue_receiver(queue, sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
        return [f"{queue}: {message}" for message in await receiver.peek_messages(max_message_count=32)]
