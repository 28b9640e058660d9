"""The shipped app on ports in memory, with a clock that a test controls."""

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache, partial
from typing import Any, TypeVar

from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from bootstrap.engine import build_engine
from bootstrap.operations import Operations
from engine.azure import Adapters
from engine.azure.settings import Settings
from engine.declarations.business import Application
from engine.domain.keys import time_of
from engine.domain.messages import (
    SCHEDULER_REQUESTS,
    AgentRequest,
    BusMessage,
    decode,
    requests_queue,
    responses_queue,
)
from engine.domain.work_index import WorkItemKind
from engine.storage.poison import Arrival
from engine.storage.tables import ETags, Operation
from testkit.loop import HeldLoop
from testkit.memory import MemoryBus, MemoryEventPublisher, MemoryTable, in_memory, of_columns
from testkit.services import Services

T = TypeVar("T")

EVERY = timedelta(seconds=15)
"""The interval of all timers while anything is due."""

AT_LEAST_EVERY = timedelta(hours=1)
"""The interval of all timers while nothing is due. A stall alert may be late by this time."""

TIMED = "|".join(
    (
        WorkItemKind.PENDING,
        WorkItemKind.RUNNING,
        WorkItemKind.WAITING,
        WorkItemKind.DEADLINE,
        WorkItemKind.OUTBOX,
    )
)
DUE_AT = re.compile(rf"(?:{TIMED})\|.*?(\d{{4}}-[^|]*Z)")
"""The row keys in the work index that a timer checks, with their time."""


class HeldSettings(Settings):
    """Settings that do not read the environment."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid", validate_by_name=True)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        *_: PydanticBaseSettingsSource,
        **__: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the only source: the arguments of the test."""
        return (init_settings,)


def settings_for(business: Application, more: Mapping[str, Any]) -> Settings:
    """Return the settings of a test environment: those of a deployment, changed by `more`."""
    never = "by the clock of the test"
    return HeldSettings.model_validate(
        {
            "event_grid_endpoint": "https://in.memory",
            "supervisor_schedule": never,
            "scheduler_poll_schedule": never,
            "outbox_schedule": never,
            "stall_detector_schedule": never,
            "notify_schedule": never,
            "instance_id": "test",
            "public_url": "https://in.memory",
            "addresses": {agent.name: "https://in.memory" for agent in business.agents},
            **more,
        }
    )


class OrdersTable(MemoryTable):
    """A table in memory that signals each write."""

    def __init__(self) -> None:
        super().__init__(of_columns().as_stored)
        self.written = asyncio.Event()

    async def submit(self, partition: str, operations: Sequence[Operation]) -> ETags:
        etags = await super().submit(partition, operations)
        self.written.set()
        return etags

    def due(self) -> datetime | None:
        """Return the time of the first work item that a timer checks. None if there is none."""
        keys = (key for rows in self.partitions.values() for key in rows)
        times = [found[1] for key in keys if (found := DUE_AT.match(key))]
        return time_of(min(times)) if times else None


class DeliveringBus(MemoryBus):
    """A bus in memory that delivers each message to its receiver, in the order of sending."""

    def __init__(self, deliver: Callable[[BusMessage], None]) -> None:
        super().__init__()
        self._deliver = deliver

    async def send(self, messages: Sequence[BusMessage]) -> None:
        await super().send(messages)
        for message in messages:
            self._deliver(message)


