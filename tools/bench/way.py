"""Lists the functions that one order of the shop passes through on its happy path: `make way`.

Calls at the start of a process, by timers, and once a second for all orders are left out. The remote services are a
server in this script.
"""

import asyncio
import sys
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import click
from aiohttp import web

from bench import calls
from bench.driver import running
from shop.business import SHOP

SCHEDULES = (
    "SCHEDULER_POLL_SCHEDULE", "SUPERVISOR_SCHEDULE", "OUTBOX_SCHEDULE", "STALL_DETECTOR_SCHEDULE", "NOTIFY_SCHEDULE",
)  # fmt: skip
NEVER = "0 0 0 1 1 *"
ONCE_A_SECOND = ("engine/storage/agent_health.py",)
"""Calls that an agent makes at most once a second, together with its next order."""
WORKFLOW = "order"
SECONDS = 60.0
SLOW_SECONDS = 1.0


@asynccontextmanager
async def remote_services() -> AsyncIterator[str]:
    """Serve a service that accepts everything. Yields its address.

    One service is slow. Otherwise it would be random whether two simultaneous replies conflict.
    """

    async def answer(request: web.Request) -> web.Response:
        if request.match_info["operation"] == "authorise":
            await asyncio.sleep(SLOW_SECONDS)
        return web.json_response({"reference": "r-1", "amount": "28.00"})

    app = web.Application()
    app.router.add_post("/{operation}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        yield f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


async def way(folder: Path) -> list[calls.Called]:
    """Run one order to warm the app up, and watch a second one. Return the functions that the second order calls."""
    async with remote_services() as address:
        settings = dict.fromkeys(SCHEDULES, NEVER) | {
            agent.address: address for agent in SHOP.agents
        }
        async with running(
            folder, 1, WORKFLOW, {**settings, "SIMULATOR_ENABLED": "false", calls.SWITCH: "on"}
        ) as driver:
            for watched in (False, True):
                if watched:
                    calls.begin(folder)
                orders = driver.new_orders(1)
                await driver.submit_all(orders)
                if not await driver.wait_for(orders, 1, SECONDS):
                    sys.exit("the order was not processed")
    return [call for call in calls.called(folder) if call[0] not in ONCE_A_SECOND]


def main() -> None:
    """Print the functions by module, and their number."""
    with tempfile.TemporaryDirectory() as folder:
        passed = asyncio.run(way(Path(folder)))
    modules: dict[str, list[str]] = defaultdict(list)
    for module, function in passed:
        modules[module].append(function)
    for module in sorted(modules):
        click.echo(f"{module}: {', '.join(modules[module])}")
    click.echo(f"{len(modules)} modules, {len(passed)} functions")


if __name__ == "__main__":
    main()
