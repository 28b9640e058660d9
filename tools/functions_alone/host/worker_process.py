"""A worker process as the host sees it.

It is replaced when it ends or when a function in it takes too long.
"""

import asyncio
import contextlib
import itertools
import logging
import os
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Self

from azure.functions.meta import Datum

from functions_alone.faults import LocalCode, StackFault
from functions_alone.host.channel import ObjectChannel
from functions_alone.host.errors import HostError, InvocationFailed
from functions_alone.host.fork_server import ForkServer
from functions_alone.host.index import AppFunction
from functions_alone.host.outage import longer
from functions_alone.host.outputs import Produced
from functions_alone.host.worker import ENTRY, LOADING

GRACE_SECONDS = 2.0
"""The time between the time limit of a function and the end of its process, as in Azure."""

START_SECONDS = 0.7
"""The time that Azure needs for another process. A fork here takes much less."""

_log = logging.getLogger("functions_alone.host.worker_process")


class WorkerProcess:
    """The process for some functions, which is replaced when it ends.

    `timeout` is the time limit of a function in seconds, or None for no limit. If a process ends by itself within
    `short_life_seconds`, the next one waits.
    """

    def __init__(
        self, *, fork_server: ForkServer, timeout: float | None, short_life_seconds: float
    ) -> None:
        self._fork_server = fork_server
        self._timeout = timeout
        self._short_life_seconds = short_life_seconds
        self._ready = asyncio.Event()
        self._refused = 0
        self._life: Life

    async def start(self) -> Sequence[AppFunction]:
        """Start the first process, and return the functions of the app. Raises `HostError` if that fails."""
        return await self._begin()

    async def keep(self, purpose: str) -> None:
        """Start another process whenever one has ended. The log names the functions there by `purpose`."""
        pause = 0.0
        while True:
            _log.info("worker process %d runs %s", self._life.pid, purpose)
            if self._refused:
                _log.warning("calls refused while there was no process: %d", self._refused)
            self._refused = 0
            began = time.monotonic()
            await self._life.ended.wait()
            how = await self._fork_server.reap(self._life.pid)
            by_itself = not self._life.why_killed
            pause = (
                longer(pause)
                if by_itself and time.monotonic() < began + self._short_life_seconds
                else 0.0
            )
            self._say_why(how, pause)
            await self._replace(max(pause, START_SECONDS))

    async def ready(self) -> None:
        """Wait until there is a process."""
        await self._ready.wait()

    def refuses(self) -> bool:
        """Return whether there is no process for a call at the moment, and count the call."""
        self._refused += not self._ready.is_set()
        return not self._ready.is_set()

    async def call(
        self, function: str, datum: Datum, metadata: Mapping[str, Datum] | None
    ) -> tuple[object, Produced]:
        """Return the function's result, and the values of its outputs.

        If the function takes too long, its process ends. Raises `InvocationFailed`, also if the process ends during
        the call.
        """
        life = self._life
        try:
            async with asyncio.timeout(self._timeout):
                answer: tuple[object, Produced] = await life.ask(function, datum, metadata)
                return answer
        except TimeoutError:
            if not life.ended.is_set():
                await asyncio.sleep(GRACE_SECONDS)
                life.overrun(f"function {function} ran for more than {self._timeout:g} s")
            raise InvocationFailed(function) from None

    async def _begin(self) -> Sequence[AppFunction]:
        pid, connection = await self._fork_server.fork()
        life = await Life.begin(pid, connection, self._ready.clear)
        try:
            functions: Sequence[AppFunction] = await life.loaded
        except HostError as error:
            await self._end(life, str(error))
            raise
        except InvocationFailed as error:
            how = await self._end(life, str(error))
            raise HostError(StackFault(LocalCode.APP_ENDED, ENTRY, {"exit": how})) from error
        self._life = life
        if not life.ended.is_set():
            self._ready.set()
        return functions

    async def _end(self, life: "Life", why: str) -> str:
        """End a process that has not loaded the app. Return how it ended."""
        life.kill(why)
        await life.ended.wait()
        return await self._fork_server.reap(life.pid)

    async def _replace(self, pause: float) -> None:
        while True:
            await asyncio.sleep(pause)
            try:
                await self._begin()
            except HostError as error:
                pause = longer(pause)
                _log.error("no new worker process (next try in %.1f s): %s", pause, error)
            else:
                return

    def _say_why(self, how: str, pause: float) -> None:
        life = self._life
        why = life.why_killed or f"it ended by itself ({how})"
        when = f" in {pause:.1f} s" if pause else ""
        calls = f"calls lost with it: {life.lost}"
        if life.overran and self._timeout is not None:
            until = datetime.fromtimestamp(life.last_call + self._timeout, UTC)
            calls = f"calls that stand still: {life.lost}, the last until {until:%H:%M:%S} UTC"
        _log.error("worker process %d is replaced%s: %s; %s", life.pid, when, why, calls)


class Life:
    """One process, from its fork to its end."""

    def __init__(self, pid: int, on_end: Callable[[], None]) -> None:
        self.pid = pid
        self.loaded: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.ended = asyncio.Event()
        self.why_killed = ""
        self.overran = False
        self.lost = 0
        self.last_call = 0.0
        self._on_end = on_end
        self._channel: ObjectChannel
        self._numbers = itertools.count(LOADING + 1)
        self._calls: dict[int, asyncio.Future[Any]] = {}

    @classmethod
    async def begin(cls, pid: int, connection: socket.socket, on_end: Callable[[], None]) -> Self:
        """Listen to a process that was just forked. `on_end` is called when it can no longer be used."""
        life = cls(pid, on_end)
        life._calls[LOADING] = life.loaded
        life._channel = await ObjectChannel.over(connection, life._answered, life._gone)
        return life

    async def ask(self, function: str, datum: Datum, metadata: Mapping[str, Datum] | None) -> Any:
        """Call a function and wait for the answer, however long that takes."""
        if self.ended.is_set():
            raise InvocationFailed(function)
        number, self.last_call = next(self._numbers), time.time()
        self._calls[number] = answer = asyncio.get_running_loop().create_future()
        self._channel.send((number, function, datum, metadata))
        try:
            return await answer
        finally:
            self._calls.pop(number, None)

    def overrun(self, why: str) -> None:
        """End the process because a function took too long.

        As in Azure, other calls there fail when their own time is up.
        """
        if not self.ended.is_set() and not self.why_killed:
            self.overran = True
        self.kill(why)

    def kill(self, why: str) -> None:
        """End the process with SIGKILL. The first reason counts."""
        if not self.ended.is_set() and not self.why_killed:
            self.why_killed = why
            self._on_end()
            self._end()

    def _end(self) -> None:
        """Kill the process.

        If it has ended, no other process has its id until it is reaped, or until the fork server ends.
        """
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def _answered(self, answer: tuple[int, bool, Any]) -> None:
        number, succeeded, result = answer
        waiting = self._calls.pop(number, None)
        if waiting is None or waiting.done():
            return
        if succeeded:
            waiting.set_result(result)
        else:
            failed = HostError(*result) if number == LOADING else InvocationFailed()
            waiting.set_exception(failed)

    def _gone(self) -> None:
        self._on_end()
        self._end()
        waiting = [call for call in self._calls.values() if not call.done()]
        self.lost = len(waiting)
        self.ended.set()
        if not self.overran:
            for call in waiting:
                call.set_exception(InvocationFailed())
