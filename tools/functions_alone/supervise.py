"""Restarts processes that end: at once the first time, later if they keep ending, and without limit."""

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
"""The longest pause before a restart.

The obstacle may disappear at any moment, and then somebody waits for the end of the pause.
"""


class Supervisor:
    """Keeps any number of processes running.

    `say` gets a line for each end and each start that fails. `changed` is called after each end and each start. If a
    process ends again within `short_life_seconds`, it is started after a pause.
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
        """Restart a running process whenever it ends."""
        self._watchers[process] = asyncio.create_task(
            self._restart_when_it_ends(process), name=process.name
        )

    async def leave_alone(self, process: Process) -> None:
        """Stop restarting a process."""
        if watcher := self._watchers.pop(process, None):
            watcher.cancel()
            await asyncio.wait([watcher])

    async def stop(self) -> None:
        """Stop restarting all processes."""
        for process in list(self._watchers):
            await self.leave_alone(process)

    async def until_it_fails(self, stopped: asyncio.Task[Any]) -> None:
        """Wait for `stopped`. Raises `StackError` if a process would no longer be restarted."""
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
    """A whole that is started, kept and stopped together."""

    async def start(self) -> None:
        """Start all of it. Raises `StackError` if that fails."""

    async def until_it_fails(self, stopped: asyncio.Task[Any]) -> None:
        """Wait for `stopped`. Raises `StackError` if the whole cannot go on."""

    async def stop(self) -> None:
        """Stop everything that was started."""


def _nothing() -> None: ...


async def until_signal(
    whole: Runnable, ready: Callable[[], None], stopping: Callable[[], None] = _nothing
) -> None:
    """Run until Ctrl-C, SIGTERM or a closed terminal, which also count during the start.

    `ready` is called once the start is complete, and `stopping` before a stop that a signal requested. Raises
    `StackError` if the whole cannot run.
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
