"""What an order costs, counted in the clients' pipelines: so that it cannot creep up unnoticed."""

import asyncio
import math
import os
import time

import pytest

import workflows
from bench.counters import totals
from bench.driver import running

WARM_UP = 10
ONE_BY_ONE = 20
AT_ONCE = 80
SETTINGS = {
    "ALLOWANCE_SECONDS": "120",
    "REMOTE_CALL_TIMEOUT_SECONDS": "60",
    "SCHEDULER_POLL_SCHEDULE": "0 0 0 1 1 *",
}
"""What is tried twice on a slow machine would cost twice, and so would an order that a poll finds before its wake-up."""

ENTITIES_OF_AN_ORDER = 14
"""Submitted: order, state, step, history, agenda. Claimed: state, step, history, two of the agenda. Processed: four."""
MESSAGES_OF_AN_ORDER = 3
"""Wake-up, request, reply."""
READS_OF_AN_ORDER = 2 if os.environ.get("LOCAL_FUNCTION_PROCESSES") == "each" else 0
"""A process knows what it wrote itself: where each function has its own, the claim reads the order, and the reply."""
IDLE_WRITES_PER_SECOND = 2
"""An agent's measure."""
ONCE = len(workflows.ALL.all)
"""What each workflow is, kept when the app starts for the first time."""


@pytest.fixture(scope="module")
async def driver(tmp_path_factory):
    """A running system on which every connection is open, and every queue was used once."""
    async with running(tmp_path_factory.mktemp("bench"), 1, "payment-only", SETTINGS) as driver:
        orders = driver.new_orders(WARM_UP)
        await driver.submit_all(orders)
        assert len(await driver.wait_for(orders, WARM_UP, 60)) == WARM_UP
        yield driver


async def test_an_order_costs_three_transactions_and_no_read(driver):
    """One by one nothing can be shared: three writes, three messages, one remote call, and no order is read."""
    counts, began = totals(driver.folder), time.monotonic()
    for order_id in driver.new_orders(ONE_BY_ONE):
        await driver.submit(order_id)
        assert await driver.wait_for([order_id], 1, 60)
    counted = totals(driver.folder) - counts
    idle = math.ceil(IDLE_WRITES_PER_SECOND * (time.monotonic() - began)) + ONCE
    assert 3 * ONE_BY_ONE <= counted["table_writes"] <= 3 * ONE_BY_ONE + idle
    assert ENTITIES_OF_AN_ORDER * ONE_BY_ONE <= counted["table_entities"] <= ENTITIES_OF_AN_ORDER * ONE_BY_ONE + idle
    assert counted["table_loads"] == READS_OF_AN_ORDER * ONE_BY_ONE
    assert counted["table_point_reads"] <= idle  # the watch's look at the last sweep
    assert counted["service_bus_messages"] == MESSAGES_OF_AN_ORDER * ONE_BY_ONE
    assert counted["remote_calls"] == ONE_BY_ONE
    assert (counted["storage_queue_operations"], counted["event_grid_operations"]) == (0, 0)


async def test_many_orders_share_their_transactions(driver):
    """At once they cost less than half as many transactions and a third as many sends, and nothing more of the rest."""
    orders = driver.new_orders(AT_ONCE)
    counts, began = totals(driver.folder), time.monotonic()
    submitting = asyncio.create_task(driver.submit_all(orders))
    assert len(await driver.wait_for(orders, AT_ONCE, 120)) == AT_ONCE
    await submitting
    counted = totals(driver.folder) - counts
    idle = math.ceil(IDLE_WRITES_PER_SECOND * (time.monotonic() - began))
    assert counted["table_writes"] <= 1.5 * AT_ONCE + idle
    assert counted["table_entities"] <= 1.1 * ENTITIES_OF_AN_ORDER * AT_ONCE + idle
    assert (
        counted["table_loads"] <= (READS_OF_AN_ORDER + 0.3) * AT_ONCE
    )  # where a poll was quicker than a wake-up that came late
    assert counted["table_point_reads"] <= idle
    assert counted["service_bus_sends"] <= MESSAGES_OF_AN_ORDER / 3 * AT_ONCE
    assert counted["service_bus_messages"] <= 1.1 * MESSAGES_OF_AN_ORDER * AT_ONCE
    assert counted["remote_calls"] <= 1.1 * AT_ONCE
