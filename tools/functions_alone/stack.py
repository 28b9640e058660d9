"""Azurite, the Service Bus broker, stand-ins for other services, and functions hosts that run one app."""

import asyncio
import itertools
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Container, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from functions_alone import channels, eventgrid, parts
from functions_alone.connections import service_bus_connection_string, storage_connection_string
from functions_alone.data_folder import DataFolder, Layout
from functions_alone.faults import LocalCode, StackFault
from functions_alone.host.errors import HostError
from functions_alone.host.itself import HOSTS_FILE
from functions_alone.host.settings import SHORT_LIFE, seconds_in
from functions_alone.hosts import HostsFile
from functions_alone.inbox import ChannelInbox
from functions_alone.mail_server import MailServer
from functions_alone.ports import HOST, Ports, StackError, listen
from functions_alone.probe import missing_at
from functions_alone.process import Command, Probe, Process
from functions_alone.site import Site, StandIn
from functions_alone.supervise import Supervisor

HOST_IS_READY = "host is ready on "
START_SECONDS = 60

EVENT_GRID = "eventgrid_port"
CHANNELS = WEBHOOKS, MAIL_SERVER = "channels_port", "smtp_port"
"""The stand-ins, by the names of their ports."""
HOST_SETTINGS = {"LOCAL_QUEUE_LOCK_SECONDS": "30"}
"""Times that last minutes in Azure. A person who watches would believe that the stack is stuck."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Topic:
    """A topic of Event Grid with one subscription, which delivers to a Storage Queue."""

    key: str
    """The key that publishers must send."""
    queue: str


async def _make_nothing(_: str) -> None: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class StackConfig:
    """The parts of a stack, and the app that it runs."""

    ports: Ports
    data: Path
    app: Path
    """The folder of `function_app.py`."""
    hosts: int = 1
    functions: str = ""
    """The functions that the hosts run, separated by commas. Empty for all."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """The app's settings, and other environment variables of its hosts."""
    queues: Mapping[str, Any]
    """The Service Bus queues, as made by `functions_alone.broker_config`."""
    make: Callable[[str], Awaitable[None]] = _make_nothing
    """Makes what the app needs in the storage account of a connection string."""
    topic: Topic | None = None
    channels: bool = False
    """Whether a mail server and the webhooks of chats take messages (`functions_alone.channels`)."""
    layout: Layout = field(default_factory=Layout)
    health: str = ""
    """A path that answers 200 when the app is ready. Empty if the app has none."""
    in_memory: bool = False
    """Whether Azurite forgets all data when it stops."""
    restart: bool = True
    """Whether a child that dies is started again."""


Say = Callable[[str], None]


def say_nothing(_: str) -> None:
    """Take a line, and do nothing."""


