"""Azurite or the broker goes away under load and comes back: nothing that was accepted is lost."""

import asyncio
from functools import partial

import pytest
from client import DONE, PATIENT, claims_and_recoveries_alternate, eventually
from inspection import all_processed, poisoned, processed

OUTAGE_SECONDS = 15


@pytest.mark.parametrize("what", ["azurite", "broker"])
@pytest.mark.proves("FLT-7", "FLT-8", "SUB-4")
async def test_nothing_is_lost_while_a_dependency_is_away(own_stack, what):
    """Stopped under load and started again after a while: every accepted order is processed, nothing is poisoned."""
    stack, client = await own_stack(settings=PATIENT, in_memory=False)
    accepted: list[str] = []
    ending = asyncio.Event()

    async def keep_placing():
        while not ending.is_set():
            body = {
                "customer": {"name": "Ada", "email": "ada@example.com"},
                "items": [{"sku": "POT-GLASS", "quantity": 1}],
            }
            status, answer = await client.request("POST", "/api/orders", key=False, json=body)
            assert status in (202, 503), answer
            if status == 202:
                accepted.append(answer["orderId"])
            await asyncio.sleep(0.1)  # the load: ten orders a second, not a wait for anything

    load = asyncio.create_task(keep_placing())

    async def some_are_processed():
        return await processed(client, list(accepted)) >= 10

    await eventually(some_are_processed)
    await getattr(stack, f"stop_{what}")()
    await asyncio.sleep(OUTAGE_SECONDS)  # the outage itself
    await getattr(stack, f"start_{what}")()
    before = len(accepted)

    async def accepts_again():
        return len(accepted) >= before + 10

    await eventually(accepts_again, 30)
    ending.set()
    await load

    await eventually(partial(all_processed, client, accepted), 60)
    assert await poisoned(stack) == []
    for order in await asyncio.gather(*map(client.order, accepted)):
        assert claims_and_recoveries_alternate(order), order["history"]
    actions = await client.all_actions()
    assert {order_id for order_id in accepted if actions[order_id] != DONE} == set()