class AppWorld:
    """An instance of the app with its services and timers. It stands still unless it is run."""

    def __init__(
        self,
        business: Application,
        begins: datetime,
        settings: Mapping[str, Any],
        function_settings: Mapping[str, str] | None = None,
    ) -> None:
        self.loop = HeldLoop(begins)
        self.orders = OrdersTable()
        self.events = MemoryEventPublisher()
        self.services = Services(business, self.loop.now, function_settings)
        self._settings = settings
        self._parts = self._parts_in_memory()
        self._install(business)
        self._failures: list[Exception] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._dice = random.Random(1).getstate()  # noqa: S311 - pauses, and nothing secret
        self._start(self._timers())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do work, and everything that follows from it without time passing. Return its result."""
        with self._same_dice():
            result = self.loop.run(work)
        self._raise_failures()
        return result

    def advance(self, time: timedelta) -> None:
        """Advance the time, with everything that happens meanwhile."""
        with self._same_dice():
            self.loop.run_until(self.loop.now() + time)
        self._raise_failures()

    def upgrade(self, business: Application) -> None:
        """Run another version of the app from now on. Raises `DeclarationError`."""
        self.services.upgrade(business)
        self._install(business)

    def _install(self, business: Application) -> None:
        """Make the app, and connect its roles."""
        parts = replace(self._parts, services=self.services.by_agent())
        self.engine = build_engine(settings_for(business, self._settings), business, parts)
        self.operations = Operations(self.engine)
        self.agents = {agent.name: self.engine.agent(agent) for agent in self.engine.agents}
        self._receivers = dict(self._receivers_of_all())

    async def cancel(self, order_id: str) -> None:
        """Cancel an order as its customer."""
        order = await self.engine.customers.find(order_id)
        workflow = None if isinstance(order, datetime) else order.workflow
        endpoint = next(
            (
                candidate
                for candidate in self.engine.business.endpoints
                if candidate.workflow == workflow
            ),
            None,
        )
        if endpoint is None:
            raise LookupError(f"the workflow {workflow} has no endpoint")
        await self.engine.customers.cancel(endpoint, order_id)

    def end(self) -> None:
        self.loop.end()

    def _parts_in_memory(self) -> Adapters:
        numbers = iter(range(10**9))
        parts = in_memory(
            clock=self.loop.now,
            new_id=lambda: f"{next(numbers):026}",
            new_callback_token=lambda: f"right-{next(numbers):016}",
        )
        other_tables = cache(lambda _: of_columns())
        return replace(
            parts,
            table=lambda name: self.orders if name == "orders" else other_tables(name),
            bus=DeliveringBus(lambda message: self._start(self._receive(message))),
            events=self.events,
        )

    # Messages

    def _receivers_of_all(self) -> Iterator[tuple[str, Callable[[BusMessage], Awaitable[None]]]]:
        """Yield the queues between the roles, with the receivers of their messages."""
        yield SCHEDULER_REQUESTS, self._wake
        for name in self.agents:
            yield requests_queue(name), partial(self._ask, name)
            yield responses_queue(name), partial(self._reply, name)

    async def _receive(self, message: BusMessage) -> None:
        """Deliver a message to its receiver at its time. Notifications have no receiver."""
        if message.not_before is not None:
            await asyncio.sleep((message.not_before - self.loop.now()).total_seconds())
        if receiver := self._receivers.get(message.queue):
            await receiver(message)

    async def _wake(self, message: BusMessage) -> None:
        arrival = Arrival(at=self.loop.now())
        inbox = self.engine.inbox
        await inbox.on_order_ready("test", message.body.encode(), message.correlation_id, arrival)

    async def _ask(self, agent: str, message: BusMessage) -> None:
        await self.agents[agent].handle(decode(AgentRequest, message.body))

    async def _reply(self, agent: str, message: BusMessage) -> None:
        arrival = Arrival(at=self.loop.now())
        await self.engine.inbox.receive(
            "test", agent, message.body.encode(), message.correlation_id, arrival
        )

    # Timers

    async def _timers(self) -> None:
        """Run all timers, one after another, whenever something is due for one of them."""
        while True:
            await self._until_due()
            for timer in (
                self.engine.supervisor.sweep,
                self.engine.scheduler.poll,
                self.operations.relay.relay,
                self.operations.stall_detector.check,
            ):
                await timer()

    async def _until_due(self) -> None:
        """Sleep until something is due or was written, and for at least one interval."""
        self.orders.written.clear()
        latest = self.loop.now() + AT_LEAST_EVERY
        pause = min(latest, self.orders.due() or latest) - self.loop.now() - EVERY
        with suppress(TimeoutError):
            async with asyncio.timeout(pause.total_seconds()):
                await self.orders.written.wait()
        await asyncio.sleep(EVERY.total_seconds())

    # All that is under way

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Record a failure for the test. Shipped code never lets one pass."""
        self._tasks.discard(task)
        failure = None if task.cancelled() else task.exception()
        if isinstance(failure, Exception):
            self._failures.append(failure)

    def _raise_failures(self) -> None:
        failures, self._failures = self._failures, []
        if failures:
            raise ExceptionGroup("the app failed", failures)

    @contextmanager
    def _same_dice(self) -> Iterator[None]:
        """Use the same random pauses between calls in each run."""
        outside = random.getstate()
        random.setstate(self._dice)
        try:
            yield
        finally:
            self._dice = random.getstate()
            random.setstate(outside)
