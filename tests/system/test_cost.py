"""What an order costs, counted in the clients' pipelines: so that it cannot creep up unnoticed."""

import math
import os
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from bench.counters import totals
from bench.driver import running

WARM_UP = 5
ONE_BY_ONE = 20
AT_ONCE = 80
SETTINGS = {"STEP_TIMEOUT_SECONDS": "120", "REMOTE_CALL_TIMEOUT_SECONDS": "60"}
"""As long as a slow machine may take: what is tried twice costs twice."""
WITHOUT_POLLS = {"SCHEDULER_POLL_SCHEDULE": "0 0 0 1 1 *"}
"""What a poll finds before its wake-up costs a read more."""

EACH = os.environ.get("LOCAL_FUNCTION_PROCESSES") == "each"


@dataclass(frozen=True)
class Cost:
    """What an order of so many steps, one after the other, costs at most."""

    steps: int

    @property
    def transactions(self):
        """Submitted, claimed, and one for each reply."""
        return 2 + self.steps

    @property
    def entities(self):
        """Order, state, history, agenda; state, history and two of the agenda each time; at the end one of these."""
        return 4 + 4 * self.steps + 3

    @property
    def messages(self):
        """Wake-up, requests, replies."""
        return 1 + 2 * self.steps

    @property
    def reads(self):
        """Each transition but the submission decides on what it has read."""
        return 1 + self.steps


ONE_STEP = Cost(1)
FOUND_BY_POLLS = 1 if EACH else 0.3
"""Of a burst the share that a poll claims, which has a process of its own: no room at first, or a late wake-up."""
IN_VAIN = 1.3 if EACH else 1
"""Processes that look at the same moment take the same orders, and all but the first of them write in vain."""
IN_DOUBT = 0.1 if EACH else 0
"""Of orders that come one by one the share that waits once for a free slot: its process has not heard that it is."""
WORKFLOWS = {"payment-only": ONE_STEP, "in-sequence": Cost(3)}
IDLE_WRITES_PER_SECOND = 3
"""An agent's row, which takes the place of the one before, and every other second that of a sweep."""


@pytest.fixture(scope="module")
async def one_by_one(tmp_path_factory):
    """A running system for orders that come one by one, so that none waits for another."""
    async with warm(tmp_path_factory.mktemp("bench"), SETTINGS | WITHOUT_POLLS) as driver:
        yield driver


@pytest.fixture(scope="module")
async def at_once(tmp_path_factory):
    """A running system for orders that come at once."""
    async with warm(tmp_path_factory.mktemp("bench"), SETTINGS) as driver:
        yield driver


@asynccontextmanager
async def warm(folder, settings):
    """A running system on which every connection is open, and every queue was used once."""
    async with running(folder, 1, "payment-only", settings) as driver:
        orders = driver.new_orders(WARM_UP)
        await driver.submit_all(orders)
        assert len(await driver.wait_for(orders, WARM_UP, 60)) == WARM_UP
        yield driver


@pytest.mark.parametrize("workflow", WORKFLOWS)
async def test_an_order_costs_a_transaction_for_each_step_and_two_more_and_a_read_for_each_but_one(
    one_by_one, workflow
):
    """One by one nothing can be shared."""
    cost, counts, began = WORKFLOWS[workflow], totals(one_by_one.folder), time.monotonic()
    for order_id in one_by_one.new_orders(ONE_BY_ONE):
        await one_by_one.submit(order_id, workflow)
        assert await one_by_one.wait_for([order_id], 1, 60)
    counted = totals(one_by_one.folder) - counts
    idle = math.ceil(IDLE_WRITES_PER_SECOND * cost.steps * (time.monotonic() - began))
    assert (
        cost.transactions * ONE_BY_ONE
        <= counted["table_writes"]
        <= cost.transactions * ONE_BY_ONE + idle
    )
    assert (
        cost.entities * ONE_BY_ONE <= counted["table_entities"] <= cost.entities * ONE_BY_ONE + idle
    )
    assert (
        cost.reads * ONE_BY_ONE
        <= counted["table_loads"]
        <= (1 + IN_DOUBT) * cost.reads * ONE_BY_ONE
    )
    assert counted["table_point_reads"] <= idle  # the watch's look at the last sweep
    assert (
        cost.messages * ONE_BY_ONE
        <= counted["service_bus_messages"]
        <= (1 + IN_DOUBT) * cost.messages * ONE_BY_ONE
    )
    assert counted["remote_calls"] == cost.steps * ONE_BY_ONE
    assert (counted["storage_queue_operations"], counted["event_grid_operations"]) == (0, 0)


async def test_many_orders_share_their_transactions(at_once):
    """At once they cost less than half as many transactions and a third as many sends, and nothing more of the rest."""
    # Of an agent that was idle few requests are open at first, and their replies come one by one.
    before = at_once.new_orders(AT_ONCE)
    await at_once.submit_all(before)
    assert len(await at_once.wait_for(before, AT_ONCE, 120)) == AT_ONCE
    orders = at_once.new_orders(AT_ONCE)
    at_once.stack.pause_host()  # however slow the machine is, they are all there when the host looks
    await at_once.submit_all(orders)
    counts, began = totals(at_once.folder), time.monotonic()
    at_once.stack.resume_host()
    assert len(await at_once.wait_for(orders, AT_ONCE, 120)) == AT_ONCE
    counted = totals(at_once.folder) - counts
    idle = math.ceil(IDLE_WRITES_PER_SECOND * (time.monotonic() - began))
    assert counted["table_writes"] <= IN_VAIN * 1.5 * AT_ONCE + idle
    assert counted["table_entities"] <= IN_VAIN * 1.1 * ONE_STEP.entities * AT_ONCE + idle
    assert counted["table_loads"] <= (ONE_STEP.reads + FOUND_BY_POLLS) * AT_ONCE
    assert counted["table_point_reads"] <= (IN_VAIN - 1) * AT_ONCE + idle
    assert counted["service_bus_sends"] <= ONE_STEP.messages / 3 * AT_ONCE
    assert counted["service_bus_messages"] <= 1.1 * ONE_STEP.messages * AT_ONCE
    assert counted["remote_calls"] <= 1.1 * AT_ONCE
