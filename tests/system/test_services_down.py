"""Services that stay down, that have backups, that take only so many calls; and orders that matter more."""

import asyncio
import json
import time
from bisect import bisect
from datetime import datetime
from functools import partial
from pathlib import Path

import pytest
from client import QUICK, eventually
from inspection import poisoned, processed, states_of
from submitting import new_order_id, submit

from local.ports import Ports

APP = Path(__file__).parent / "app"
MANY = 300
CIRCUITS = QUICK | {"CIRCUIT_ORDERS": "5", "CIRCUIT_OPEN_SECONDS": "2"}
PER_SECOND = 20


async def place(stack, count, **more):
    """Put that many orders on the queue at once."""
    orders = [new_order_id() for _ in range(count)]
    await asyncio.gather(*(submit(stack, order_id, **{"workflow": "payment-only"} | more) for order_id in orders))
    return orders


async def all_processed(client, orders):
    return await processed(client, orders) == len(orders)


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


@pytest.mark.timeout(180)
@pytest.mark.proves("AGT-8", "SUP-3", "FLT-1", "WRK-2")
async def test_orders_wait_while_a_service_is_down_and_hold_up_nobody_else(own_stack):
    """None fails while the circuit is open, all go on when it closes; orders that do not need it are no slower."""
    stack, client = await own_stack(settings=CIRCUITS, app=APP)
    before = [await latency(stack, client, "restock") for _ in range(5)]
    await client.fault("down")
    orders = await place(stack, MANY)

    async def all_recorded():
        states = await states_of(client, orders)
        return len(states) == MANY and states

    await eventually(all_recorded, 60)
    during = [await latency(stack, client, "restock") for _ in range(10)]
    assert sorted(during)[len(during) // 2] < 3 * sorted(before)[len(before) // 2] + 0.5
    states = await states_of(client, orders)
    assert {row["ProcessState"] for row in states.values()} <= {"Pending", "Processing"}
    await client.fault("none")
    await eventually(partial(all_processed, client, orders), 60)
    failures = [row["FailureCount"] for row in (await states_of(client, orders)).values()]
    assert max(failures) <= 1  # those that were being tried when nobody knew yet
    assert sum(failures) < MANY / 3
    assert len(await effects_at(client)) == MANY
    assert await poisoned(stack) == []


@pytest.mark.timeout(150)
@pytest.mark.proves("AGT-10", "WRK-1", "AGT-3")
async def test_work_goes_to_a_backup_while_the_first_agent_hangs_and_back_again(own_stack):
    """Within seconds, with the same keys: no payment is taken twice."""
    ports = Ports.free()
    backup = {"PAYMENT_BACKUP_URL": f"http://127.0.0.1:{ports.http_port}/simulator/payment-backup"}
    stack, client = await own_stack(ports=ports, settings=CIRCUITS | backup)
    await client.fault("hang")
    orders = await place(stack, 30)
    await eventually(partial(all_processed, client, orders), 30)

    async def by(agent):
        """Whether a new order goes to this agent."""
        (order_id,) = await place(stack, 1)
        order = await client.until(order_id, "Processed")
        orders.append(order_id)
        return order["steps"][0]["agent"] == agent

    await eventually(partial(by, "payment-backup"), 20)
    await client.fault("none")
    await eventually(partial(by, "payment"), 20)
    for order_id in orders:
        assert await client.actions(order_id) == ["authorise"]


@pytest.mark.timeout(180)
@pytest.mark.proves("SCH-11", "AGT-10", "WRK-2")
async def test_a_service_gets_as_many_calls_as_it_takes_and_high_priority_goes_first(own_stack):
    """Three hosts keep to one rate; 20 urgent orders overtake hundreds, and those keep moving meanwhile."""
    limits = {"CALLS_PER_SECOND": json.dumps({"payment": PER_SECOND}), "ALLOWANCE_SECONDS": "8"}
    stack, client = await own_stack(hosts=3, settings=QUICK | limits | {"REMOTE_CALL_TIMEOUT_SECONDS": "3"})
    normal = await place(stack, 240)
    await eventually(partial(some_processed, client, normal, 40), 60)
    high = await place(stack, 20, priority="high")
    await eventually(partial(all_processed, client, high), 30)
    assert await processed(client, normal) < len(normal) - 40

    stream = asyncio.create_task(urgent_stream(stack, 100))
    done_before = await processed(client, normal)
    urgent = await stream
    await eventually(partial(all_processed, client, urgent), 30)
    done = await processed(client, normal)
    await eventually(partial(all_processed, client, normal), 60)
    assert done > done_before  # each fifth turn was theirs

    times = sorted((await effects_at(client)).values())
    began = bisect([(time - times[0]).total_seconds() for time in times], 1)
    whole = (times[-1] - times[began]).total_seconds()
    assert (len(times) - began) / whole <= 1.1 * PER_SECOND
    for start in range(began, len(times) - 5 * PER_SECOND, PER_SECOND):
        assert (times[start + 5 * PER_SECOND] - times[start]).total_seconds() >= 5 / 1.1
    assert (len(times) - began) / whole >= PER_SECOND / 2  # on a machine with nothing else to do it is 20


async def some_processed(client, orders, count):
    return await processed(client, orders) >= count


async def urgent_stream(stack, count):
    """More urgent orders than the service takes, one after another."""
    orders = []
    for _ in range(count // 10):
        orders += await place(stack, 10, priority="high")
        await asyncio.sleep(0.4)  # the stream's pace
    return orders
