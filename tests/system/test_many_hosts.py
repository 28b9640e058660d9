"""Several hosts on the same queues: they share the work, and take over from each other."""

import asyncio
import time
from functools import partial
from pathlib import Path

import pytest
from client import PATIENT, QUICK, Client, claims_and_recoveries_alternate, events, eventually
from inspection import all_processed, poisoned, processed, states_of
from submitting import new_order_id, submit

ROOT = Path(__file__).parents[2]
ORDERS = 300
LEASE_SECONDS = 15
"""The shortest that Azure takes."""
SWEEP_SECONDS = 1
SLACK_SECONDS = 25
"""For a machine that other tests share."""
ROLES_WITHOUT_SUPERVISOR = (
    "health_report,shop_place_order,shop_order,shop_products,submission_record,scheduler_wake,scheduler_poll,"
    "scheduler_payment_responses,scheduler_inventory_responses,scheduler_shipping_responses,"
    "agent_payment,agent_inventory,agent_shipping,alerts_relay,alerts_record,operator_order,simulator_call,"
    "simulator_faults,simulator_ledger"
)


@pytest.mark.proves("SCH-2", "SCH-9", "FLT-2", "FLT-3", "WRK-3")
async def test_three_hosts_process_three_hundred_orders_though_one_is_killed(own_stack):
    """SIGKILL of one in the middle, another is started: all `Processed`, one effect each, never two at one order."""
    stack, client = await own_stack(hosts=3, settings=PATIENT)
    orders = [new_order_id() for _ in range(ORDERS)]
    await submit(stack, *orders, workflow="payment-only")

    async def some_are_processed():
        return await processed(client, orders) >= ORDERS // 4

    await eventually(some_are_processed, 90)
    await stack.kill_host()
    await stack.start_host()

    await eventually(partial(all_processed, client, orders), 120)
    assert await poisoned(stack) == []
    for order in await asyncio.gather(*map(client.order, orders)):
        assert claims_and_recoveries_alternate(order), order["history"]
    assert await client.all_actions() == {order_id: ["authorise"] for order_id in orders}


@pytest.mark.proves("WRK-3", "SCH-1")
async def test_orders_go_on_where_each_function_runs_on_a_host_of_its_own(own_stack):
    """As Azure's Flex plan does it: who gets the replies has claimed nothing, and who claims hears of no reply."""
    # Polls that come so seldom would alone take two minutes for 300 orders.
    settings = PATIENT | {"SCHEDULER_POLL_SCHEDULE": "*/20 * * * * *", "MOST_OPEN_REQUESTS": "50"}
    alone = ("scheduler_poll", "scheduler_payment_responses")
    others = ",".join(name for name in ROLES_WITHOUT_SUPERVISOR.split(",") if name not in alone)
    stack, client = await own_stack(functions=f"{others},supervisor_sweep", settings=settings)
    for name in alone:
        await stack.start_host(name)
    orders = [new_order_id() for _ in range(ORDERS)]
    await submit(stack, *orders, workflow="payment-only")
    await eventually(partial(all_processed, client, orders), 70)


@pytest.mark.proves("FLT-12")
async def test_old_and_new_hosts_work_side_by_side(own_stack):
    """Orders on a workflow that only the new ones know are none of the old one's business, and are processed."""
    stack, client = await own_stack(app=Path(__file__).parent / "app", settings=PATIENT)
    old = "scheduler_wake,scheduler_poll,scheduler_inventory_responses,scheduler_payment_responses,supervisor_sweep"
    await stack.start_host(old, app=ROOT)
    new, both = [new_order_id() for _ in range(30)], [new_order_id() for _ in range(30)]
    await submit(stack, *new, workflow="restock")
    await submit(stack, *both, workflow="payment-only")
    await eventually(partial(all_processed, client, [*new, *both]), 60)
    assert await poisoned(stack) == []
    orders = await asyncio.gather(*map(client.order, new))
    assert {order["failureCount"] for order in orders} == {0}


class Supervised:
    """A stack with one host for all roles but the supervisor, and hosts that are supervisors only."""

    def __init__(self, stack, client: Client) -> None:
        self.stack = stack
        self.client = client

    async def hang(self, count: int) -> list[str]:
        """Place orders whose payment never answers, and wait until all are claimed."""
        await self.client.fault("hang", latencyMs=30_000)
        orders = await asyncio.gather(*(self.client.place() for _ in range(count)))

        async def all_run():
            states = await states_of(self.client, orders)
            return len(states) == count and all(row["Version"] > 1 for row in states.values())

        await eventually(all_run, 40)
        return list(orders)

    async def sweeper(self, orders: list[str]) -> int:
        """Wait for the first recovery; return the process id of the supervisor that made it."""

        async def recovered():
            for order in await asyncio.gather(*map(self.client.order, orders)):
                for entry in order["history"]:
                    if entry["event"] == "recovered":
                        return int(entry["actor"].rsplit("-", 2)[1])
            return 0

        return await eventually(recovered, LEASE_SECONDS + 15)

    def number_of(self, pid: int) -> int:
        return next(number for number, host in enumerate(self.stack.hosts) if host.pid == pid)

    async def swept_again_after(self, orders: list[str], since: float) -> float:
        """Wait until every order was recovered after this time; return how long the last of them took, in seconds."""

        async def all_failed():
            states = await states_of(self.client, orders)
            return min(row["FailureCount"] for row in states.values()) >= 1

        await eventually(all_failed, LEASE_SECONDS + 30)
        return time.time() - since


@pytest.mark.proves("SUP-4", "SUP-5", "SUP-8", "FLT-5")
async def test_another_supervisor_takes_over_from_one_that_is_killed_or_frozen(own_stack):
    """Within lease time and interval; frozen beyond the lease and thawed, the old leader counts nothing twice."""
    settings = QUICK | {"FAILURE_THRESHOLD": "1000"}
    stack, client = await own_stack(functions=ROLES_WITHOUT_SUPERVISOR, settings=settings)
    supervised = Supervised(stack, client)
    for _ in range(2):
        await stack.start_host("supervisor_sweep")
    orders = await supervised.hang(20)
    leader = await supervised.sweeper(orders)
    await stack.kill_host(supervised.number_of(leader))
    killed = time.time()
    more = await supervised.hang(10)
    assert await supervised.swept_again_after(more, killed) < LEASE_SECONDS + SWEEP_SECONDS + SLACK_SECONDS

    leader = await supervised.sweeper(more)
    await stack.start_host("supervisor_sweep")
    frozen = supervised.number_of(leader)
    stack.pause_host(frozen)
    others = await supervised.hang(10)
    assert leader != await supervised.sweeper(others)
    stack.resume_host(frozen)
    await client.fault("none")
    for order_id in [*orders, *more, *others]:
        order = await client.until(order_id, "Processed", seconds=40)
        assert claims_and_recoveries_alternate(order), order["history"]
        assert events(order).count("recovered") == order["failureCount"]
