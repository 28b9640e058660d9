"""Azurite, the broker or Event Grid goes away under load and comes back: nothing that was accepted is lost."""

import asyncio
import time
from contextlib import asynccontextmanager

import pytest
from azure.storage.queue.aio import QueueClient

from functions_alone.tests.support.waiting import eventually
from tests.support.away import frozen, stopped
from tests.support.client import DONE, PATIENT, claims_and_recoveries_alternate
from tests.support.inspection import orders_of, poisoned, processed, until_processed
from tests.support.scale import both_sizes
from tests.support.stacks import running

SOON_SECONDS = 6
"""The report waits for 2 s; without that it takes as long as the slowest check, with a frozen broker much longer."""
SETTINGS = PATIENT | {
    "BUCKETS": "2",
    "SUPERVISOR_SCHEDULE": "*/2 * * * * *",
    "SCHEDULER_POLL_SCHEDULE": "*/2 * * * * *",
}
OUTAGE_SECONDS = 15
STORAGE = ("stateStore", "submissionQueue")


@pytest.fixture(scope="module")
async def lasting(tmp_path_factory):
    """A stack that keeps what it has when it stops; every test leaves it whole."""
    async with running(tmp_path_factory.mktemp("stack"), settings=SETTINGS, in_memory=False) as (
        stack,
        client,
    ):
        yield stack, client


@asynccontextmanager
async def deleted(stack, what):
    async with QueueClient.from_connection_string(stack.storage_connection_string, what) as queue:
        await queue.delete_queue()
        try:
            yield
        finally:
            await queue.create_queue()


async def health_becomes(client, status, *away, soon=None):
    """Wait until it is so; with `soon`, every answer on the way has to come within so many seconds."""

    async def is_so():
        began = time.monotonic()
        answered, report = await client.request("GET", "/api/health", key=False)
        if soon is not None and time.monotonic() - began > soon:
            pytest.fail("the answer took too long")
        words = report["dependencies"]
        seen = answered, tuple(sorted(name for name, word in words.items() if word == "away"))
        is_so.__name__ = f"health is {status}, away {away}, but it is {seen}"
        assert words.keys() == {"stateStore", "submissionQueue", "serviceBus"}
        return seen == (status, away)

    await eventually(is_so)


@asynccontextmanager
async def orders_placed(client):
    """Place orders all the time; yields the list of those that were accepted, which grows."""
    accepted, ending = [], asyncio.Event()

    async def keep_placing():
        while not ending.is_set():
            customer, items = (
                {"name": "Ada", "email": "ada@example.com"},
                [{"sku": "CUP-PORCELAIN", "quantity": 1}],
            )
            body = {"customer": customer, "items": items}
            status, answer = await client.request("POST", "/api/orders", key=False, json=body)
            assert status in (202, 503), answer
            if status == 202:
                accepted.append(answer["orderId"])
            await asyncio.sleep(0.5)  # the load: two orders a second, not a wait for anything

    load = asyncio.create_task(keep_placing())
    try:
        yield accepted
    finally:
        ending.set()
        await load


async def some_more_are_processed(client, accepted):
    """Wait until orders are accepted and processed that were not accepted before."""
    known = len(accepted)

    async def so():
        done = await processed(client, accepted[known:])
        so.__name__ = f"three more orders are processed; {len(accepted) - known} were accepted, {done} are processed"
        return done >= 3

    await eventually(so)


OUTAGES = {
    "azurite stopped": (stopped, "azurite", STORAGE),
    "azurite frozen": (frozen, "azurite", STORAGE),
    "broker stopped": (stopped, "broker", ("serviceBus",)),
    "broker frozen": (frozen, "broker", ("serviceBus",)),
    "queue deleted": (deleted, "order-submissions", ("submissionQueue",)),
}


@pytest.mark.soak
@pytest.mark.parametrize("outage", ["azurite stopped", "azurite frozen", "broker stopped"])
@pytest.mark.proves("FLT-7", "FLT-8", "SUB-4")
async def test_nothing_is_lost_while_a_dependency_is_away(lasting, outage):
    """Under load: health names what is away until it is back, every accepted order is processed, none is poisoned."""
    taken, what, away = OUTAGES[outage]
    stack, client = lasting
    await health_becomes(client, 200)
    async with orders_placed(client) as accepted:
        await some_more_are_processed(client, accepted)
        async with taken(stack, what):
            await health_becomes(client, 503, *away)
            await asyncio.sleep(OUTAGE_SECONDS)
        await health_becomes(client, 200)
        await some_more_are_processed(client, accepted)
    await until_processed(client, accepted)
    assert await poisoned(stack) == []
    for order in await orders_of(client, accepted):
        assert claims_and_recoveries_alternate(order), order["history"]
    actions = await client.all_actions()
    assert {order_id for order_id in accepted if actions[order_id] != DONE} == set()


@pytest.mark.parametrize("outage", ["broker frozen", "queue deleted"])
@pytest.mark.proves("FLT-7", "FLT-8")
@both_sizes(soon=(None, SOON_SECONDS))
async def test_health_names_what_is_away_until_it_is_back(lasting, outage, soon):
    """503, while a connection stays open and nothing answers, or a queue does not exist; and 200 by itself after it."""
    taken, what, away = OUTAGES[outage]
    stack, client = lasting
    await health_becomes(client, 200)
    async with taken(stack, what):
        await health_becomes(client, 503, *away, soon=soon)
    await health_becomes(client, 200)


@pytest.mark.proves("ALR-1", "FLT-11")
async def test_an_alert_arrives_after_event_grid_was_away(lasting):
    """The event waits in the outbox while Event Grid is away, and is sent when it is back."""
    stack, client = lasting

    async def outbox():
        return [key for key in await client.work_items_of(order_id) if key.startswith("!outbox|")]

    async def confirmed():
        waiting = await outbox()
        confirmed.__name__ = f"the event of {order_id} is confirmed, but there is {waiting}"
        return not waiting

    await client.fault("reject", "POT-GLASS")
    async with stopped(stack, "event_grid"):
        order_id = await client.place("POT-GLASS")
        await client.until(order_id, "Error")
        assert len(await outbox()) == 1
        assert await client.alerts(order_id) == []
    await eventually(confirmed)

    async def alerted():
        return await client.alerts(order_id)

    assert len(await eventually(alerted)) == 1
    await client.fault("none", "POT-GLASS")


@pytest.mark.soak
@pytest.mark.proves("SCH-9")
async def test_orders_are_still_there_after_the_stack_was_stopped_and_started(lasting):
    """A processed order and one that waits for an operator survive a restart of everything; the latter goes on."""
    stack, client = lasting
    done = await client.place("TEA-SENCHA")
    await client.fault("reject", "POT-GLASS")
    waiting = await client.place("POT-GLASS")
    await client.until(done, "Processed")
    await client.until(waiting, "Error")
    await stack.stop()
    await stack.start()
    assert (await client.order(done))["processState"] == "Processed"
    await client.fault("none", "POT-GLASS")
    await client.resubmit(waiting)
    await client.until(waiting, "Processed")
