"""Calls of functions, each in its worker process."""

import asyncio
import logging
from collections.abc import Mapping, Sequence

from azure.functions.meta import Datum

from functions_alone.host.errors import InvocationFailed
from functions_alone.host.fork_server import ForkServer
from functions_alone.host.index import AppFunction, HttpTrigger
from functions_alone.host.outputs import Produced, send
from functions_alone.host.vital import vital
from functions_alone.host.worker_process import WorkerProcess

ALL = "all functions"
HTTP = "the HTTP functions"
REFUSED_SECONDS = 0.035
"""The time of a delivery on Azure while there is no worker process. It uses up one of the message's tries."""

_log = logging.getLogger("functions_alone.host.invoke")


class Invoker:
    """The worker processes of a host.

    There is one process, or as in Flex Consumption one for HTTP and one for each other function. `timeout` is
    host.json's functionTimeout in seconds, or None for no limit. `short_life_seconds` is that of `WorkerProcess`.
    `in_base64` says whether messages to Storage Queues are encoded.
    """

    def __init__(
        self,
        *,
        timeout: float | None,
        short_life_seconds: float,
        process_per_function: bool,
        in_base64: bool = True,
    ) -> None:
        self._timeout = timeout
        self._short_life_seconds = short_life_seconds
        self._in_base64 = in_base64
        self._process_per_function = process_per_function
        self._workers: dict[str, WorkerProcess] = {}
        self._keepers: list[asyncio.Task[None]] = []

    async def start(
        self, fork_server: ForkServer, group: asyncio.TaskGroup
    ) -> Sequence[AppFunction]:
        """Start the processes, and return the functions of the app. Raises `HostError` if they cannot start.

        A process that ends is replaced. If that fails, the task group ends.
        """
        first = self._worker(fork_server)
        functions = await first.start()
        purposes = list(dict.fromkeys(map(self._purpose, functions))) or [ALL]
        self._workers = {purpose: self._worker(fork_server) for purpose in purposes}
        self._workers[purposes[0]] = first
        await asyncio.gather(*(self._workers[purpose].start() for purpose in purposes[1:]))
        for purpose, worker in self._workers.items():
            keeping = vital(f"what keeps a worker process for {purpose}", worker.keep(purpose))
            self._keepers.append(group.create_task(keeping))
        return functions

    def _worker(self, fork_server: ForkServer) -> WorkerProcess:
        return WorkerProcess(
            fork_server=fork_server,
            timeout=self._timeout,
            short_life_seconds=self._short_life_seconds,
        )

    def stop(self) -> None:
        """Stop replacing processes."""
        for keeper in self._keepers:
            keeper.cancel()

    def prepare(self, function: AppFunction) -> "FunctionCall":
        worker = self._workers[self._purpose(function)]
        return FunctionCall(function=function, worker=worker, in_base64=self._in_base64)

    def _purpose(self, function: AppFunction) -> str:
        if not self._process_per_function:
            return ALL
        return HTTP if isinstance(function.trigger, HttpTrigger) else function.name


class FunctionCall:
    """A function, ready to be called."""

    def __init__(
        self, *, function: AppFunction, worker: WorkerProcess, in_base64: bool = True
    ) -> None:
        self.function = function
        self._worker = worker
        self._in_base64 = in_base64

    async def __call__(self, datum: Datum, metadata: Mapping[str, Datum] | None) -> object:
        """Return the function's result for its trigger's data.

        Raises `InvocationFailed`, which is already logged.
        """
        name = self.function.name
        result, values = await self._worker.call(name, datum, metadata)
        if values:
            await self._send(values)
        _log.debug("function %s succeeded", name)
        return result

    async def _send(self, values: Produced) -> None:
        try:
            await send(self.function.outputs, values, in_base64=self._in_base64)
        except Exception as error:
            _log.exception("function %s: its outputs cannot be sent", self.function.name)
            raise InvocationFailed(self.function.name) from error

    async def possible(self) -> None:
        """Wait until the function has a process, which may have to be replaced first."""
        await self._worker.ready()

    async def succeeds(self, datum: Datum, metadata: Mapping[str, Datum] | None) -> bool:
        """Return whether the call returned, for triggers that do not use its result.

        As in Azure, the call fails at once while there is no worker process.
        """
        if self._worker.refuses():
            await asyncio.sleep(REFUSED_SECONDS)
            return False
        try:
            await self(datum, metadata)
        except InvocationFailed:
            return False
        return True
