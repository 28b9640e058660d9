"""A function that runs longer than functionTimeout ends its worker process, and with it whatever ran there."""

import asyncio
from functools import partial

import pytest

from functions_alone.tests.support.waiting import eventually
from tests.support.client import DONE, PATIENT, claims_and_recoveries_alternate
from tests.support.inspection import orders_of, poisoned, until_processed
from tests.support.stacks import FUNCTIONS, names, running

SETTINGS = PATIENT | {
    "STEP_TIMEOUT_SECONDS": "60",
    "REMOTE_CALL_TIMEOUT_SECONDS": "50",
    "AzureFunctionsJobHost__functionTimeout": "00:00:04",
}
"""An agent would wait for its service for much longer than its function may run."""


@pytest.mark.proves("SCH-9", "AGT-7", "FLT-2")
@pytest.mark.soak
@pytest.mark.parametrize("count", [100])
async def test_an_order_whose_function_overruns_takes_no_other_with_it(tmp_path, count):
    """One service call hangs: its neighbours lose the process again and again, and all end with one effect each."""
    async with running(tmp_path, functions=names(*FUNCTIONS), settings=SETTINGS) as (stack, client):
        await client.fault("hang", "TEA-ROOIBOS", latencyMs=30_000)
        orders = [await eventually(partial(client.place, "TEA-ROOIBOS"))]
        orders += await asyncio.gather(*(eventually(client.place) for _ in range(count)))

        async def the_agent_overran():
            return "function agent_payment ran for more than 4 s" in stack.hosts[0].output()

        async def the_service_is_well():
            await client.fault("none", "TEA-ROOIBOS")
            return True

        await eventually(the_agent_overran)
        await eventually(the_service_is_well)
        await until_processed(client, orders)
        for order in await orders_of(client, orders):
            assert claims_and_recoveries_alternate(order), order["history"]
        done = await client.all_actions()
        assert {order_id: done[order_id] for order_id in orders} == dict.fromkeys(orders, DONE)
        assert await poisoned(stack) == []
