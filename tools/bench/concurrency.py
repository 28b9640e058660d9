"""Measures how many concurrent HTTP calls an instance can take: `make concurrency`.

One process of the app with its embedded host runs on one core, like an instance of 2 GB on Azure. The stand-ins for
Azure and the callers use the other cores. The tried number of calls is in progress at every moment. The command
prints one JSON line for each number.
"""

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import click
import psutil

from bench.driver import CONTENT
from bench.phases import percentile
from bench.usage import usage
from development.stack import AppStack, AppStackConfig

TRIED = (1, 2, 4, 8, 16, 32, 64, 128)
LONGEST_MS = 500
"""The longest time that a call may wait for all others of its instance.

With it, a page that makes several calls still feels quick.
"""
SLOWER = 2
"""The assumed factor by which a core of Azure is slower than the measured one. It was not measured."""
PURCHASE: Mapping[str, Any] = {
    "customer": CONTENT["customer"],
    "items": [{"sku": "TEA-SENCHA", "quantity": 2}],
}
CALLS: Sequence[tuple[str, str, Mapping[str, Any] | None]] = (
    ("GET", "/api/products", None),
    ("POST", "/api/orders", PURCHASE),
    ("GET", "/api/orders/{order}", None),
    ("GET", "/api/operator/overview", None),
)
"""The calls of customers and operators, in equal parts: no I/O, a queue, a read of rows, several reads."""


def chosen(lines: Sequence[Mapping[str, Any]]) -> int:
    """Return the largest number of calls that one core can finish in time if all arrive at the same moment.

    It is computed from the CPU time of the calls, which does not depend on other users of the machine.
    """
    return max(int(line["at_once"]) for line in lines if _wait_ms(line) <= LONGEST_MS)


def _wait_ms(line: Mapping[str, Any]) -> float:
    return float(line["at_once"] * line["cpu_ms"] * SLOWER)


async def measure(stack: AppStack, at_once: int, seconds: float) -> Mapping[str, Any]:
    """Keep this many calls in progress. Return the rate, the times, and the CPU time of a call."""
    taken: list[float] = []
    headers = {"x-functions-key": stack.operator_key}
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(stack.http_url, headers=headers, connector=connector) as http:
        order = await _place(http)
        used, began = usage(stack), time.monotonic()

        async def caller(first: int) -> None:
            number = first
            while time.monotonic() < began + seconds:
                taken.append(await _call(http, number, order))
                number += 1

        await asyncio.gather(*(caller(first) for first in range(at_once)))
        passed, cpu = time.monotonic() - began, usage(stack).worker - used.worker
    return {
        "at_once": at_once,
        "calls_per_s": round(len(taken) / passed, 1),
        "p50_ms": percentile(taken, 0.5),
        "p95_ms": percentile(taken, 0.95),
        "cpu_ms": round(cpu * 1000 / len(taken), 2),
        "core": round(cpu / passed, 2),
    }


async def _place(http: aiohttp.ClientSession) -> str:
    async with http.post("/api/orders", json=PURCHASE) as answer:
        return str((await answer.json())["orderId"])


async def _call(http: aiohttp.ClientSession, number: int, order: str) -> float:
    """Make the next call. Return its seconds."""
    method, path, body = CALLS[number % len(CALLS)]
    began = time.monotonic()
    async with http.request(method, path.format(order=order), json=body) as answer:
        answer.raise_for_status()
        await answer.read()
    return time.monotonic() - began


def pin(stack: AppStack) -> None:
    """Give the host and its worker the first core, and all other processes of this stack the others."""
    host = psutil.Process(stack.hosts[0].pid)
    for process in (host, *host.children(recursive=True)):
        process.cpu_affinity([0])
    others = list(range(1, psutil.cpu_count() or 1)) or [0]
    for pid in (psutil.Process().pid, stack.azurite.pid, stack.broker.pid):
        psutil.Process(pid).cpu_affinity(others)


async def _measure_all(seconds: float) -> Sequence[Mapping[str, Any]]:
    lines = []
    for at_once in TRIED:
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            async with AppStack(AppStackConfig.for_tests(Path(folder) / "stack")) as stack:
                pin(stack)
                await measure(stack, at_once, seconds / 4)
                line = await measure(stack, at_once, seconds)
        click.echo(json.dumps(line))
        lines.append(line)
    return lines


@click.command()
@click.option("--seconds", type=click.FloatRange(1), default=8.0, show_default=True)
def main(seconds: float) -> None:
    """Measure, and say which number follows."""
    lines = asyncio.run(_measure_all(seconds))
    click.echo(
        f"At most {LONGEST_MS} ms of a core: {chosen(lines)} calls at a time", file=sys.stderr
    )


if __name__ == "__main__":
    main()
