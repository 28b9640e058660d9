"""A storm of alerts ends by itself at a bounded cost, and holds up no order (load.md 4)."""

import asyncio
import base64
import json
import re
import time
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from urllib.parse import unquote_to_bytes

import pytest
from azure.data.tables.aio import TableClient
from azure.storage.queue.aio import QueueClient

from engine.alerts.events import STALLED
from engine.azure.tables.transactions import TableTransactions
from engine.concurrency import run_all
from engine.decisions.transitions import OperatorEvent
from engine.domain.statuses import ORDER_FAILED
from engine.storage.orders import OrderStore
from functions_alone.ports import HOST, Ports
from functions_alone.tests.support.waiting import eventually
from tests.support.between import Between, storage_through
from tests.support.client import PATIENT
from tests.support.inspection import until_processed
from tests.support.scale import NIGHTLY
from tests.support.stacks import APP, FUNCTIONS, names, running
from tests.support.submitting import submit_new

PER_SECOND = 30
NOW = datetime.now(UTC)
BUCKETS = ("b00", "b01")
PLACED = 20
AWAY_SECONDS = 20
OUTBOX = "RowKey ge '!outbox' and RowKey lt '!outboy'"
ALERTS = "RowKey ge '0' and RowKey lt '~'"
KINDS = 3
"""So many messages tell of the same event."""


def event(number):
    return OperatorEvent(
        event_id=f"storm-{number}",
        type=ORDER_FAILED,
        subject=f"orders/b00-{number:026d}",
        at=NOW,
        data={"reason": "declined", "actionRequired": True, "actions": ["resubmit"]},
    )


def message(number):
    """The message by which Event Grid delivers an event."""
    sent = event(number)
    body = {
        "specversion": "1.0",
        "id": sent.event_id,
        "source": "/order-processing",
        "type": sent.type,
        "subject": sent.subject,
        "time": sent.at.isoformat(),
        "data": sent.data,
    }
    return base64.b64encode(json.dumps(body).encode()).decode()


def is_of_alerts(path, body):
    """Whether a request to the tables is one of relay or consumer."""
    return "/alerts" in path or "!outbox" in path or b"!outbox" in body


def confirms(body):
    """Whether a request removes events from the outbox that were sent: it writes nothing in their place."""
    methods = set(re.findall(rb"^(DELETE|POST|PUT|PATCH) http", body, re.MULTILINE))
    return b"!outbox" in unquote_to_bytes(body) and methods == {b"DELETE"}


async def fill_outbox(storage, count):
    """Let so many events wait in the outbox."""
    async with TableClient.from_connection_string(storage, "orders") as table:
        store = OrderStore(TableTransactions(lambda: table), BUCKETS)
        work = (store.announce(BUCKETS[number % 2], event(number)) for number in range(count))
        await run_all(work, at_most=500)


async def count_of(storage, table_name, query):
    async with TableClient.from_connection_string(storage, table_name) as table:
        return len([row async for row in table.query_entities(query, select=["RowKey"])])


