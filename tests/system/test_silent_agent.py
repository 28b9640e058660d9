"""An agent that is switched off, and what becomes of the orders that need it."""

import pytest

from functions_alone.tests.support.waiting import eventually
from tests.support.client import QUICK
from tests.support.inspection import orders_of, states_of, until_processed
from tests.support.stacks import APP, FUNCTIONS, names, running
from tests.support.submitting import submit_new

pytestmark = pytest.mark.soak

ORDERS = 30
FIRST = 3
"""Requests to an agent of which nothing is known."""
MOST_ATTEMPTS = 30
"""Of all orders together in `MAX_SILENCE_SECONDS`: with pauses that grow, few probe requests fit."""
SETTINGS = QUICK | {"CIRCUIT_ORDERS": str(FIRST), "MAX_SILENCE_SECONDS": "40"}


@pytest.mark.proves("SUP-9", "SUP-10")
async def test_orders_whose_agent_is_switched_off_end_and_go_on_once_it_works(tmp_path):
    """Few requests go out, no order is undone, and each is processed after a resubmit."""
    functions = names(*FUNCTIONS, "operator_resubmit", but={"agent_payment"})
    async with running(tmp_path, app=APP, functions=functions, settings=SETTINGS) as (
        stack,
        client,
    ):
        order_ids = await submit_new(stack, ORDERS, workflow="payment-only")

        async def all_ended():
            states = await states_of(client, order_ids)
            ended = [row for row in states.values() if row["ProcessState"] == "Error"]
            all_ended.__name__ = f"all orders are in Error, but {len(ended)} of {ORDERS} are"
            return len(ended) == ORDERS

        await eventually(all_ended)
        orders = await orders_of(client, order_ids)
        assert {order["outcome"] for order in orders} == {"failed"}
        assert sum(order["steps"][0]["attempts"] for order in orders) <= MOST_ATTEMPTS
        assert {order["failureCount"] for order in orders} == {0}

        await stack.start_host("agent_payment")
        for order_id in order_ids:
            await client.resubmit(order_id)
        await until_processed(client, order_ids)
        effects = await client.all_actions()
        assert [effects[order_id] for order_id in order_ids] == [["authorise"]] * ORDERS
