"""*Upgrade and back* of `docs/operations/deploy.md`, with two versions of the app and orders in flight."""

import asyncio
import os
import re
import shlex
import sys
from pathlib import Path

import pytest

from functions_alone.tests.support.waiting import eventually
from tests.support.client import DONE, KILLED, QUICK, claims_and_recoveries_alternate
from tests.support.inspection import orders_of, poisoned, states_of, until_processed
from tests.support.stacks import running

ROOT = Path(__file__).parents[2]
NEXT = Path(__file__).parent / "app_next"
CHAPTER = (
    (ROOT / "docs/operations/deploy.md")
    .read_text()
    .split("## Upgrade and back")[1]
    .split("\n## ")[0]
)
SETTINGS = QUICK | {
    **KILLED,
    "STEP_TIMEOUT_SECONDS": "5",
    "FAILURE_THRESHOLD": "1000",
    "MIXED_VERSION_SECONDS": "3600",
    "AzureFunctionsJobHost__extensions__queues__visibilityTimeout": "00:00:01",
}
SLOW = "TEA-ROOIBOS"
"""What is ordered while the bank hangs: these orders are in flight when the version changes."""
WITH_GIFT = sorted([*DONE, "reserve"])
"""What happens for an order of the next version, which has one step more."""
HOSTS = 2
GRACE = {"operator": "grace", "note": "until the upgrade is done"}


async def recreated(stack, app):
    """All instances are ended in the middle of their work, and others of the new version begin."""
    for _ in range(HOSTS):
        await stack.kill_host()
    for _ in range(HOSTS):
        await stack.start_host(app=app)


async def rolled(stack, app):
    """The others begin first; then each old instance ends when it has done what it began."""
    for _ in range(HOSTS):
        await stack.start_host(app=app)
    for _ in range(HOSTS):
        await stack.stop_host()


async def in_flight(client):
    """Orders whose payment hangs."""
    orders = [await client.place(SLOW) for _ in range(4)]
    for order_id in orders:
        await client.until(order_id, "Processing")
    return orders


async def run_commands_of(stack, step):
    """Run each command that a step of the chapter names for operators; all of them end well."""
    text = re.search(
        rf"^\d\. \*\*{step}\.\*\*(.*?)(?=^\d\. |\n\n)", CHAPTER, re.MULTILINE | re.DOTALL
    )[1]
    commands = re.findall(r"`operators ([^`]+)`", " ".join(text.split()))
    assert commands, step
    key = {"OPERATOR_URL": stack.http_url, "OPERATOR_KEY": stack.operator_key}
    for command in commands:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "operations",
            *shlex.split(command),
            cwd=ROOT,
            env=os.environ | key,
        )
        assert await process.wait() == 0, command


async def act(client, action, orders):
    """Do it to each of the orders."""
    for order_id in orders:
        path = f"/api/operator/orders/{order_id}/{action}"
        status, answer = await client.request("POST", path, json=GRACE)
        assert status == 202, answer


async def all_are_written_by_next(client, orders):
    """Whether the states have the column that only the next version knows, and the old one carries along."""
    states = await states_of(client, orders)
    return all(state.get("Colour") == "green" for state in states.values())


async def is_left_to_newer(client, order_id):
    """Whether operators read that the order waits for a newer version of the app."""
    _, answer = await client.request("GET", f"/api/operator/orders/{order_id}/explain")
    return "a newer version of the app" in str(answer)


@pytest.mark.soak
@pytest.mark.proves("FLT-12")
@pytest.mark.parametrize("replace_all", [recreated, rolled])
async def test_an_upgrade_and_the_way_back_lose_nothing_and_do_nothing_twice(tmp_path, replace_all):
    """Each order goes on in the version on which it began; what only the newer one knows waits for it."""
    async with running(tmp_path, hosts=HOSTS, settings=SETTINGS) as (stack, client):
        await run_commands_of(stack, "Before")
        await client.fault("hang", SLOW)
        of_old, held = await in_flight(client), await in_flight(client)
        await act(client, "hold", held)

        await replace_all(stack, NEXT)

        await client.fault("none", SLOW)
        await until_processed(client, of_old)
        await act(client, "expedite", held)
        await run_commands_of(stack, "After")
        await client.fault("hang", SLOW)
        of_new = await in_flight(client)

        await replace_all(stack, None)

        since = [await client.place() for _ in range(3)]
        await client.fault("none", SLOW)
        await act(client, "release", held)
        await until_processed(client, [*since, *held])
        assert await all_are_written_by_next(client, held)
        for order_id in of_new:
            await eventually(lambda order_id=order_id: is_left_to_newer(client, order_id))

        await replace_all(stack, NEXT)

        await until_processed(client, of_new)
        for order in await orders_of(client, [*of_old, *held, *of_new, *since]):
            wanted = WITH_GIFT if order["orderId"] in of_new else DONE
            assert await client.actions(order["orderId"]) == wanted
            assert claims_and_recoveries_alternate(order), order["history"]
        assert await poisoned(stack) == []
