"""Counts what the tests start: a stack costs seconds of CPU, and nobody should start one unawares."""

from collections import Counter
from functools import wraps
from typing import Any

from functions_alone.process import Process
from functions_alone.stack import Stack

STARTED: Counter[str] = Counter()
"""How many of each kind: `stacks`, and the processes that they consist of."""


def count_starts() -> None:
    """Count from now on."""
    _before(Stack, "start", lambda _: "stacks")
    _before(Process, "start", _kind)


def _kind(process: Process) -> str:
    return {"azurite": "Azurites", "broker": "brokers"}.get(process.name, "hosts")


def _before(owner: type, method: str, kind_of: Any) -> None:
    original = getattr(owner, method)

    @wraps(original)
    async def counting(self: Any) -> Any:
        STARTED[kind_of(self)] += 1
        return await original(self)

    setattr(owner, method, counting)
