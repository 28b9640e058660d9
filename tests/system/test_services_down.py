"""Services that stay down, that have backups, that take only so many calls; and orders that matter more."""

import json
import time
from datetime import datetime
from functools import partial
from pathlib import Path
from statistics import median

import pytest
from client import QUICK, eventually
from inspection import all_processed, poisoned, states_of, unfinished
from scale import FULL, scaled
from submitting import new_order_id, submit

from local.ports import Ports

APP = Path(__file__).parent / "app"
MANY = 300
OUTAGE_SECONDS = scaled(5, 60)
NORMAL = scaled(300, 2000)
CIRCUITS = QUICK | {
    "ALLOWANCE_SECONDS": "6",
    "REMOTE_CALL_TIMEOUT_SECONDS": "2",  # or a slow machine would open circuits by itself
    "CIRCUIT_ORDERS": "5",
    "CIRCUIT_OPEN_SECONDS": "2",
}
PER_SECOND = 20
MOST_OPEN = scaled(10, 25)
"""Requests that one host keeps open: they are ahead of whatever comes later."""
WINDOW = 5
"""Seconds over which the rate is held against its limit."""
JITTER_SECONDS = 1
"""How much later than its turn a call may arrive, on a machine that is busy with other tests."""


async def place(stack, count, **more):
    """Put that many orders on the queue at once."""
    orders = [new_order_id() for _ in range(count)]
    await submit(stack, *orders, **{"workflow": "payment-only"} | more)
    return orders


async def all_recorded(client, orders):
    """While their service is down, or nobody schedules, none of them ends."""
    return len(await unfinished(client, orders)) == len(orders)


async def latency(stack, client, workflow):
    """How long one order takes from here, in seconds."""
    began = time.monotonic()
    (order_id,) = await place(stack, 1, workflow=workflow)
    await client.until(order_id, "Processed")
    return time.monotonic() - began


async def effects_at(client, service="payment"):
    """When things happened at the service, by order."""
    _, ledger = await client.request("GET", f"/simulator/{service}/ledger")
    return {
        effect["idempotencyKey"].split(":")[0]: datetime.fromisoformat(effect["at"]) for effect in ledger["effects"]
    }


@pytest.mark.proves("AGT-8", "SUP-3", "FLT-1", "WRK-2")
async def test_orders_wait_while_a_service_is_down_and_hold_up_nobody_else(own_stack):
    """None fails while the circuit is open, all go on when it closes; orders that do not need it are no slower."""
    stack, client = await own_stack(settings=CIRCUITS, app=APP)
    before = [await latency(stack, client, "restock") for _ in range(5)]
    await client.fault("down")
    down_since = time.monotonic()
    orders = await place(stack, MANY)
    await eventually(partial(all_recorded, client, orders), 60)
    during = []
    while len(during) < 10 or time.monotonic() < down_since + OUTAGE_SECONDS:
        during.append(await latency(stack, client, "restock"))
    assert sorted(during)[len(during) // 2] < 3 * sorted(before)[len(before) // 2] + 0.5
    states = await states_of(client, orders)
    assert {row["ProcessState"] for row in states.values()} <= {"Pending", "Processing"}
    await client.fault("none")
    await eventually(partial(all_processed, client, orders), 100)
    failures = [row["FailureCount"] for row in (await states_of(client, orders)).values()]
    assert max(failures) <= 1  # those that were being tried when nobody knew yet
    assert sum(failures) < MANY / 3
    assert len(await effects_at(client)) == MANY
    assert await poisoned(stack) == []


@pytest.mark.proves("AGT-10", "WRK-1", "AGT-3")
async def test_work_goes_to_a_backup_while_the_first_agent_hangs_and_back_again(own_stack):
    """Within seconds, with the same keys: no payment is taken twice."""
    ports = Ports.free()
    backup = {"PAYMENT_BACKUP_URL": f"http://127.0.0.1:{ports.http_port}/simulator/payment-backup"}
    stack, client = await own_stack(ports=ports, settings=CIRCUITS | backup)
    await client.fault("hang")
    orders = await place(stack, 30)
    await eventually(partial(all_processed, client, orders), 50)

    async def by(agent):
        """Whether a new order goes to this agent."""
        (order_id,) = await place(stack, 1)
        order = await client.until(order_id, "Processed", seconds=40)
        orders.append(order_id)
        return order["steps"][0]["agent"] == agent

    await eventually(partial(by, "payment-backup"), 40)
    await client.fault("none")
    await eventually(partial(by, "payment"), 40)
    assert await client.all_actions() == {order_id: ["authorise"] for order_id in orders}


@pytest.mark.proves("SCH-11", "AGT-10", "WRK-2")
async def test_a_service_gets_as_many_calls_as_it_takes_and_high_priority_goes_first(own_stack):
    """Three hosts keep to one rate; urgent orders overtake those that wait, and leave them some turns."""
    limits = {"CALLS_PER_SECOND": json.dumps({"payment": PER_SECOND}), "MOST_OPEN_REQUESTS": str(MOST_OPEN)}
    stack, client = await own_stack(hosts=0, settings=CIRCUITS | limits)
    await stack.start_host("submission_record")
    normal = await place(stack, NORMAL)
    await eventually(partial(all_recorded, client, normal), scaled(60, 200))
    high = await place(stack, 20, priority="high")
    await eventually(partial(all_recorded, client, high), 30)
    for _ in range(3):
        await stack.start_host()
    await eventually(partial(all_processed, client, high), 40)
    many = await place(stack, 100, priority="high")
    orders = [*normal, *high, *many]
    await eventually(partial(all_processed, client, orders), scaled(60, 250))

    at = await effects_at(client)
    overtook = [order_id for order_id in normal if at[order_id] < max(at[each] for each in high)]
    assert len(overtook) <= 3 * MOST_OPEN + 20  # what a wake-up had sent already, and each fifth turn
    beside = [
        order_id
        for order_id in normal
        if min(at[each] for each in many) < at[order_id] < max(at[each] for each in many)
    ]
    assert len(beside) >= 10
    times = sorted(at.values())
    spans = [
        (last - first).total_seconds() for first, last in zip(times, times[WINDOW * PER_SECOND :], strict=False)
    ]  # in which a window's worth of calls came
    assert min(spans) >= WINDOW / 1.1 - JITTER_SECONDS
    if FULL:  # else other tests share the machine
        assert median(spans) <= WINDOW / 0.9
