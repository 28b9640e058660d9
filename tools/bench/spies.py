"""Counts what the clients of a host and its workers do inside their pipelines, with every attempt."""
# ruff: noqa: TID251 - it looks into the SDKs, so it has to name them

import os
import re
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from azure.core.pipeline.transport import AioHttpTransport
from azure.servicebus import ServiceBusReceivedMessage
from azure.servicebus.aio import ServiceBusReceiver, ServiceBusSender

from bench.counters import Counters, Marks
from engine.azure.remote import HttpRemoteService
from engine.azure.tables.transactions import TableTransactions
from engine.decisions.transitions import Transition
from engine.domain.orders import OrderAggregate, Processed
from engine.storage.orders import OrderStore
from engine.storage.tables import Stored
from scheduler.service import SchedulerService

PARTS = re.compile(rb"\r\n(?:POST|PUT|PATCH|MERGE|DELETE) \S+ HTTP/1\.1\r\n")
"""One match for each entity of an entity group transaction."""
SIMULATOR = re.compile(r"/simulator(?:\(|$)")
SIMULATOR_IN_BATCH = re.compile(rb"/simulator[ (]")
LOOK = "RowKey lt '!running|~'"
"""The query by which only a refresh reads a bucket: pending and running orders."""

_QUEUE_REQUESTS = {
    "POST": "storage_queue_operations",
    "GET": "host_storage_queue_receives",
    "DELETE": "host_storage_queue_deletes",
    "PUT": "host_storage_queue_renewals",
}
"""The app only puts messages. The host receives, renews and deletes them for a trigger."""


def install(folder: Path) -> None:
    """Watch all clients of this process and its children, and write the counts to files in this folder."""
    counters, marks = Counters(folder), Marks(folder)
    services = _services()

    def http(request: Any, **_: Any) -> None:
        service = next(
            (name for prefix, name in services.items() if request.url.startswith(prefix)), None
        )
        match service:
            case "table":
                _count_table(counters, request)
            case "queue":
                counters.add(_QUEUE_REQUESTS[request.method])
            case "blob":
                counters.add("blob_operations")
            case "event_grid":
                counters.add("event_grid_operations")

    def sent(message: Any, **_: Any) -> None:
        counters.add("service_bus_sends")
        counters.add("service_bus_messages", len(message))
        counters.add("service_bus_bytes", message.size_in_bytes)

    def count(name: str) -> Callable[..., None]:
        return lambda *_, **__: counters.add(name)

    _before(AioHttpTransport, "send", http)
    _before(ServiceBusSender, "send_messages", sent)
    _before(ServiceBusReceivedMessage, "__init__", count("host_service_bus_receives"))
    _before(ServiceBusReceiver, "complete_message", count("host_service_bus_settlements"))
    _before(ServiceBusReceiver, "abandon_message", count("host_service_bus_settlements"))
    _before(ServiceBusReceiver, "renew_message_lock", count("host_service_bus_renewals"))
    _before(HttpRemoteService, "call", count("remote_calls"))
    _before(SchedulerService, "_see", partial(_count_look, counters))
    _count_entities_read(counters)
    _mark_processed(marks)


def _services() -> dict[str, str]:
    storage = os.environ["StateStorage"]  # noqa: SIM112 - Azure's spelling
    parts = (part.partition("=") for part in storage.split(";"))
    endpoints = {name: value for name, _, value in parts}
    return {
        endpoints["TableEndpoint"]: "table",
        endpoints["QueueEndpoint"]: "queue",
        endpoints["BlobEndpoint"]: "blob",
        os.environ["EVENT_GRID_ENDPOINT"]: "event_grid",
    }


def _count_table(counters: Counters, request: Any) -> None:
    path, _, query = request.url.partition("?")
    body = _body(request) if path.endswith("/$batch") else b""
    if SIMULATOR.search(path) or SIMULATOR_IN_BATCH.search(body):
        counters.add("simulator_table_requests")
    elif request.method != "GET":
        counters.add("table_writes")
        counters.add("table_entities", len(PARTS.findall(body)) if body else 1)
    elif "filter" in query and (not path.endswith("/orders()") or "%20ge%20%27%21" in query):
        counters.add("table_agenda_queries")
        if LOOK in unquote(query):
            counters.add("table_look_queries")
    else:
        counters.add("table_loads" if "filter" in query else "table_point_reads")


def _count_look(counters: Counters) -> None:
    counters.add("looks")
    counters.add("table_look_queries")  # of the agents' health


def _body(request: Any) -> bytes:
    body = getattr(request, "data", None) or getattr(request, "content", None) or b""
    return body if isinstance(body, bytes) else str(body).encode()


def _before(owner: type, method: str, note: Callable[..., None]) -> None:
    """Pass the arguments of every call of the method, sync or async, to `note` before the call."""
    original = getattr(owner, method)

    @wraps(original)
    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        note(*args, **kwargs)
        return original(self, *args, **kwargs)

    setattr(owner, method, watched)


def _count_entities_read(counters: Counters) -> None:
    """Count the rows that queries of the orders return. A read of one row counts only as a request."""
    original = TableTransactions.rows

    @wraps(original)
    async def rows(self: TableTransactions, *args: Any, **kwargs: Any) -> list[Stored]:
        found = await original(self, *args, **kwargs)
        if self._table().table_name == "orders":
            counters.add("table_entities_read", len(found))
        return found

    setattr(TableTransactions, "rows", rows)  # noqa: B010 - to a type checker this is no method to assign to


def _mark_processed(marks: Marks) -> None:
    original = OrderStore.commit

    @wraps(original)
    async def commit(self: OrderStore, transition: Transition) -> OrderAggregate:
        committed = await original(self, transition)
        if isinstance(transition.after.state, Processed):
            marks.add(transition.after.order_id)
        return committed

    setattr(OrderStore, "commit", commit)  # noqa: B010 - to a type checker this is no method to assign to