@pytest.mark.soak
@pytest.mark.proves("ALR-1", "FLT-8")
@pytest.mark.parametrize(("unsent", "queued"), [(2000, 9000) if NIGHTLY else (500, 1500)])
async def test_a_storm_of_alerts_ends_and_holds_up_no_order(tmp_path, unsent, queued):
    """None is sent twice within its pause, and the operations of relay and consumer keep to their limit."""
    ports, began = Ports.free(), time.monotonic()

    def until(times, matches=lambda _: True):
        """Refuse what matches so many times as long as Event Grid is away."""

        def refused(body):
            is_away = time.monotonic() < began + times * AWAY_SECONDS
            return 503 if is_away and matches(body) else None

        return refused

    tables = Between(f"http://{HOST}:{ports.table_port}", refuses=until(2, confirms))
    topic = Between(f"http://{HOST}:{ports.eventgrid_port}", refuses=until(1))
    async with tables.listening() as table_port, topic.listening() as topic_port:
        settings = PATIENT | {
            "StateStorage": storage_through(ports, table_port),
            "EVENT_GRID_ENDPOINT": f"http://{HOST}:{topic_port}/api/events",
            "ALERT_OPERATIONS_PER_SECOND": str(PER_SECOND),
        }
        functions = names(*FUNCTIONS)
        async with running(tmp_path, ports=ports, functions=functions, settings=settings) as (
            stack,
            client,
        ):
            storage = stack.storage_connection_string
            async with QueueClient.from_connection_string(storage, "operator-alerts") as queue:
                began = time.monotonic()
                await fill_outbox(storage, unsent)
                sends = (queue.send_message(message(100_000 + n // KINDS)) for n in range(queued))
                await run_all(sends, at_most=32)
                seen, stop = [], asyncio.Event()
                watching = asyncio.create_task(watch(storage, queue, seen, stop))
                orders = [await client.place() for _ in range(PLACED)]
                await until_processed(client, orders)
                assert seen[0].queued > 0, "the storm was over before the orders came"

                alerts = unsent + -(-queued // KINDS)
                for least in range(0, alerts, 500):
                    await eventually(partial(is_recorded, storage, least))

                async def nothing_waits():
                    waiting = [
                        await count_of(storage, "orders", OUTBOX),
                        await count_of(storage, "alerts", ALERTS),
                        (await queue.get_queue_properties()).approximate_message_count,
                    ]
                    assert waiting == [0, alerts, 0]
                    return True

                await eventually(nothing_waits)
                stop.set()
                await watching
    check_backlog(seen)
    assert any(confirms(body) for _, _, body in tables.seen), "no confirmation was refused"
    check_pauses(topic.seen)
    check_rate([at for at, path, body in tables.seen if is_of_alerts(path, body)])


async def is_recorded(storage, least):
    """Whether so many alerts are in the log."""
    assert await count_of(storage, "alerts", ALERTS) > least
    return True


@dataclass(frozen=True)
class Backlog:
    """What waited at a moment."""

    at: float
    unsent: int
    """Rows of the outbox."""
    queued: int
    """Messages for the consumer."""
    recorded: int


async def watch(storage, queue, seen, stop):
    """Note every few seconds what waits."""
    while not stop.is_set():
        properties = await queue.get_queue_properties()
        unsent = await count_of(storage, "orders", OUTBOX)
        recorded = await count_of(storage, "alerts", ALERTS)
        queued = properties.approximate_message_count
        seen.append(Backlog(time.monotonic(), unsent, queued, recorded))
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), 3)


def check_backlog(seen):
    """In every interval of ten seconds more is recorded, until all is; and the queue that is filled no more gets shorter."""
    for early in seen[:-1]:
        late = next((reading for reading in seen if reading.at >= early.at + 10), seen[-1])
        if early.recorded < seen[-1].recorded:
            assert late.recorded > early.recorded
        if early.queued and not early.unsent:
            assert late.queued < early.queued


def check_pauses(requests):
    """Each event waits twice as long before each time that it is sent again."""
    times = defaultdict(list)
    for at, _, body in requests:
        for loaded in json.loads(body):
            times[loaded["id"]].append(at)
    assert any(len(sent) > 1 for sent in times.values()), "none was sent again"
    for sent in times.values():
        for tries, (early, late) in enumerate(pairwise(sent), start=1):
            assert late - early >= 2**tries - 0.5


def check_rate(times):
    """In each whole second there are at most as many operations as are set."""
    assert times
    by_interval = Counter(int(at / 5) for at in times)
    assert max(by_interval.values()) <= PER_SECOND * 5 + PER_SECOND


@pytest.mark.soak
@pytest.mark.proves("SUP-7", "ALR-4")
@pytest.mark.parametrize(("count", "pending_seconds"), [(600, 60) if NIGHTLY else (150, 20)])
async def test_orders_behind_a_slow_agent_are_few_alerts(tmp_path, count, pending_seconds):
    """However often the wait of each begins again; the alert says how many they are (load.md 4)."""
    settings = PATIENT | {
        "CALLS_IN_FLIGHT": '{"payment": 1}',
        "PENDING_ALERT_SECONDS": str(pending_seconds),
        "STALL_DETECTOR_SCHEDULE": "* * * * * *",
    }
    functions = names(*FUNCTIONS, "alerts_stalls")
    async with running(tmp_path, app=APP, functions=functions, settings=settings) as (
        stack,
        client,
    ):
        await client.fault("slow", latencyMs=1000, service="payment")
        orders = await submit_new(stack, count, workflow="payment-only")
        await until_processed(client, orders)

        async def all_are_resolved():
            _, found = await client.request("GET", "/api/operator/alerts")
            alerts = [alert for alert in found["alerts"] if alert["type"] == STALLED]
            assert 1 <= len(alerts) <= 3
            assert all(alert["closed"] for alert in alerts)
            return alerts

        for alert in await eventually(all_are_resolved):
            assert alert["status"] == "resolved"
            assert alert["count"] >= 1
            assert set(alert["orders"]) <= set(orders)
        assert await count_of(stack.storage_connection_string, "orders", OUTBOX) == 0
