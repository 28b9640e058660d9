"""What one order of the shop passes through on its happy path: `python -m bench.way` names the functions, and counts.

What is called at the start of a process, by timers, and in the simulated remote services is apart.
"""

import asyncio
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import click

from bench import calls
from bench.driver import running

NEVER = "0 0 0 1 1 *"
SCHEDULES = ("SCHEDULER_POLL_SCHEDULE", "SUPERVISOR_SCHEDULE", "OUTBOX_SCHEDULE", "WATCH_SCHEDULE")
WITHOUT_TIMERS = dict.fromkeys(SCHEDULES, NEVER)
WORKFLOW = "order"
SECONDS = 60.0


async def way(folder: Path) -> list[calls.Called]:
    """Run one order to warm the app up, and another one that is watched; return what the second one passed through."""
    async with running(folder, 1, WORKFLOW, WITHOUT_TIMERS | {calls.SWITCH: "on"}) as driver:
        for begin in (None, calls.begin):
            if begin:
                begin(folder)
            orders = driver.new_orders(1)
            await driver.submit_all(orders)
            if not await driver.wait_for(orders, 1, SECONDS):
                sys.exit("the order was not processed")
    return [each for each in calls.called(folder) if not each[0].startswith("simulator/")]


def main() -> None:
    """Print the functions by module, and how many there are."""
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