class Stack:
    """Starts and stops all parts in order.

    `say` gets a line for each event that a person may want to know. `show` gets each line that a host writes. All
    output is also in `<data>/logs`.
    """

    def __init__(
        self, stack_config: StackConfig, say: Say = say_nothing, show: Say | None = None
    ) -> None:
        app, data = stack_config.app.resolve(), stack_config.data.resolve()
        # The parts run in the data folder, where a relative path would lead elsewhere.
        self.config = stack_config = replace(stack_config, app=app, data=data)
        self.ports = stack_config.ports
        self.http_url = f"http://{HOST}:{self.ports.http_port}"
        self.event_grid_url = f"http://{HOST}:{self.ports.eventgrid_port}/api/events"
        self.channels_url = f"http://{HOST}:{self.ports.channels_port}"
        self.storage_connection_string = storage_connection_string(self.ports)
        self.service_bus_connection_string = service_bus_connection_string(self.ports)
        self.hosts: list[Process] = []
        self._say, self._show = say, show
        self._host_numbers = itertools.count(1)
        self._hosts_file = HostsFile(stack_config.data / "hosts.json")
        self._socket: socket.socket | None = None
        self._folder = DataFolder(stack_config.data, stack_config.layout)
        self._env = {**HOST_SETTINGS, **os.environ, **stack_config.settings}
        self._supervisor = Supervisor(say, self._tell_of_hosts, _short_life_seconds(self._env))
        files = None if stack_config.in_memory else data / "azurite"
        azurite = self._command("azurite", *parts.azurite(self.ports, files))
        broker = self._command(
            "broker", *parts.broker(self.ports, self._queues_file, data / "broker")
        )
        self.azurite, self.broker = parts.on_node(azurite), parts.on_node(broker)
        self._stand_ins = dict(self._made_stand_ins())

    def _made_stand_ins(self) -> Iterator[tuple[str, StandIn]]:
        """Yield the stand-ins for services, by the name of their port."""
        if topic := self.config.topic:
            storage = self.storage_connection_string
            application = partial(eventgrid.application, topic.key, storage, topic.queue)
            yield EVENT_GRID, Site(self.ports.eventgrid_port, application)
        if self.config.channels:
            inbox = ChannelInbox()
            application = partial(channels.application, inbox)
            yield WEBHOOKS, Site(self.ports.channels_port, application)
            yield MAIL_SERVER, MailServer(self.ports.smtp_port, inbox)

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start everything, and return when the app is healthy. Raises `StackError` if that fails."""
        self.ports.check_free(without={EVENT_GRID, *CHANNELS} - self._stand_ins.keys())
        self._folder.claim()
        self._socket = listen(self.ports.http_port)
        self._put_old_logs_aside()
        self._queues_file.write_text(json.dumps(self.config.queues, indent=2))
        self._say("waiting for Azurite and the Service Bus broker")
        await _together(
            self.start_azurite(), self.start_broker(), self._start_stand_ins(*self._stand_ins)
        )
        self._say("making tables, queues and containers")
        await self.config.make(self.storage_connection_string)
        self._say(f"waiting for {self.config.hosts} functions host(s)")
        await _together(
            *(self._launch_host(self.config.functions) for _ in range(self.config.hosts))
        )
        await self.wait_healthy()

    async def wait_healthy(self) -> None:
        """Wait until the app is ready.

        Hosts that run only some functions need not have the one that answers.
        """
        accept = {200, 404} if self.config.functions else {200}
        if self.hosts and self.config.health:
            probe = _probe(f"{self.http_url}{self.config.health}", accept=accept)
            await self.hosts[0].wait_ready(probe, START_SECONDS, self._say)

    async def until_it_fails(self, stopped: asyncio.Task[Any]) -> None:
        """Wait for `stopped`. Raises `StackError` if a part would no longer be started again."""
        await self._supervisor.until_it_fails(stopped)

    async def stop(self) -> None:
        """Stop the hosts first, so that they can finish and record their work, and then the rest."""
        await self._supervisor.stop()
        await asyncio.gather(*(host.stop() for host in self.hosts))
        self.hosts.clear()
        for stand_in in self._stand_ins.values():
            await stand_in.stop()
        await self.broker.stop()
        await self.azurite.stop()
        if self._socket:
            self._socket.close()
        self._folder.release()

    async def start_azurite(self) -> None:
        """Start Azurite and wait until it answers. Its table service is the last to listen."""
        probe = _probe(f"http://{HOST}:{self.ports.table_port}/", accept=range(600))
        await self._launch(self.azurite, probe, "blob_port", "queue_port", "table_port")

    async def stop_azurite(self) -> None:
        """Stop Azurite as in an outage, but without loss of data."""
        await self._take_away(self.azurite)

    async def start_broker(self) -> None:
        """Start the broker and wait until it answers."""
        probe = _probe(f"http://{HOST}:{self.ports.broker_health_port}/health")
        await self._launch(self.broker, probe, "amqp_port", "broker_health_port")

    async def stop_broker(self) -> None:
        """Stop the broker as in an outage, but without loss of messages."""
        await self._take_away(self.broker)

    async def start_event_grid(self) -> None:
        """Start the Event Grid stand-in in this process."""
        await self._start_stand_ins(EVENT_GRID)

    async def stop_event_grid(self) -> None:
        """Stop the Event Grid stand-in as in an outage."""
        await self._stand_ins[EVENT_GRID].stop()

    async def start_channels(self) -> None:
        """Start the mail server and the webhooks in this process."""
        await self._start_stand_ins(*CHANNELS)

    async def stop_channels(self) -> None:
        """Stop the mail server and the webhooks as in an outage. Their messages stay."""
        for name in CHANNELS:
            await self._stand_ins[name].stop()

    async def _start_stand_ins(self, *port_names: str) -> None:
        for name in port_names:
            try:
                await self._stand_ins[name].start()
            except OSError as error:
                place = f"port {getattr(self.ports, name)} ({name.upper()})"
                facts = {"reason": str(error)}
                faults = self.ports.taken(name) or [
                    StackFault(LocalCode.CANNOT_LISTEN, place, facts)
                ]
                raise StackError(*faults) from error

    async def start_host(self, functions: str = "", app: Path | None = None, **own: str) -> Process:
        """Start one more host, and wait until it is ready.

        It runs these functions or all, and `app` may be another app. `own` are settings of this host alone. A host
        that runs other functions than the rest gets its own HTTP port, because on the common port it would answer 404
        to calls for the others.
        """
        return await self._launch_host(functions, app, own)

    async def kill_host(self, number: int = 0) -> None:
        """Kill a host with SIGKILL. It finishes nothing and is not started again."""
        host = self.hosts.pop(number)
        await self._supervisor.leave_alone(host)
        await host.kill()
        self._tell_of_hosts()

    async def stop_host(self, number: int = 0) -> None:
        """Ask a host to finish its work and to end."""
        await self._take_away(self.hosts.pop(number))
        self._tell_of_hosts()

    def pause_host(self, number: int = 0) -> None:
        """Freeze a host with SIGSTOP."""
        self.hosts[number].signal(signal.SIGSTOP)

    def resume_host(self, number: int = 0) -> None:
        """Let a frozen host go on, with SIGCONT."""
        self.hosts[number].signal(signal.SIGCONT)

    async def _launch_host(
        self, functions: str, app: Path | None = None, own: Mapping[str, str] | None = None
    ) -> Process:
        if self._socket is None:
            raise RuntimeError("the stack is not started")
        fd = self._socket.fileno()
        arguments = (
            ["--listen-fd", str(fd)] if functions == self.config.functions else ["--port", "0"]
        )
        arguments += ["--functions", functions] if functions else []
        arguments += ["--app-dir", str(app or self.config.app)]
        host = self._host(f"host-{next(self._host_numbers)}", fd, own or {}, *arguments)
        self.hosts.append(host)

        async def probe() -> str:
            return "" if HOST_IS_READY in host.output() else "it is still loading the app"

        await self._launch(host, probe)
        self._tell_of_hosts()
        return host

    def _tell_of_hosts(self) -> None:
        """Tell every host about all hosts."""
        self._hosts_file.write(self.hosts)

    async def _launch(self, process: Process, probe: Probe, *ports: str) -> None:
        began = time.monotonic()
        await process.start()
        try:
            await process.wait_ready(probe, START_SECONDS, self._say)
        except StackError as error:
            taken = [] if process.alive else self.ports.taken(*ports)
            raise StackError(*error.faults, *taken) from error
        self._say(f"{process.name} is ready after {time.monotonic() - began:.1f} s")
        if self.config.restart:
            self._supervisor.keep(process)

    async def _take_away(self, process: Process) -> None:
        await self._supervisor.leave_alone(process)
        await process.stop()

    def _host(self, name: str, fd: int, own: Mapping[str, str], *arguments: str) -> Process:
        show = self._show
        command = self._command(name, sys.executable, "-m", "functions_alone.host", *arguments)
        echo = (lambda line: show(f"{name} | {line}")) if show else None
        more = {"WEBSITE_INSTANCE_ID": name, HOSTS_FILE: str(self._hosts_file.path), **own}
        return Process(replace(command, env={**command.env, **more}, fds=(fd,), echo=echo))

    def _command(self, name: str, *arguments: str) -> Command:
        return Command(
            name=name,
            arguments=arguments,
            env=self._env | {"PYTHONUNBUFFERED": "1"},
            cwd=self.config.data,
            log=self._logs / f"{name}.log",
            say=self._say,
        )

    @property
    def _queues_file(self) -> Path:
        return self.config.data / "Config.json"

    @property
    def _logs(self) -> Path:
        return self.config.data / "logs"

    def _put_old_logs_aside(self) -> None:
        for log in self._logs.glob("*.log"):
            log.replace(log.with_suffix(".log.old"))


def _short_life_seconds(environment: Mapping[str, str]) -> float:
    """Return the setting that the hosts read too. Raises `StackError` if it is wrong."""
    try:
        return seconds_in(environment, SHORT_LIFE)
    except HostError as error:
        raise StackError(*error.faults) from None


def _probe(url: str, *, accept: Container[int] = (200,)) -> Probe:
    return lambda: missing_at(url, accept)


async def _together(*steps: Coroutine[Any, Any, object]) -> None:
    """Run steps at the same time. The first that fails ends the others, and its error is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            for step in steps:
                group.create_task(step)
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
