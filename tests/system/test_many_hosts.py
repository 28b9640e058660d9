"""Several hosts on the same queues: they share the work, and lose nothing when one of them is killed."""

import asyncio
import random

import pytest

from functions_alone.tests.support.waiting import eventually
from tests.support.client import DONE, KILLED, PATIENT, claims_and_recoveries_alternate
from tests.support.inspection import orders_of, poisoned, processed, until_processed
from tests.support.scale import both_sizes
from tests.support.stacks import APP, is_by, running
from tests.support.submitting import submit_new

SETTINGS = PATIENT | {
    **KILLED,
    "STEP_TIMEOUT_SECONDS": "4",
    "FAILURE_THRESHOLD": "1000",
    "SUPERVISOR_SCHEDULE": "*/2 * * * * *",
    "SCHEDULER_POLL_SCHEDULE": "*/2 * * * * *",
}
"""Kills count as failures, and are not held to be lasting here."""
MANY = 300


@pytest.fixture(scope="module")
async def two_hosts(tmp_path_factory):
    """A stack of two hosts or more; a test that kills one starts another."""
    async with running(tmp_path_factory.mktemp("stack"), hosts=2, app=APP, settings=SETTINGS) as (
        stack,
        client,
    ):
        yield stack, client


@pytest.fixture
async def three_hosts(two_hosts):
    """The same with one more."""
    await have_hosts(two_hosts[0], 3)
    return two_hosts


async def have_hosts(stack, number):
    """Start what is missing to so many; more may be there."""
    while len(stack.hosts) < number:
        await stack.start_host()


async def right_at_last(client, orders, actions):
    """Every order was processed, with these effects and no other, and nobody handled it while another did."""
    await until_processed(client, orders)
    for order in await orders_of(client, orders):
        assert claims_and_recoveries_alternate(order), order["history"]
        assert await client.work_items_of(order["orderId"]) == []
    done = await client.all_actions()
    assert {order_id: done[order_id] for order_id in orders} == dict.fromkeys(orders, actions)


@pytest.mark.proves("SCH-2", "WRK-3")
@pytest.mark.soak
@pytest.mark.parametrize(
    "at_once",
    [
        pytest.param(20, id="small", marks=pytest.mark.process_per_function),
        pytest.param(200, id="full"),
    ],
)
async def test_all_three_hosts_take_a_part_of_the_orders(three_hosts, at_once):
    """Whoever starts work finds some: all three claim, though none is told which orders are its own."""
    stack, client = three_hosts
    orders, claimers = [], set()
    assert len(stack.hosts) == 3

    async def all_have_claimed():
        orders.extend(fresh := await submit_new(stack, at_once, workflow="payment-only"))
        await until_processed(client, fresh)
        found = [entry for order in await orders_of(client, fresh) for entry in order["history"]]
        claims = [entry for entry in found if entry["event"] == "claimed"]
        claimers.update(
            host.name for host in stack.hosts if any(is_by(host, claim) for claim in claims)
        )
        all_have_claimed.__name__ = f"all hosts have claimed orders, but only {claimers} have"
        return len(claimers) == 3

    await eventually(all_have_claimed)
    await right_at_last(client, orders, ["authorise"])


@pytest.mark.proves("SCH-2", "SCH-9", "FLT-2", "FLT-3")
@pytest.mark.soak
async def test_three_hosts_process_all_orders_though_one_is_killed(three_hosts):
    """SIGKILL of one in the middle, another is started: all `Processed`, one effect each, never two at one order."""
    stack, client = three_hosts
    placed = await submit_new(stack, MANY, workflow="payment-only")

    async def some_are_processed():
        done = await processed(client, placed)
        some_are_processed.__name__ = f"a quarter of {MANY} orders is processed, but {done} are"
        return done >= MANY // 4

    await eventually(some_are_processed)
    await stack.kill_host()
    await stack.start_host()
    await right_at_last(client, placed, ["authorise"])
    assert await poisoned(stack) == []


@pytest.mark.proves("SCH-9", "AGT-7", "SUP-3", "FLT-2", "FLT-3")
@both_sizes(hosts=(2, 3), kills=(1, 20))
async def test_orders_end_right_when_hosts_are_killed_at_any_moment(two_hosts, hosts, kills):
    """SIGKILL at random moments, a new host each time: every order is processed, with one effect of each step."""
    stack, client = two_hosts
    await have_hosts(stack, hosts)
    orders = []
    for _ in range(kills):
        orders += await asyncio.gather(*(client.place() for _ in range(4)))
        await asyncio.sleep(
            random.uniform(0, 0.4)
        )  # not awaiting anything: the kill has to hit any moment
        await stack.kill_host()
        await stack.start_host()
    await right_at_last(client, orders, DONE)
    assert await poisoned(stack) == []
