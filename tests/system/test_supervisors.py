"""Several supervisors: one sweeps, and another takes over when it is frozen or killed."""

import asyncio
import time
from itertools import groupby

import pytest

from functions_alone.tests.support.waiting import eventually
from tests.support.client import QUICK, claims_and_recoveries_alternate, events
from tests.support.inspection import orders_of
from tests.support.stacks import FUNCTIONS, names, number_of, pid_of, running, workers_of

LEASE_SECONDS = 15
"""The shortest that Azure takes."""
MANY, MORE = 3, 6
SETTINGS = QUICK | {
    "FAILURE_THRESHOLD": "1000",
    "BUCKETS": "2",
    "LEASE_SECONDS": str(LEASE_SECONDS),
    "SUPERVISOR_SCHEDULE": "*/2 * * * * *",
    "SCHEDULER_POLL_SCHEDULE": "*/10 * * * * *",
    "REMOTE_CALL_TIMEOUT_SECONDS": "3",
}

pytestmark = pytest.mark.soak
"""`tests/contract/test_other_ports.py` has the lease, `tests/unit/supervisor/test_service.py` what a sweep does without it,
and the exploration two supervisors that recover one order."""


@pytest.fixture
async def supervised(tmp_path):
    """One host for all roles but the supervisor, and two that are supervisors only."""
    but_supervisor = names(*FUNCTIONS, but={"supervisor_sweep"})
    async with running(tmp_path, functions=but_supervisor, settings=SETTINGS) as (stack, client):
        supervisors = await asyncio.gather(
            *(start_supervisor(stack, slot) for slot in ("one", "other"))
        )
        yield stack, client, supervisors


async def start_supervisor(stack, slot):
    """Start a supervisor whose timer is under a lock of its own, as that of another deployment slot is on Azure.

    Under the lock that hosts of one slot share, one timer runs at a time, and nobody has to be elected.
    """
    return await stack.start_host("supervisor_sweep", AzureFunctionsWebHost__hostid=slot)


async def leaders(client, orders):
    """The worker processes that recovered any of these orders, each as often as it took its turn, oldest first."""
    histories = [order["history"] for order in await orders_of(client, orders)]
    found = [entry for history in histories for entry in history if entry["event"] == "recovered"]
    return [[pid] for pid, _ in groupby(map(pid_of, sorted(found, key=lambda entry: entry["at"])))]


async def recoveries(client, orders):
    """How often each order was recovered, also where its request was begun late and so is no failure."""
    return [events(order).count("recovered") for order in await orders_of(client, orders)]


async def recovered(client, orders, times):
    """Wait until each order was recovered so often."""

    async def so():
        now = await recoveries(client, orders)
        so.__name__ = f"{len(orders)} orders are recovered {times} times, but only {now}"
        return len(now) == len(orders) and min(now) >= times

    await eventually(so)


async def elected(client, supervisors, orders):
    """Let orders hang until it is seen who recovers them; returns them, who that is, and the other one."""
    await client.fault("hang", latencyMs=30_000)
    placed = [await client.place() for _ in range(orders)]
    await recovered(client, placed, 3)  # often enough for a second sweeper to get a share
    (leader,) = await leaders(client, placed)
    one, other = supervisors
    return placed, *((one, other) if leader == workers_of(one) else (other, one))


async def all_were_counted_once(client, placed):
    """Let the orders end: nobody took any while another had it, and no failure was counted twice."""
    await client.fault("none")
    for order_id in placed:
        order = await client.until(order_id, "Processed")
        assert claims_and_recoveries_alternate(order), order["history"]
        assert order["failureCount"] <= events(order).count("recovered")


@pytest.mark.proves("SUP-4", "SUP-5", "SUP-8", "FLT-5")
async def test_one_supervisor_sweeps_until_it_freezes_and_another_takes_over(supervised):
    """Never two by turns; frozen beyond the lease and thawed, the old leader counts nothing twice."""
    stack, client, supervisors = supervised
    placed, first, second = await elected(client, supervisors, MORE)
    stack.pause_host(number_of(stack, first))
    await recovered(client, placed, max(await recoveries(client, placed)) + 1)
    assert await leaders(client, placed) == [workers_of(first), workers_of(second)]
    stack.resume_host(number_of(stack, first))
    await all_were_counted_once(client, placed)


@pytest.mark.proves("SUP-4", "SUP-5", "FLT-5")
async def test_another_supervisor_takes_over_from_one_that_is_killed(supervised):
    """Within the lease, and the time that a recovery takes."""
    stack, client, supervisors = supervised
    placed, first, second = await elected(client, supervisors, MANY)
    await stack.kill_host(number_of(stack, first))
    killed = time.time()
    more = [await client.place() for _ in range(MANY)]
    await recovered(client, more, 1)
    assert time.time() - killed < LEASE_SECONDS + 10
    assert await leaders(client, [*placed, *more]) == [workers_of(first), workers_of(second)]
    await all_were_counted_once(client, [*placed, *more])
