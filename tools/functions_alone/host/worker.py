"""The code of a worker process: it loads the app, and runs functions when the host asks for it."""

import asyncio
import contextvars
import gc
import importlib
import io
import logging
import os
import socket
import sys
import traceback
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from inspect import iscoroutinefunction
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from azure.functions.decorators.function_app import FunctionRegister
from azure.functions.meta import Datum

from functions_alone.faults import LocalCode, StackFault
from functions_alone.host.channel import ObjectChannel
from functions_alone.host.debugger import listen_if_set
from functions_alone.host.errors import HostError
from functions_alone.host.http_answer import http_answer
from functions_alone.host.index import (
    RETURNED,
    AppFunction,
    HttpTrigger,
    IndexedFunction,
    index_functions,
)
from functions_alone.host.outputs import Out, produced
from functions_alone.host.settings import AppSettings

LOADING = 0
"""The number of the answer with the functions, or with the faults if the app could not be loaded."""
ENTRY = "function_app.py"

_log = logging.getLogger("functions_alone.host.worker")


@dataclass(kw_only=True)
class Context:
    """One invocation. A function gets it if it has a parameter named `context`."""

    function_name: str
    invocation_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    function_directory: str = "."
    # Nothing with a retry policy is started, and no trace reaches this host.
    trace_context: None = None
    retry_context: None = None
    running: bool = True


_invocation: contextvars.ContextVar[Context] = contextvars.ContextVar("invocation")


def main(app_dir: Path, only: frozenset[str] | None, connection: socket.socket) -> NoReturn:
    """Serve until the host is gone. As in Azure, nothing is tidied up at the end."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # what is left at the end is lost
    for handler in logging.getLogger().handlers:
        handler.addFilter(_is_in_time)
    try:
        asyncio.new_event_loop().run_until_complete(_serve(app_dir, only, connection))
    except SystemExit as error:
        os._exit(error.code if isinstance(error.code, int) else 1)
    os._exit(0)


def _is_in_time(_: logging.LogRecord) -> bool:
    """Return whether a line comes before its invocation ends. Azure drops lines that come later."""
    invocation = _invocation.get(None)
    return invocation is None or invocation.running


async def _serve(app_dir: Path, only: frozenset[str] | None, connection: socket.socket) -> None:
    worker = Worker()
    channel = await ObjectChannel.over(connection, worker.received, lambda: os._exit(0))
    gc.disable()  # what an app loads stays: looking through it for garbage takes an eighth of the start
    channel.send((LOADING, *_load(worker, app_dir, only)))
    gc.freeze()
    gc.enable()
    worker.channel = channel
    await asyncio.Event().wait()


def _load(worker: "Worker", app_dir: Path, only: frozenset[str] | None) -> tuple[bool, object]:
    try:
        listen_if_set(os.environ)
        app = find_app(import_app(app_dir))
        functions = index_functions(app.get_functions(), AppSettings(values=os.environ), only)
    except HostError as error:
        return False, error.faults
    except Exception as error:  # noqa: BLE001 - whatever an app does when it is imported
        traceback.print_exc()
        return False, [StackFault(LocalCode.APP_FAILED, ENTRY, {"error": type(error).__name__})]
    worker.functions = {function.name: function for function in functions}
    return True, [
        AppFunction(name=function.name, trigger=function.trigger, outputs=function.outputs)
        for function in functions
    ]


class Worker:
    """Runs async functions on the event loop and others in a thread. Failures are logged once, here."""

    channel: ObjectChannel

    def __init__(self) -> None:
        self.functions: Mapping[str, IndexedFunction] = {}
        threads = os.environ.get("PYTHON_THREADPOOL_THREAD_COUNT")
        self._pool = ThreadPoolExecutor(
            int(threads) if threads else None, thread_name_prefix="function"
        )
        self._tasks: set[asyncio.Task[None]] = set()

    def received(self, call: tuple[int, str, Datum, Mapping[str, Datum] | None]) -> None:
        """Begin a call of the host."""
        number, name, datum, metadata = call
        task = asyncio.get_running_loop().create_task(
            self._run(number, self.functions[name], datum, metadata)
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(
        self,
        number: int,
        function: IndexedFunction,
        datum: Datum,
        metadata: Mapping[str, Datum] | None,
    ) -> None:
        """Run a function and send its result.

        As in Azure, a function that raises `CancelledError` gets no answer.
        """
        invocation = Context(function_name=function.name)
        _invocation.set(invocation)
        succeeded, result = False, None
        try:
            result = await self._result(function, invocation, datum, metadata)
            succeeded = True
        except Exception:  # noqa: BLE001 - whatever a function raises
            _log.exception("function %s failed", function.name)
        invocation.running = False
        self.channel.send((number, succeeded, result))

    async def _result(
        self,
        function: IndexedFunction,
        invocation: Context,
        datum: Datum,
        metadata: Mapping[str, Datum] | None,
    ) -> object:
        arguments = {function.argument: function.decode(datum, trigger_metadata=metadata)}
        outs = {output.name: Out() for output in function.outputs if output.name != RETURNED}
        arguments |= outs
        if function.takes_context:
            arguments["context"] = invocation
        if iscoroutinefunction(function.handler):
            result = await function.handler(**arguments)
        else:
            result = await self._in_thread(function.handler, arguments)
        values = produced(function.outputs, outs, result)
        answer = http_answer(result) if isinstance(function.trigger, HttpTrigger) else None
        return answer, values

    async def _in_thread(self, handler: Callable[..., Any], arguments: Mapping[str, Any]) -> object:
        run = partial(contextvars.copy_context().run, handler, **arguments)
        return await asyncio.get_running_loop().run_in_executor(self._pool, run)


def import_app(app_dir: Path) -> ModuleType:
    """Import `function_app.py` with its folder as the working directory, as Azure does."""
    if not (app_dir / ENTRY).is_file():
        raise HostError(StackFault(LocalCode.APP_MISSING, str(app_dir)))
    os.chdir(app_dir)
    sys.path.insert(0, str(app_dir))
    try:
        return importlib.import_module("function_app")
    except Exception as error:
        if hasattr(
            error, "faults"
        ):  # it names what is wrong: where in the code that was seen is no help
            raise HostError(
                StackFault(LocalCode.APP_REFUSED, ENTRY, {"reason": str(error)})
            ) from error
        raise


def find_app(module: ModuleType) -> FunctionRegister:
    """Return the module's only `FunctionApp`. Raises `HostError` if there is none or more than one."""
    found = {id(v): v for v in vars(module).values() if isinstance(v, FunctionRegister)}
    if len(found) != 1:
        raise HostError(StackFault(LocalCode.APP_NOT_UNIQUE, ENTRY, {"count": len(found)}))
    return next(iter(found.values()))
