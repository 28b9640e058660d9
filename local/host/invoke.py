"""One call of a function: async ones on the loop, the others in a thread; failures are logged once, here."""

import asyncio
import contextvars
import logging
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from inspect import iscoroutinefunction
from typing import Any

from local.host.errors import InvocationFailed
from local.host.index import Function

_log = logging.getLogger("local.host.invoke")


@dataclass(frozen=True, kw_only=True)
class Context:
    """What a function gets that asks for a parameter named `context`; a new id for each call."""

    function_name: str
    invocation_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    function_directory: str = "."
    # Azure has no retry policies for these triggers, and no trace reaches this host.
    trace_context: None = None
    retry_context: None = None


class Invoker:
    """Calls functions; `timeout` in seconds is host.json's functionTimeout, None for no limit."""

    def __init__(self, *, timeout: float | None, threads: int | None) -> None:
        self._timeout = timeout
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="function")

    def prepare(self, function: Function) -> "Call":
        """Work out once, not for each message, how a function is called."""
        return Call(function=function, run=self._runner(function), timeout=self._timeout)

    def close(self) -> None:
        """Let go of the threads; one that still runs is not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _runner(self, function: Function) -> Callable[..., Any]:
        if iscoroutinefunction(function.handler):
            return function.handler
        return partial(self._in_thread, function.handler)

    async def _in_thread(self, handler: Callable[..., Any], **arguments: object) -> object:
        run = partial(contextvars.copy_context().run, handler, **arguments)
        return await asyncio.get_running_loop().run_in_executor(self._pool, run)


class Call:
    """A function, ready to be called."""

    def __init__(self, *, function: Function, run: Callable[..., Any], timeout: float | None) -> None:
        self.function = function
        self._run = run
        self._timeout = timeout

    async def __call__(self, argument: object) -> object:
        """Return what the function returns; raises `InvocationFailed` once the failure is logged."""
        name = self.function.name
        arguments = {self.function.argument: argument}
        if self.function.takes_context:
            arguments["context"] = Context(function_name=name)
        try:
            async with asyncio.timeout(self._timeout):
                result: object = await self._run(**arguments)
        except Exception as error:
            _log.exception("function %s failed", name)
            raise InvocationFailed(name) from error
        _log.debug("function %s succeeded", name)
        return result

    async def succeeds(self, argument: object) -> bool:
        """Tell whether the call returned; for triggers that have no use for what it returns."""
        try:
            await self(argument)
        except InvocationFailed:
            return False
        return True
