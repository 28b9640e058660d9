"""The host as a whole: which listeners there are, how they start and how they end."""

import asyncio
import importlib
import logging
import os
import socket
import sys
from collections.abc import Coroutine, Mapping
from pathlib import Path
from types import ModuleType
from typing import Protocol

from azure.functions.decorators.function_app import FunctionRegister

from local.host.errors import HostError
from local.host.host_json import HostJson, read_host_json
from local.host.http import HttpListener
from local.host.index import (
    Function,
    HttpTrigger,
    ServiceBusTrigger,
    StorageQueueTrigger,
    TimerTrigger,
    index_functions,
)
from local.host.invoke import Invoker
from local.host.service_bus import ServiceBusListener
from local.host.settings import LEASE_SECONDS, AppSettings, HostSettings
from local.host.singleton import Singleton
from local.host.storage_queue import StorageQueueListener
from local.host.timer import TimerListener

_log = logging.getLogger("local.host")


class Listener(Protocol):
    """Something that starts functions when messages come or time passes."""

    def run(self, stopping: asyncio.Event) -> Coroutine[None, None, None]:
        """Serve until `stopping`, then until what runs has ended."""


class Host:
    """Runs the functions of one app."""

    def __init__(self, *, app_dir: Path, only: frozenset[str] | None, environ: Mapping[str, str]) -> None:
        settings = AppSettings(values=environ)
        self._own = HostSettings.read(environ)
        self._config = read_host_json(app_dir, environ)
        app = find_app(import_app(app_dir))
        self.functions = index_functions(app.get_functions(), settings, only)
        threads = environ.get("PYTHON_THREADPOOL_THREAD_COUNT")
        self._invoker = Invoker(timeout=self._config.function_timeout, threads=int(threads) if threads else None)
        self._stopping = asyncio.Event()
        self._http = self._http_listener(settings)
        listeners = ((each, self._listener(each)) for each in self.functions)
        self._listeners = {function.name: found for function, found in listeners if found is not None}
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, listening: socket.socket) -> None:
        """Begin to serve; HTTP is ready on return, the others connect when they can."""
        if (seconds := self._own.timer_lock_seconds) < LEASE_SECONDS:
            _log.info("timers' locks last %d s, not %d as in Azure (LOCAL_TIMER_LOCK_SECONDS)", seconds, LEASE_SECONDS)
        await self._http.start(listening)
        self._tasks = [asyncio.create_task(self._watch(name, listener)) for name, listener in self._listeners.items()]

    async def stop(self) -> bool:
        """Take nothing new, let what runs end within the grace time, then cut the rest off; tells if all ended."""
        self._stopping.set()
        ending = [asyncio.create_task(self._http.stop()), *self._tasks]
        _, late = await asyncio.wait(ending, timeout=self._own.shutdown_seconds)
        for task in late:
            task.cancel()
        if late:
            _log.warning("some functions did not end within %s s and were cut off", self._own.shutdown_seconds)
            await asyncio.wait(late, timeout=1.0)
        self._invoker.close()
        # An app has no hook in which to close its clients, neither here nor in Azure: their complaints help nobody.
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)
        return not late

    async def _watch(self, name: str, listener: Listener) -> None:
        try:
            await listener.run(self._stopping)
        except Exception:  # noqa: BLE001 - a listener that fails must not end unnoticed
            _log.exception("the trigger of function %s has stopped", name)

    def _http_listener(self, settings: AppSettings) -> HttpListener:
        listener = HttpListener(
            functions=[each for each in self.functions if isinstance(each.trigger, HttpTrigger)],
            prefix=self._config.extensions.http.route_prefix,
            key=self._own.operator_key,
            invoker=self._invoker,
            grace=self._own.shutdown_seconds,
        )
        if listener.serves_root() and not settings.is_true("AzureWebJobsDisableHomepage"):
            _log.warning("in Azure the path / needs the setting AzureWebJobsDisableHomepage=true")
        return listener

    def _listener(self, function: Function) -> Listener | None:
        return make_listener(function, self._config, self._own, self._invoker)


def make_listener(function: Function, config: HostJson, own: HostSettings, invoker: Invoker) -> Listener | None:
    """Return what serves a function's trigger; None for HTTP, which has one listener for all."""
    call, options = invoker.prepare(function), config.extensions
    match function.trigger:
        case StorageQueueTrigger() as trigger:
            return StorageQueueListener(
                trigger=trigger, call=call, options=options.queues, lock_seconds=own.queue_lock_seconds
            )
        case ServiceBusTrigger() as trigger:
            return ServiceBusListener(trigger=trigger, call=call, options=options.service_bus)
        case TimerTrigger() as trigger:
            return Singleton(
                TimerListener(trigger=trigger, call=call),
                function=function.name,
                connection=trigger.connection,
                own=own,
                poll_seconds=config.singleton.listener_lock_recovery_polling_interval,
            )
        case HttpTrigger():
            return None


def import_app(app_dir: Path) -> ModuleType:
    """Import `function_app.py` with its folder as working directory, as Azure does."""
    if not (app_dir / "function_app.py").is_file():
        raise HostError(f"there is no function_app.py in {app_dir}")
    os.chdir(app_dir)
    sys.path.insert(0, str(app_dir))
    try:
        return importlib.import_module("function_app")
    except Exception as error:
        if hasattr(error, "faults"):  # it names what is wrong: where in the code that was seen is no help
            raise HostError(str(error)) from error
        raise


def find_app(module: ModuleType) -> FunctionRegister:
    """Return the module's only `FunctionApp`; raises `HostError` when there is none or more."""
    found = {id(v): v for v in vars(module).values() if isinstance(v, FunctionRegister)}
    if len(found) != 1:
        raise HostError(f"function_app.py must have one FunctionApp at top level; it has {len(found)}")
    return next(iter(found.values()))
