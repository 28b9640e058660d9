"""Stacks of a file's own, for tests that break them."""

import re
from collections.abc import AsyncIterator, Container
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from development.stack import AppStack, AppStackConfig
from functions_alone.process import Process
from tests.support.client import Client

APP = Path(__file__).parents[1] / "system/app"
"""The production app with more workflows."""

FUNCTIONS = (
    *("health_report", "shop_place_order", "shop_order", "shop_products", "submission_record"),
    *("scheduler_order_ready", "scheduler_poll"),
    *(
        "scheduler_payment_responses",
        "scheduler_inventory_responses",
        "scheduler_shipping_responses",
    ),
    *("agent_payment", "agent_inventory", "agent_shipping", "supervisor_sweep"),
    *("alerts_relay", "alerts_record", "operator_order", "operator_overview", "operator_alerts"),
    *("simulator_service_call", "simulator_faults", "simulator_ledger"),
)
"""What takes an order to its end, and what tests ask. It is not all: nothing here needs the stall detector."""


def names(*functions: str, but: Container[str] = ()) -> str:
    """Name functions as a host is told them."""
    return ",".join(name for name in functions if name not in but)


@asynccontextmanager
async def running(folder: Path, **changes: Any) -> AsyncIterator[tuple[AppStack, Client]]:
    """A whole stack, and somebody who uses it."""
    async with AppStack(AppStackConfig.for_tests(folder, **changes)) as stack:
        client = Client(stack)
        try:
            yield stack, client
        finally:
            await client.close()


def number_of(stack: AppStack, host: Process) -> int:
    """Return by which number the stack knows the host now."""
    return stack.hosts.index(host)


def is_by(host: Process, entry: dict[str, Any]) -> bool:
    """Whether a transition in an order's history was made by this host."""
    return pid_of(entry) in workers_of(host)


def workers_of(host: Process) -> list[int]:
    """Return the worker processes that the host has had, oldest first."""
    return [int(pid) for pid in re.findall(r"worker process (\d+) runs", host.output())]


def pid_of(entry: dict[str, Any]) -> int:
    """Return the process that made a transition: the instance in `actor` ends in process id and a random part."""
    return int(entry["actor"].rsplit("-", 2)[1])
