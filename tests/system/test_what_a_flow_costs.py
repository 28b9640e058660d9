"""What it costs that a business is written as functions, beside what an order costs on the running stack."""

import time
from datetime import UTC, datetime

import pytest
from stacks import running
from submitting import new_order_id, submit
from waiting import eventually

from bench.usage import usage
from core.orders import Order
from local.business import named

BUSINESS = "examples.claims.business:CLAIMS"
ORDERS, WARM_UP, CALLS = 200, 20, 2000


def microseconds(work):
    """CPU time of one call: the least of several series, since others use the machine too."""
    series = []
    for _ in range(7):
        began = time.process_time_ns()
        for _ in range(CALLS):
            work()
        series.append((time.process_time_ns() - began) / CALLS / 1000)
    return min(series)


def of_requests(business):
    """What all requests of a sample order cost, from the recorded payload and the answers of other steps."""
    order = Order(
        order_id=new_order_id(),
        placed_at=datetime(2026, 1, 31, tzinfo=UTC),
        payload=business.sample.payload,
    )
    steps = business.workflows.latest(business.default_workflow).steps
    results = {step.name: dict.fromkeys(step.result_fields, "r-1") for step in steps}
    return sum(microseconds(lambda step=step: step.request(order, results)) for step in steps)


async def done(stack, client, business, count):
    """Submit so many orders, and wait until nothing is under way."""
    await submit(stack, *(new_order_id() for _ in range(count)), payload=business.sample.payload)

    async def all_over():
        _, seen = await client.request("GET", "/api/operator/overview")
        assert not seen["waiting"]["order-submissions"]
        assert not any(each["count"] for each in seen["openOrders"].values())
        return True

    await eventually(all_over)


@pytest.mark.soak
async def test_requests_made_by_functions_cost_at_most_a_hundredth_of_an_order(tmp_path):
    """With models on both sides, and not counted what the same requests would cost that are written by hand."""
    business, app = named(BUSINESS)
    async with running(tmp_path, app=app, agents=business.agents) as (stack, client):
        await done(stack, client, business, WARM_UP)
        before = usage(stack).worker
        await done(stack, client, business, ORDERS)
        order = (usage(stack).worker - before) / ORDERS * 1_000_000
    requests = of_requests(business)
    print(f"an order: {order:.0f} µs of CPU; its requests: {requests:.0f} µs")
    assert requests <= order / 100
