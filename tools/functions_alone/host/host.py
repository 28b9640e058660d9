"""The host as a whole: its listeners, and how they start and end."""

import asyncio
import logging
import socket
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from functions_alone.host.fork_server import ForkServer
from functions_alone.host.host_json import HostJson, read_host_json
from functions_alone.host.http import HttpListener
from functions_alone.host.index import (
    AppFunction,
    HttpTrigger,
    ServiceBusTrigger,
    StorageQueueTrigger,
    TimerTrigger,
)
from functions_alone.host.invoke import Invoker
from functions_alone.host.service_bus import ServiceBusListener
from functions_alone.host.settings import AppSettings, HostSettings
from functions_alone.host.singleton import Singleton
from functions_alone.host.storage_queue import StorageQueueListener
from functions_alone.host.timer import TimerListener
from functions_alone.host.vital import vital

_log = logging.getLogger("functions_alone.host")


class Listener(Protocol):
    """Starts functions when messages arrive or time passes."""

    def run(self, stopping: asyncio.Event) -> Coroutine[None, None, None]:
        """Serve until `stopping` is set, and then until all running calls have ended."""


class Host:
    """Runs the functions of one app when messages arrive or time passes."""

    def __init__(self, *, app_dir: Path, environ: Mapping[str, str]) -> None:
        self._settings = AppSettings(values=environ)
        self._config = read_host_json(app_dir, environ)
        lock_period = self._config.singleton.listener_lock_period
        self._own = HostSettings.read(environ, timer_lock_seconds=lock_period)
        self._invoker = Invoker(
            timeout=self._config.function_timeout,
            short_life_seconds=self._own.short_life_seconds,
            process_per_function=self._own.process_per_function,
            in_base64=self._config.extensions.queues.message_encoding == "base64",
        )
        self._stopping = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self.functions: Sequence[AppFunction] = ()

    async def load(self, fork_server: ForkServer, group: asyncio.TaskGroup) -> None:
        """Make worker processes load the app, and read its functions. Raises `HostError` if that fails.

        The tasks that keep the workers run in the task group, and later the triggers too. A fault in any of them ends
        the group.
        """
        self.functions = await self._invoker.start(fork_server, group)
        self._http = self._http_listener()
        listeners = ((function, self._listener(function)) for function in self.functions)
        self._listeners = {
            function.name: found for function, found in listeners if found is not None
        }

    async def start(self, listening: socket.socket, group: asyncio.TaskGroup) -> None:
        """Begin to serve. HTTP is ready on return. The other listeners connect when they can."""
        if self._own.shortened:
            _log.info("shorter than in Azure: %s", "; ".join(self._own.shortened))
        await self._http.start(listening)
        for name, listener in self._listeners.items():
            serving = vital(f"the trigger of function {name}", listener.run(self._stopping))
            self._tasks.append(group.create_task(serving))

    async def stop(self) -> None:
        """Take nothing new, wait for running calls within the grace time, then cut the rest off."""
        self._stopping.set()
        ending = [asyncio.create_task(self._http.stop()), *self._tasks]
        _, late = await asyncio.wait(ending, timeout=self._own.shutdown_seconds)
        for task in late:
            task.cancel()
        if late:
            _log.warning(
                "some functions did not end within %s s and were cut off",
                self._own.shutdown_seconds,
            )
            await asyncio.wait(late, timeout=1.0)
        self._invoker.stop()

    def _http_listener(self) -> HttpListener:
        return HttpListener(
            functions=[
                function for function in self.functions if isinstance(function.trigger, HttpTrigger)
            ],
            prefix=self._config.extensions.http.route_prefix,
            own=self._own,
            invoker=self._invoker,
            home_page=not self._settings.is_true("AzureWebJobsDisableHomepage"),
        )

    def _listener(self, function: AppFunction) -> Listener | None:
        return make_listener(function, self._config, self._own, self._invoker)


def make_listener(
    function: AppFunction, config: HostJson, own: HostSettings, invoker: Invoker
) -> Listener | None:
    """Return the listener for a function's trigger.

    None for HTTP, where all functions share one listener.
    """
    call, options = invoker.prepare(function), config.extensions
    match function.trigger:
        case StorageQueueTrigger() as trigger:
            return StorageQueueListener(
                trigger=trigger,
                call=call,
                options=options.queues,
                lock_seconds=own.queue_lock_seconds,
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
