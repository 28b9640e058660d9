"""Services that stay down, and that have backups, where functions run on hosts of their own as on Azure's Flex plan.

Who claims there hears of no reply, and who gets the replies has claimed nothing: what one of them finds out of an agent
helps the others only if it is told.
"""

import asyncio
import time
from datetime import datetime
from statistics import median

import pytest

from functions_alone.ports import Ports
from functions_alone.tests.support.waiting import eventually
from tests.support.client import QUICK, claims_and_recoveries_alternate
from tests.support.inspection import orders_of, poisoned, states_of, until_processed, until_recorded
from tests.support.stacks import APP, FUNCTIONS, names, running
from tests.support.submitting import submit_new

MAX_OPEN = 5
"""At an agent of which nothing is known, by what one host claims; and a request that is answered meanwhile, or two."""
CIRCUIT_ORDERS = 3
POLL_SECONDS = 5
SETTINGS = QUICK | {
    "STEP_TIMEOUT_SECONDS": "10",
    "FAILURE_THRESHOLD": "1000",
    "REMOTE_CALL_TIMEOUT_SECONDS": "2",  # or a slow machine would open circuits by itself
    "CIRCUIT_ORDERS": str(CIRCUIT_ORDERS),
    "CIRCUIT_OPEN_SECONDS": "15",
    "SCHEDULER_POLL_SCHEDULE": f"*/{POLL_SECONDS} * * * * *",
    "SUPERVISOR_SCHEDULE": "*/2 * * * * *",
}
EVERY = (*FUNCTIONS, "agent_payment_backup", "scheduler_payment_backup_responses")
RESPONSES = tuple(name for name in EVERY if name.endswith("_responses"))
WAITING = 300
OUTAGES = 4
"""For how many times of its circuit the service is down."""
TIMES_AS_LONG = 3
"""How much longer than before any other order may take meanwhile."""
CLAIMERS = 2
"""The wake-ups' host and the poll's."""

pytestmark = pytest.mark.soak
"""`tests/scale/test_many_processes.py` and `tests/scale/test_agents_away.py` have the same in memory."""


@pytest.fixture(scope="module")
async def apart(tmp_path_factory):
    """A stack on which one host only polls, one only gets replies, and one does all the rest; and who polls."""
    ports = Ports.free()
    backup = {"PAYMENT_BACKUP_URL": f"http://127.0.0.1:{ports.http_port}/simulator/payment-backup"}
    rest = names(*EVERY, but={"scheduler_poll", *RESPONSES})
    folder = tmp_path_factory.mktemp("stack")
    async with running(
        folder, ports=ports, app=APP, functions=rest, settings=SETTINGS | backup
    ) as (stack, client):
        poller, _ = await asyncio.gather(
            stack.start_host("scheduler_poll"), stack.start_host(names(*RESPONSES))
        )
        yield stack, client, poller


def at(entry):
    return datetime.fromisoformat(entry["at"])


def claims(orders):
    return [entry for order in orders for entry in order["history"] if entry["event"] == "claimed"]


async def opened_until(client, agent, meanwhile=None):
    """Wait until the agent tells that its circuit is open; return until when."""

    async def is_open():
        if meanwhile:
            await meanwhile()
        _, overview = await client.request("GET", "/api/operator/overview")
        is_open.__name__ = f"the circuit of {agent} is open; agents say {overview['agents']}"
        return [
            breaker["openUntil"]
            for breaker in overview["agents"]
            if breaker["agent"] == agent and breaker["openUntil"]
        ]

    return datetime.fromisoformat((await eventually(is_open))[0])


async def latency(stack, client):
    """How long an order takes that needs only payment, in seconds."""
    began = time.monotonic()
    (order_id,) = await submit_new(stack, 1, workflow="payment-only")
    await client.until(order_id, "Processed")
    return time.monotonic() - began


@pytest.mark.proves("AGT-8", "SUP-3", "FLT-1", "WRK-2")
async def test_orders_wait_while_a_service_is_down_and_hold_up_nobody_else(apart):
    """None goes to a service whose circuit is open, whoever found that out, and none fails; all go on when it closes."""
    stack, client, _ = apart
    before = [await latency(stack, client) for _ in range(3)]
    await client.fault("down", service="inventory")
    waiting = await submit_new(stack, WAITING, workflow="restock")
    opened = [await opened_until(client, "inventory")]
    await until_recorded(client, waiting)
    during = [await latency(stack, client) for _ in range(3)]
    while len(opened) < OUTAGES:
        during.append(await latency(stack, client))
        if (until := await opened_until(client, "inventory")) > opened[-1]:
            opened.append(until)
    states = await states_of(client, waiting)
    assert {row["ProcessState"] for row in states.values()} <= {"Pending", "Processing"}
    assert median(during) < TIMES_AS_LONG * median(before) + 0.5
    await client.fault("none", service="inventory")
    await until_processed(client, waiting)

    orders = await orders_of(client, waiting)
    too_early = [claim for claim in claims(orders) if at(claim) < opened[0]]
    assert len(too_early) <= CLAIMERS * MAX_OPEN  # those that went out when nobody knew yet
    assert sum(order["failureCount"] for order in orders) <= CLAIMERS * MAX_OPEN
    effects = await client.all_actions()
    assert [effects[order_id] for order_id in waiting] == [["reserve"]] * WAITING
    assert await poisoned(stack) == []


@pytest.mark.proves("AGT-10", "WRK-1", "AGT-3")
async def test_work_goes_to_a_backup_while_the_first_agent_hangs_and_back_again(apart):
    """With the same keys: no payment is taken twice."""
    stack, client, _ = apart
    orders = []

    async def one_more():
        orders.extend(await submit_new(stack, 1, workflow="payment-only"))

    async def goes_to_the_first():
        await one_more()
        agent = await agent_of(orders[-1])
        goes_to_the_first.__name__ = f"an order goes to payment, but one went to {agent}"
        return agent == "payment"

    async def agent_of(order_id):
        order = await client.until(order_id, "Processed")
        return order["steps"][0]["agent"]

    await client.fault("hang")
    await opened_until(client, "payment", meanwhile=one_more)
    await one_more()
    assert await agent_of(orders[-1]) == "payment-backup"
    await until_processed(client, orders)  # also those that the first agent had
    await client.fault("none")
    await eventually(goes_to_the_first)
    effects = await client.all_actions()
    assert {order_id: effects[order_id] for order_id in orders} == {
        order_id: ["authorise"] for order_id in orders
    }
    assert all(map(claims_and_recoveries_alternate, await orders_of(client, orders)))
    assert await poisoned(stack) == []
