"""Starts processes again whenever they end: at once the first time, ever later if they keep ending, with no last try."""

import asyncio
import math
import signal
import time
from collections.abc import Callable
from typing import Any, Protocol

from functions_alone.faults import LocalCode, StackFault
from functions_alone.host.settings import SHORT_LIFE_SECONDS
from functions_alone.ports import StackError
from functions_alone.process import Process

LONGEST_PAUSE_SECONDS = 2.0
"""What keeps a process from starting may pass at any moment, and then somebody waits for this pause to end."""


class Supervisor:
    """Keeps any number of processes; `say` gets a line for each end and each start that fails.

    `changed` is called after each end and each start. A process that ends again within `short_life_seconds` is
    started after a pause.
    """

    def __init__(
        self,
        say: Callable[[str], None],
        changed: Callable[[], None] = lambda: None,
        short_life_seconds: float = SHORT_LIFE_SECONDS,
    ) -> None:
        self._say = say
        self._short_life_seconds = short_life_seconds
        self._changed = changed
        self._watchers: dict[Process, asyncio.Task[None]] = {}

    def keep(self, process: Process) -> None:
        """Start a process, which runs now, again whenever it ends."""
        self._watchers[process] = asyncio.create_task(
            self._restart_when_it_ends(process), name=process.name
        )

    async def leave_alone(self, process: Process) -> None:
        """Do not start a process again when it ends."""
        if watcher := self._watchers.pop(process, None):
            watcher.cancel()
            await asyncio.wait([watcher])

    async def stop(self) -> None:
        """Leave all alone."""
        for process in list(self._watchers):
            await self.leave_alone(process)

    async def until_it_fails(self, stopped: asyncio.Task[Any]) -> None:
        """Wait for `stopped`; raises `StackError` when a process would not be started again any more."""
        while not stopped.done():
            done, _ = await asyncio.wait(
                {stopped, *self._watchers.values()}, return_when=asyncio.FIRST_COMPLETED
            )
            for watcher in done - {stopped}:
                reason = {"reason": repr(watcher.exception())}
                raise StackError(
                    StackFault(LocalCode.PART_NOT_SUPERVISED, watcher.get_name(), reason)
                )

    async def _restart_when_it_ends(self, process: Process) -> None:
        pause, began = 0.0, -math.inf
        while True:
            await process.ended()
            self._changed()
            lived = time.monotonic() - began
            pause = (
                min(max(2 * pause, 0.5), LONGEST_PAUSE_SECONDS)
                if lived < self._short_life_seconds
                else 0.0
            )
            when = f" in {pause:.1f} s" if pause else ""
            why = f"{process.how_it_ended}, see {process.log}"
            self._say(f"{process.name} ended unexpectedly; starting it again{when} ({why})")
            await asyncio.sleep(pause)
            began = time.monotonic()
            try:
                await process.start()
            except Exception as error:  # noqa: BLE001 - whatever keeps it from starting may pass
                self._say(f"{process.name} cannot be started: {error}")
            self._changed()


class Runnable(Protocol):
    """What is started, kept and stopped as a whole."""

    async def start(self) -> None:
        """Start all of it; raises `StackError`."""

    async def until_it_fails(self, stopped: asyncio.Task[Any]) -> None:
        """Wait for `stopped`; raises `StackError` when it cannot go on."""

    async def stop(self) -> None:
        """Stop what was started."""


def _nothing() -> None: ...


async def until_signal(
    whole: Runnable, ready: Callable[[], None], stopping: Callable[[], None] = _nothing
) -> None:
    """Run it until Ctrl-C, SIGTERM or a closed terminal, also while it starts; raises `StackError`.

    `ready` is called once it has started, and `stopping` before it stops because it was told to.
    """
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    starting = asyncio.create_task(whole.start())
    stopped = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait([starting, stopped], return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
            ready()
            await whole.until_it_fails(stopped)
        stopping()
    finally:
        starting.cancel()
        stopped.cancel()
        await asyncio.wait([starting, stopped])
        await whole.stop()
