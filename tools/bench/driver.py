"""The driver: submits orders to a running stack, and reads their results."""

import asyncio
import json
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Container, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

import aiohttp

from bench.counters import marked
from development.stack import AppStack, AppStackConfig
from engine.azure.clock import order_ids, order_time
from engine.azure.connections import Connections
from engine.azure.messaging.queues import StorageQueue
from engine.azure.settings import Settings
from engine.azure.tables.transactions import TableTransactions
from engine.domain.keys import LAST, bucket_of
from engine.domain.messages import Submission
from functions_alone.process import Process

SUBMITTERS = 8
QUIET_SECONDS = 2.0
"""After this long without progress the state rows are read, because a kill may come between a commit and its mark."""
LOOK_SECONDS = 0.05

APP = Path(__file__).parent / "app"
CONTENT: Mapping[str, Any] = {
    "customer": {"name": "Ada", "email": "ada@example.com"},
    "items": [{"sku": "TEA-SENCHA", "quantity": 2, "unitPrice": "14.00"}],
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Final:
    """The state row of an order."""

    state: str
    failures: int
    updated_at: float


class Driver:
    """A run of a stack with its orders."""

    def __init__(self, stack: AppStack, folder: Path, workflow: str) -> None:
        settings = Settings.model_validate(stack.app_environment())
        self.stack = stack
        self.folder = folder
        self._workflow = workflow
        self._connections = Connections(settings)
        self._submissions = StorageQueue(
            cache(partial(self._connections.queue, "order-submissions"))
        )
        self._orders = TableTransactions(cache(partial(self._connections.table, "orders")))
        self._new_id = order_ids(settings.buckets)

    async def close(self) -> None:
        """Close the driver's own connections."""
        await self._connections.close()

    def new_orders(self, count: int) -> list[str]:
        return [self._new_id() for _ in range(count)]

    async def submit(self, order_id: str, workflow: str | None = None) -> None:
        """Put an order on the queue, like the shop. The default workflow is the driver's own."""
        message = Submission(
            schema_version=1,
            order_id=order_id,
            placed_at=order_time(order_id),
            workflow=workflow or self._workflow,
            **CONTENT,
        )
        await self._submissions.put(message.to_json())

    async def submit_all(self, order_ids: Sequence[str]) -> None:
        """Submit orders as fast as a few concurrent submitters can."""
        rest = iter(order_ids)

        async def submitter() -> None:
            for order_id in rest:
                await self.submit(order_id)

        await asyncio.gather(*(submitter() for _ in range(SUBMITTERS)))

    async def wait_for(
        self, order_ids: Iterable[str], count: int, seconds: float
    ) -> Mapping[str, float]:
        """Wait until this many of the orders are processed, or the time is up.

        Returns when each was processed, in Unix seconds.
        """
        wanted, deadline = set(order_ids), time.monotonic() + seconds
        done: dict[str, float] = {}
        known, last_progress = -1, time.monotonic()
        while time.monotonic() < deadline:
            done = self._done(wanted)
            if len(done) >= count:
                break
            if len(done) != known:
                known, last_progress = len(done), time.monotonic()
            elif time.monotonic() - last_progress > QUIET_SECONDS:
                final = await self.final_states(wanted)
                have_ended = len(final) == len(wanted) and all(
                    order.state in ("Processed", "Error") for order in final.values()
                )
                if have_ended and len(self._done(wanted)) == len(done):
                    break  # those that are left have failed
                last_progress = time.monotonic()
            await asyncio.sleep(LOOK_SECONDS)
        return done

    def _done(self, wanted: Container[str]) -> dict[str, float]:
        return {order_id: at for order_id, at in marked(self.folder).items() if order_id in wanted}

    async def final_states(self, order_ids: Iterable[str]) -> dict[str, Final]:
        """Return the state rows, read as one range for each bucket from the first to the last of the orders."""
        by_bucket: dict[str, set[str]] = defaultdict(set)
        for order_id in order_ids:
            by_bucket[bucket_of(order_id)].add(order_id)
        found = [await self._final_in(bucket, wanted) for bucket, wanted in by_bucket.items()]
        return {order_id: final for states in found for order_id, final in states.items()}

    async def _final_in(self, bucket: str, wanted: set[str]) -> dict[str, Final]:
        rows = await self._orders.rows(bucket, min(wanted), max(wanted) + LAST)
        return {row.row["OrderID"]: _final(row.row) for row in rows if row.key.endswith("|state")}

    async def remote_ledger(
        self, order_ids: Iterable[str], service: str = "payment"
    ) -> "RemoteLedger":
        """Return what the simulated service did for these orders."""
        wanted = set(order_ids)
        async with (
            aiohttp.ClientSession(headers={"x-functions-key": self.stack.operator_key}) as http,
            http.get(f"{self.stack.http_url}/simulator/{service}/ledger") as response,
        ):
            ledger: Mapping[str, Any] = json.loads(await response.text())
        effects = [
            (str(effect["idempotencyKey"]), datetime.fromisoformat(effect["at"]).timestamp())
            for effect in ledger["effects"]
            if str(effect["idempotencyKey"]).partition(":")[0] in wanted
        ]
        return RemoteLedger(calls=int(ledger["calls"]), effects=effects)


def _final(row: Mapping[str, Any]) -> Final:
    return Final(
        state=row["ProcessState"],
        failures=row["FailureCount"],
        updated_at=row["UpdatedAt"].timestamp(),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoteLedger:
    """The calls since the start of the stack, and the effects with idempotency key and Unix seconds."""

    calls: int
    effects: list[tuple[str, float]]

    @property
    def keys(self) -> set[str]:
        """The idempotency keys with an effect."""
        return {key for key, _ in self.effects}


class WatchedStack(AppStack):
    """A stack whose hosts count what they do."""

    def _host(self, name: str, fd: int, own: Mapping[str, str], *arguments: str) -> Process:
        command = self._command(name, sys.executable, "-m", "bench.host", *arguments)
        return Process(replace(command, fds=(fd,)))


@asynccontextmanager
async def running(
    folder: Path, hosts: int, workflow: str, settings: Mapping[str, str] | None = None
) -> AsyncIterator[Driver]:
    """Start a new stack with watched hosts. `folder` must be empty."""
    watched = {"BENCH_FOLDER": str(folder), **(settings or {})}
    config = AppStackConfig.for_tests(folder / "stack", hosts=hosts, settings=watched, app=APP)
    async with WatchedStack(config) as stack:
        driver = Driver(stack, folder, workflow)
        try:
            yield driver
        finally:
            await driver.close()
