"""Calls of functions, each in the worker process that is there for it."""

import asyncio
import logging
from collections.abc import Mapping, Sequence

from azure.functions.meta import Datum

from local.host.errors import InvocationFailed
from local.host.fork_server import ForkServer
from local.host.index import Function, HttpTrigger
from local.host.worker_process import WorkerProcess

ALL = "all functions"
HTTP = "the HTTP functions"

_log = logging.getLogger("local.host.invoke")


class Invoker:
    """The worker processes of a host: one, or as in Flex Consumption one for HTTP and one for each other function.

    `timeout` in seconds is host.json's functionTimeout, None for no limit.
    """

    def __init__(self, *, timeout: float | None, process_for_each: bool) -> None:
        self._timeout = timeout
        self._process_for_each = process_for_each
        self._workers: dict[str, WorkerProcess] = {}

    async def start(self, fork_server: ForkServer) -> Sequence[Function]:
        """Start the processes; returns what functions the app has. Raises `HostError`."""
        first = WorkerProcess(fork_server=fork_server, timeout=self._timeout)
        functions = await first.start()
        groups = list(dict.fromkeys(map(self._group, functions))) or [ALL]
        self._workers = {group: WorkerProcess(fork_server=fork_server, timeout=self._timeout) for group in groups}
        self._workers[groups[0]] = first
        await asyncio.gather(*(self._workers[group].start() for group in groups[1:]))
        for group, worker in self._workers.items():
            worker.keep(group)
        return functions

    def prepare(self, function: Function) -> "Call":
        """Return what calls a function."""
        return Call(function=function, worker=self._workers[self._group(function)])

    def _group(self, function: Function) -> str:
        if not self._process_for_each:
            return ALL
        return HTTP if isinstance(function.trigger, HttpTrigger) else function.name


class Call:
    """A function, ready to be called."""

    def __init__(self, *, function: Function, worker: WorkerProcess) -> None:
        self.function = function
        self._worker = worker

    async def __call__(self, datum: Datum, metadata: Mapping[str, Datum] | None) -> object:
        """Return what the function returns, given its trigger's data; raises `InvocationFailed`, already logged."""
        name = self.function.name
        result = await self._worker.call(name, datum, metadata)
        _log.debug("function %s succeeded", name)
        return result

    async def succeeds(self, datum: Datum, metadata: Mapping[str, Datum] | None) -> bool:
        """Tell whether the call returned; for triggers that have no use for what it returns."""
        try:
            await self(datum, metadata)
        except InvocationFailed:
            return False
        return True
