"""What it costs that a business is written as functions and models, side by side with the same one by hand."""

import gc
import statistics
import time

import pytest

from bench.usage import usage
from development.business import named
from functions_alone.tests.support.waiting import eventually
from testkit import Trial
from tests.support.by_hand import CLAIMS_BY_HAND, STORM
from tests.support.inspection import processed
from tests.support.stacks import running
from tests.support.submitting import submit_new

NAME = "samples.claims.business:CLAIMS"
CLAIMS = named(NAME)
ROUNDS, ORDERS = 10, 60
ON_THE_STACK, WARM_UP = 200, 20


def microseconds(trial):
    """The CPU time of one order, from its submission to its end."""
    began = time.process_time_ns()
    order = trial.submit(STORM)
    took = time.process_time_ns() - began
    assert order.state == "Processed"
    return took / 1000


@pytest.fixture
def more():
    """How much more CPU time an order takes than by hand: the median of many pairs, one after the other."""
    pairs = []
    for _ in range(ROUNDS):
        by_hand, flow = Trial(CLAIMS_BY_HAND), Trial(CLAIMS)
        gc.collect()
        gc.disable()
        pairs += [(microseconds(by_hand), microseconds(flow)) for _ in range(ORDERS)]
        gc.enable()
    difference = statistics.median(flow - by_hand for by_hand, flow in pairs)
    in_memory = statistics.median(by_hand for by_hand, _ in pairs)
    print(f"in memory {in_memory:.0f} µs by hand, and {difference:.0f} µs more as a flow")
    return difference


async def done(stack, client, count):
    """Submit so many claims, and wait until all are processed."""
    orders = await submit_new(stack, count, payload=STORM)

    async def all_are():
        return await processed(client, orders) == count

    await eventually(all_are)


@pytest.mark.soak
@pytest.mark.alone
async def test_a_flow_costs_at_most_a_hundredth_of_an_order(more, tmp_path):
    """Of what the worker of the running system takes for one; in memory nothing is sent to a store or a bus."""
    async with running(tmp_path, business=NAME, agents=CLAIMS.agents) as (stack, client):
        await done(stack, client, WARM_UP)
        before = usage(stack).worker
        await done(stack, client, ON_THE_STACK)
        order = (usage(stack).worker - before) / ON_THE_STACK * 1_000_000
    print(f"an order takes {order:.0f} µs, of which {more:.0f} µs because it is a flow")
    assert more <= order / 100
