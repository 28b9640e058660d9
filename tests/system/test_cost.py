"""What an order costs, counted in the clients' pipelines: so that it cannot creep up unnoticed."""

import os
import time
from contextlib import asynccontextmanager
from math import ceil

import pytest

from bench.cost import IDLE_WRITES_PER_SECOND, Cost
from bench.counters import totals
from bench.driver import running

WARM_UP = 5
ONE_BY_ONE = 20
AT_ONCE = 80
SETTINGS = {"STEP_TIMEOUT_SECONDS": "120", "REMOTE_CALL_TIMEOUT_SECONDS": "60"}
"""As long as a slow machine may take: what is tried twice costs twice."""
WITHOUT_POLLS = {"SCHEDULER_POLL_SCHEDULE": "0 0 0 1 1 *"}
"""What a poll finds before its wake-up costs a read more."""

PER_FUNCTION = os.environ.get("LOCAL_FUNCTION_PROCESSES") == "each"


ONE_STEP = Cost(steps=1, process_per_function=PER_FUNCTION)
FOUND_BY_POLLS = 1 if PER_FUNCTION else 0.3
"""Of a burst the share that a poll claims, which has a process of its own: no room at first, or a late wake-up."""
IN_VAIN = 1.3 if PER_FUNCTION else 1
"""Processes that look at the same moment take the same orders, and all but the first of them write in vain."""
WORKFLOWS = {
    "payment-only": ONE_STEP,
    "in-sequence": Cost(steps=3, process_per_function=PER_FUNCTION),
}
CHANCES = 3
"""How often it is measured: of a machine that stands still for longer than a client waits the client asks twice."""


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


@pytest.mark.soak
@pytest.mark.process_per_function
@pytest.mark.parametrize("workflow", WORKFLOWS)
async def test_an_order_costs_a_transaction_for_every_step_and_two_more(one_by_one, workflow):
    """One by one nothing can be shared; what the own process has written is read by nobody."""
    assert not await _too_much(_alone, one_by_one, workflow)


@pytest.mark.soak
@pytest.mark.process_per_function
async def test_many_orders_share_their_transactions(at_once):
    """At once they cost less than half as many transactions and a third as many sends, and nothing more of the rest."""
    # Of an agent that was idle few requests are open at first, and their replies come one by one.
    before = at_once.new_orders(AT_ONCE)
    await at_once.submit_all(before)
    assert len(await at_once.wait_for(before, AT_ONCE, 120)) == AT_ONCE
    assert not await _too_much(_together, at_once)


async def _too_much(measure, *arguments):
    """Measure until no count is above its limit, or the chances are used up; return those that are, at last.

    `measure` returns the counts, and the least and the most of each. Nothing that happens to a machine makes an order
    cost less, or uses what it does not need: that holds each time.
    """
    for _ in range(CHANCES):
        counted, limits = await measure(*arguments)
        wrong = {
            name: (least, counted[name], most)
            for name, (least, most) in limits.items()
            if not least <= counted[name] <= most
        }
        by_accident = {name: counts for name, counts in wrong.items() if counts[1] > counts[2] > 0}
        assert wrong == by_accident
        if not wrong:
            break
        print("least, counted and most:", wrong)
    return wrong


async def _alone(driver, workflow):
    """Let orders go through the workflow one by one."""
    cost, counts, began = WORKFLOWS[workflow], totals(driver.folder), time.monotonic()
    for order_id in driver.new_orders(ONE_BY_ONE):
        await driver.submit(order_id, workflow)
        assert await driver.wait_for([order_id], 1, 60)
    counted, seconds = totals(driver.folder) - counts, time.monotonic() - began
    idle = ceil(IDLE_WRITES_PER_SECOND * cost.steps * seconds)
    return counted, {
        **cost.limits(ONE_BY_ONE, seconds),
        "table_point_reads": (0, idle),  # the stall detector's look at the last sweep
        "remote_calls": (cost.steps * ONE_BY_ONE, cost.steps * ONE_BY_ONE),
        "storage_queue_operations": (0, 0),
        "event_grid_operations": (0, 0),
    }


async def _together(driver):
    """Let many orders be there when the host looks, however slow the machine is."""
    orders = driver.new_orders(AT_ONCE)
    driver.stack.pause_host()
    await driver.submit_all(orders)
    counts, began = totals(driver.folder), time.monotonic()
    driver.stack.resume_host()
    assert len(await driver.wait_for(orders, AT_ONCE, 120)) == AT_ONCE
    counted = totals(driver.folder) - counts
    idle = ceil(IDLE_WRITES_PER_SECOND * (time.monotonic() - began))
    return counted, {
        "table_writes": (0, IN_VAIN * 1.5 * AT_ONCE + idle),
        "table_entities": (0, IN_VAIN * 1.1 * ONE_STEP.entities * AT_ONCE + idle),
        "table_loads": (0, (ONE_STEP.reads + FOUND_BY_POLLS) * AT_ONCE),
        "table_point_reads": (0, (IN_VAIN - 1) * AT_ONCE + idle),
        "service_bus_sends": (0, ONE_STEP.messages / 3 * AT_ONCE),
        "service_bus_messages": (0, 1.1 * ONE_STEP.messages * AT_ONCE),
        "remote_calls": (0, 1.1 * AT_ONCE),
    }
