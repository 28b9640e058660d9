"""A service that takes calls and never answers, for one order and for a hundred of them."""

import json

import pytest

from engine.decisions.step_kinds import MAX_OVERLOADED_ATTEMPTS
from functions_alone.tests.support.waiting import eventually
from tests.support.client import QUICK
from tests.support.inspection import orders_of, states_of, unfinished
from tests.support.stacks import APP, FUNCTIONS, names, running
from tests.support.submitting import submit_new

pytestmark = pytest.mark.soak
"""`tests/app/test_hanging_services.py` has the same in virtual time, with a circuit that opens."""

THRESHOLD = 2
MAX_UNBEGUN = 12
"""The usual number of requests that no agent begins before a step is given up (SUP-9)."""
SETTINGS = QUICK | {
    "FAILURE_THRESHOLD": str(THRESHOLD),
    "STEP_TIMEOUT_SECONDS": "1.5",
    "REMOTE_CALL_TIMEOUT_SECONDS": "0.4",
    "MAX_RETRY_PAUSE_SECONDS": "3",
}
"""Circuits stay closed: an open one would let one call in five minutes through."""


@pytest.fixture
async def stack_of_payments(tmp_path):
    async with running(tmp_path, app=APP, functions=names(*FUNCTIONS), settings=SETTINGS) as (
        stack,
        client,
    ):
        yield stack, client


@pytest.mark.proves("SUP-3", "AGT-8", "FLT-1")
@pytest.mark.parametrize("orders", [1, 100])
async def test_orders_whose_service_hangs_end_after_their_attempts(stack_of_payments, orders):
    """One is charged for each attempt; of a hundred, the first time-outs are the agent's, and the others are charged.

    Few are tried at a time while nothing is answered, so a hundred take some minutes.
    """
    stack, client = stack_of_payments
    await client.fault("hang")
    order_ids = await submit_new(stack, orders, workflow="payment-only")

    seen = 0

    async def something_happens():
        versions = [row["Version"] for row in (await states_of(client, order_ids)).values()]
        return sum(versions) > seen and sum(versions)

    while await unfinished(client, order_ids) or not seen:
        seen = await eventually(something_happens)
    ended = await orders_of(client, order_ids)
    assert {order["failureCount"] for order in ended} == {THRESHOLD}
    attempts = [order["steps"][0]["attempts"] for order in ended]
    blamed = [await blamed_of(client, order_id) for order_id in order_ids]
    most = THRESHOLD if orders == 1 else THRESHOLD + MAX_OVERLOADED_ATTEMPTS
    assert max(blamed) <= most, blamed
    assert max(attempts) <= most + MAX_UNBEGUN, attempts
    print(f"{sum(attempts)} attempts in all, up to {max(attempts)} of an order")


async def blamed_of(client, order_id):
    """How many attempts of an order were charged to it, or to its agent.

    Others are nobody's: no agent began them, or the reply to the first one may have waited.
    """
    rows = await client.rows_of(order_id)
    entries = [
        json.loads(row["Data"]) for key, row in rows.items() if "|history|" in key and "Data" in row
    ]
    expired = [event for events in entries for event in events if event["event"] == "expired"]
    return sum("failure" in event or event["isOverloaded"] for event in expired)
