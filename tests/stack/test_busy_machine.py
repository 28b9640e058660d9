"""What `make run` starts, while others keep the machine busy."""

import asyncio
import os
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import aiohttp
import pytest

from functions_alone.ports import Ports
from functions_alone.tests.support.waiting import eventually
from tests.support.client import SERVICES
from tests.support.reading import follow
from tests.support.scale import NIGHTLY

ROOT = Path(__file__).parents[2]
OUTSIDE = ROOT / "tests/support/outside.py"
BUSY_LOOPS = 3
LOOPS_OF_A_CORE = 4
AT_ONCE = 60
KEY = {"x-functions-key": "a-key"}
TEA = {
    "customer": {"name": "Ada", "email": "ada@example.com"},
    "items": [{"sku": "TEA-SENCHA", "quantity": 2}],
}


@contextmanager
def beside(*commands, **options):
    """Run these Python commands as processes that are killed at the end."""
    processes = [subprocess.Popen([sys.executable, *command], **options) for command in commands]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def busy_loops(number, **options):
    return beside(*[("-c", "while True: pass")] * number, **options)


@pytest.mark.soak
@pytest.mark.alone
@pytest.mark.parametrize("run", range(1, 4 if NIGHTLY else 2))
async def test_the_walk_through_works_as_written_beside_busy_loops(start_runner, run):
    """Steps get the time that the machine needs, so none of it fails because of the others."""
    with busy_loops(BUSY_LOOPS):
        runner = await start_runner()
        await runner.until_it_says("Ctrl-C stops everything")
        listening = asyncio.create_task(runner.listen())
        try:
            await follow(ROOT / "README.md", runner.ports.http_port, cwd=ROOT)
        finally:  # whoever cleans up reads the output too
            runner.process.terminate()
            await listening
        assert "ended unexpectedly" not in runner.output
    assert await runner.process.wait() == 0, runner.output


@pytest.mark.soak
@pytest.mark.alone
@pytest.mark.parametrize("services", ["simulated", "outside"])
async def test_a_busy_machine_fails_no_order(start_runner, services):
    """Sixty orders at once end well beside four busy processes for each core, as no service is broken (load 1).

    No failure is counted of any of them.
    Each of those is a session of its own, to which Linux gives as much of the processor as to the whole stack.
    """
    port = Ports.free().http_port
    at = {f"{service.upper()}_URL": f"http://127.0.0.1:{port}" for service in SERVICES}
    loops = LOOPS_OF_A_CORE * (os.cpu_count() or 1)
    with (
        beside((str(OUTSIDE), str(port)), start_new_session=True),
        busy_loops(loops, start_new_session=True),
    ):
        more = at if services == "outside" else {}
        runner = await start_runner(OPERATOR_KEY=KEY["x-functions-key"], **more)
        await runner.until_it_says("Ctrl-C stops everything")
        listening = asyncio.create_task(runner.listen())
        address = f"http://127.0.0.1:{runner.ports.http_port}"
        async with aiohttp.ClientSession(address, headers=KEY) as shop:
            placed = await asyncio.gather(*(place(shop) for _ in range(AT_ONCE)))
            ends = [await eventually(partial(end_of, shop, order_id)) for order_id in placed]
        runner.process.terminate()
        await listening
    assert Counter(ends) == {("Processed", 0): AT_ONCE}, runner.output


async def place(shop):
    """Place an order; return its id."""
    async with shop.post("/api/orders", json=TEA) as response:
        assert response.status == 202, await response.text()
        return (await response.json())["orderId"]


async def end_of(shop, order_id):
    """Return the state in which the order has ended and its failures; None as long as it has not."""
    async with shop.get(f"/api/operator/orders/{order_id}") as response:
        found = await response.json() if response.status == 200 else {"processState": None}
    state = found["processState"]
    return (state, found["failureCount"]) if state in ("Processed", "Error") else None
