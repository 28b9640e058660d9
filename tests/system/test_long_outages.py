"""The store, the bus or Event Grid stays away for many times every deadline, and no order is charged for it.

The outages happen side by side, each on a stack of its own: together they take as long as one. Five stacks with a load
need the machine for themselves.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import cycle
from uuid import uuid4

import pytest

from development.stack import AppStack
from functions_alone.tests.support.waiting import eventually
from tests.support.away import frozen, stopped
from tests.support.client import DONE, GIVES, QUICK, TAKES, claims_and_recoveries_alternate
from tests.support.inspection import orders_of, poisoned, processed, states_of, unfinished
from tests.support.private_queue import REPLY_TO, Mailbox
from tests.support.scale import NIGHTLY
from tests.support.stacks import APP, running
from tests.support.submitting import submit_new

AWAY_SECONDS = 300 if NIGHTLY else 75
PAUSE_SECONDS = 2
"""Between two calls to the shop: the load, and not a wait for anything."""
SETTINGS = QUICK | {
    "STEP_TIMEOUT_SECONDS": "15",
    "CLOCK_TOLERANCE_SECONDS": "2",
    "REMOTE_CALL_TIMEOUT_SECONDS": "8",
    "FAILURE_THRESHOLD": "3",
    "PENDING_ALERT_SECONDS": "3600",
    "SWEEP_ALERT_SECONDS": "3600",
}
"""A step could time out four times, and its order would fail at the third. Few requests are open at a time, so
that orders wait for room when it begins. That they wait for long is no alert here."""
SLOW_MILLISECONDS = 5000
STORY = ["received", "processing-started", *["step-completed"] * 4, "order-completed"]
PLAIN, REFUSED, RESTING, SLOW = "TEA-SENCHA", "CUP-PORCELAIN", "TEA-ROOIBOS", "POT-GLASS"


@dataclass(frozen=True, kw_only=True)
class Outage:
    """One part is away."""

    take: Callable[[AppStack], AbstractAsyncContextManager[None]]
    takes_orders: bool = True
    """Whether the shop goes on meanwhile."""


OUTAGES = {
    "store stopped": Outage(take=partial(stopped, what="azurite"), takes_orders=False),
    "store frozen": Outage(take=partial(frozen, what="azurite"), takes_orders=False),
    "bus stopped": Outage(take=partial(stopped, what="broker")),
    "bus frozen": Outage(take=partial(frozen, what="broker")),
    "event grid stopped": Outage(take=partial(stopped, what="event_grid")),
}


@pytest.fixture(scope="module")
async def stories(tmp_path_factory):
    """What happens in each outage, under way."""
    folders = {name: tmp_path_factory.mktemp("stack") for name in OUTAGES}
    tasks = {
        name: asyncio.create_task(live_through(OUTAGES[name], folder))
        for name, folder in folders.items()
    }
    yield tasks
    for task in tasks.values():
        task.cancel()
    await asyncio.gather(*tasks.values(), return_exceptions=True)


@pytest.mark.soak
@pytest.mark.alone
@pytest.mark.proves("FLT-7", "FLT-8", "FLT-11", "SUP-3", "ALR-1", "ALR-2")
@pytest.mark.parametrize("outage", OUTAGES)
async def test_a_long_outage_is_charged_to_no_order(stories, outage):
    """An order that was not in flight when it began fails no more often for it, one that was at most once a step.

    All end as they would have, everything is done and told once, and no message is set aside.
    """
    await stories[outage]


async def live_through(outage, folder):
    """Have orders in every state when something goes away, place more, and see what becomes of them all."""
    async with running(folder, app=APP, settings=SETTINGS, in_memory=False) as (stack, client):
        resting = await some_that_rest(stack, client)
        await client.fault("reject", REFUSED)
        await client.fault("slow", SLOW, latencyMs=SLOW_MILLISECONDS)
        async with orders_placed(client) as placed:
            await some_are_processed(client, placed, after=0)
            unfinished = await some_at_work_and_some_waiting(stack, client)
            began = datetime.now(UTC)
            async with outage.take(stack):
                gone, known = datetime.now(UTC), len(placed)
                await asyncio.sleep(AWAY_SECONDS)  # the outage itself
                assert len(placed) > known or not outage.takes_orders
            await some_are_processed(client, placed, after=len(placed))
        every = [*resting, *unfinished, *placed]
        await all_have_ended(client, every)
        orders = await orders_of(client, every)
        nothing_is_charged(orders, began, gone)
        assert {
            in_flight(order, began, began) for order in orders if order["orderId"] in unfinished
        } == {
            True,
            False,
        }
        refused = [order_id for order_id, sku in placed.items() if sku == REFUSED]
        assert {order["orderId"] for order in orders if order["processState"] == "Error"} == set(
            refused
        )
        assert all(map(claims_and_recoveries_alternate, orders))
        effects = await client.all_actions()
        other = {order_id: ["authorise"] for order_id in resting} | of_the_refused(
            orders, refused, effects
        )
        assert {order_id: effects.get(order_id, []) for order_id in every} == dict.fromkeys(
            every, DONE
        ) | other
        await eventually(partial(operators_have_alerts, client, refused))
        await eventually(partial(Mailbox(stack).tells, STORY, unfinished))
        assert await poisoned(stack) == []


async def some_that_rest(stack, client):
    """Orders that timed out, and will be tried again during the outage."""
    await client.fault("down", RESTING)
    orders = await submit_new(stack, 3, workflow="resting", items=[line(RESTING)])

    async def all_rest():
        return all(order["steps"][0]["cooldowns"] for order in await orders_of(client, orders))

    await eventually(all_rest)
    await client.fault("none", RESTING)
    return orders


async def some_at_work_and_some_waiting(stack, client):
    """Orders whose payment takes seconds, more than there is room for."""
    orders = await submit_new(stack, 20, items=[line(SLOW)], replyTo=REPLY_TO)

    async def so():
        states = await states_of(client, orders)
        return len(states) == 20 and {row["ProcessState"] for row in states.values()} == {
            "Pending",
            "Processing",
        }

    await eventually(so)
    return orders


def line(sku):
    return {"sku": sku, "quantity": 2, "unitPrice": "14.00"}


@asynccontextmanager
async def orders_placed(client):
    """Place orders all the time, every fourth of which is refused; yields what each order that was taken is for."""
    placed, ending = {}, asyncio.Event()

    async def keep_placing():
        for sku in cycle([PLAIN, PLAIN, PLAIN, REFUSED]):
            if ending.is_set():
                break
            placed[await place(client, sku)] = sku
            await asyncio.sleep(PAUSE_SECONDS)

    load = asyncio.create_task(keep_placing())
    try:
        yield placed
    finally:
        ending.set()
        await load


async def place(client, sku):
    """Order one piece, again and again until the order is taken; what was answered 503 may have been taken too."""
    body = {
        "customer": {"name": "Ada", "email": "ada@example.com"},
        "items": [{"sku": sku, "quantity": 1}],
    }
    key = {"Idempotency-Key": str(uuid4())}
    while True:
        status, answer = await client.request(
            "POST", "/api/orders", key=False, json=body, headers=key
        )
        if status == 202:
            return answer["orderId"]
        assert status == 503, answer
        await asyncio.sleep(PAUSE_SECONDS)


async def some_are_processed(client, placed, after):
    """Wait until three orders are processed of those that were placed after so many."""

    async def so():
        return await processed(client, list(placed)[after:]) >= 3

    await eventually(so)


async def all_have_ended(client, orders):
    async def so():
        waiting, states = await unfinished(client, orders), await states_of(client, orders)
        so.__name__ = f"all have ended, but {len(waiting)} wait, and {len(states)} of {len(orders)} are recorded"
        return not waiting and len(states) == len(orders)

    await eventually(so)


def of_the_refused(orders, refused, effects):
    """What is done for each order whose payment is refused: its stock is reserved.

    Nothing starts any more once the payment is refused. So nothing is done for an order whose request for the stock found
    no room before. If that request or its reply was lost, the stock is reserved or not. Most find room.
    """
    stock = {
        order["orderId"]: step
        for order in orders
        for step in order["steps"]
        if step["name"] == "stock"
    }
    undone = {order_id for order_id in refused if stock[order_id]["state"] == "NotStarted"}
    assert len(undone) <= len(refused) / 2
    possible = {order_id: [["reserve"]] for order_id in refused}
    for order_id in undone:
        possible[order_id] = [[], ["reserve"]] if stock[order_id]["attempts"] else [[]]
    done = {order_id: effects.get(order_id, []) for order_id in refused}
    return {
        order_id: done[order_id] if done[order_id] in some else some[0]
        for order_id, some in possible.items()
    }


def nothing_is_charged(orders, began, gone):
    """Of an order that was in flight one failure of each step may be; tell the story of any that has more."""
    charged = [order for order in orders if failures(order, began) > in_flight(order, began, gone)]
    stories = "\n\n".join(story_of(order) for order in charged)
    assert not charged, (
        f"{len(charged)} of {len(orders)} are charged for what began at {began}:\n{stories}"
    )


def story_of(order):
    return "\n".join(
        f"{entry['at']} {entry['actor']}: {entry['event']} {entry['detail']}"
        for entry in order["history"]
    )


def failures(order, since):
    """Count the time-outs since then that were charged to the step with the most of them."""
    events = (
        event for entry in order["history"] if at(entry) >= since for event in entry["events"]
    )
    charged = Counter(event["step"] for event in events if "failure" in event)
    return max(charged.values(), default=0)


def in_flight(order, began, gone):
    """Whether a scheduler handled the order at some moment between these two."""
    before = [
        entry["event"]
        for entry in order["history"]
        if at(entry) < began and entry["event"] in TAKES | GIVES
    ]
    claimed = any(
        entry["event"] == "claimed" and began <= at(entry) <= gone for entry in order["history"]
    )
    return claimed or before[-1:] == ["claimed"]


def at(entry):
    return datetime.fromisoformat(entry["at"])


async def operators_have_alerts(client, refused):
    """Whether there is one alert for each of these orders, and no other."""
    _, answer = await client.request("GET", "/api/operator/alerts?limit=200")
    named = sorted(alert["subject"].removeprefix("orders/") for alert in answer["alerts"])
    assert named == sorted(refused)
    return True
