"""Azurite, the Service Bus broker, stand-ins for other services, and any number of functions hosts that run one app."""

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
"""What takes minutes in Azure, and would seem to be stuck to a person who watches."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Topic:
    """A topic of Event Grid with one subscription, which delivers to a Storage Queue."""

    key: str
    """What publishers have to send."""
    queue: str


async def _make_nothing(_: str) -> None: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class StackConfig:
    """What a stack runs on, and what it runs."""

    ports: Ports
    data: Path
    app: Path
    """Folder of `function_app.py`."""
    hosts: int = 1
    functions: str = ""
    """Comma-separated names of the functions that the hosts run; empty for all."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Of the app, and what its hosts have in their environment besides."""
    queues: Mapping[str, Any]
    """Of Service Bus, as the configuration of Microsoft's emulator: `functions_alone.broker_config`."""
    make: Callable[[str], Awaitable[None]] = _make_nothing
    """Makes in the storage account of a connection string what the app wants to be there."""
    topic: Topic | None = None
    channels: bool = False
    """Whether a mail server and the webhooks of chats take messages: `functions_alone.channels`."""
    layout: Layout = field(default_factory=Layout)
    health: str = ""
    """A path that answers 200 when the app is ready; empty if it has none."""
    in_memory: bool = False
    """Whether Azurite forgets everything when it stops."""
    restart: bool = True
    """Whether a child that dies is started again."""


Say = Callable[[str], None]


def say_nothing(_: str) -> None:
    """Take a line, and do nothing."""


class Stack:
    """Starts and stops all parts in order.

    `say` gets a line for each thing that a person may want to know; `show`, where given, each line that a host puts
    out. All output is also in `<data>/logs`.
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
        """Yield what stands in for a service, by the name of its port."""
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
        """Start everything; returns when the app says that it is healthy. Raises `StackError`."""
        self.ports.check_free()
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
        """Wait until the app says that it is ready; hosts that run some functions only need not have that one."""
        accept = {200, 404} if self.config.functions else {200}
        if self.hosts and self.config.health:
            probe = _probe(f"{self.http_url}{self.config.health}", accept=accept)
            await self.hosts[0].wait_ready(probe, START_SECONDS, self._say)

    async def until_it_fails(self, stopped: asyncio.Task[Any]) -> None:
        """Wait for `stopped`; raises `StackError` when something would not be started again any more."""
        await self._supervisor.until_it_fails(stopped)

    async def stop(self) -> None:
        """Stop the hosts first, so that what they are doing can be finished and recorded; then the rest."""
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
        """Start Azurite and wait until it answers; its table service is the last to listen."""
        probe = _probe(f"http://{HOST}:{self.ports.table_port}/", accept=range(600))
        await self._launch(self.azurite, probe, "blob_port", "queue_port", "table_port")

    async def stop_azurite(self) -> None:
        """Stop Azurite as an outage would, but without loss."""
        await self._take_away(self.azurite)

    async def start_broker(self) -> None:
        """Start the broker and wait until it answers."""
        probe = _probe(f"http://{HOST}:{self.ports.broker_health_port}/health")
        await self._launch(self.broker, probe, "amqp_port", "broker_health_port")

    async def stop_broker(self) -> None:
        """Stop the broker as an outage would, but without loss."""
        await self._take_away(self.broker)

    async def start_event_grid(self) -> None:
        """Let the Event Grid stand-in answer, from this process."""
        await self._start_stand_ins(EVENT_GRID)

    async def stop_event_grid(self) -> None:
        """Stop the Event Grid stand-in as an outage would."""
        await self._stand_ins[EVENT_GRID].stop()

    async def start_channels(self) -> None:
        """Let the mail server and the webhooks answer, from this process."""
        await self._start_stand_ins(*CHANNELS)

    async def stop_channels(self) -> None:
        """Stop the mail server and the webhooks as an outage would; their messages stay."""
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
        """Start one more host, for these functions or for all, perhaps of another app, and wait until it is ready.

        `own` are settings that this host alone has.

        A host that runs other functions than the rest gets an HTTP port of its own: on the common one it would
        answer 404 to calls that are meant for the others.
        """
        return await self._launch_host(functions, app, own)

    async def kill_host(self, number: int = 0) -> None:
        """Kill a host with SIGKILL: it finishes nothing and is not started again."""
        host = self.hosts.pop(number)
        await self._supervisor.leave_alone(host)
        await host.kill()
        self._tell_of_hosts()

    async def stop_host(self, number: int = 0) -> None:
        """Ask a host to finish what it is doing and to end."""
        await self._take_away(self.hosts.pop(number))
        self._tell_of_hosts()

    def pause_host(self, number: int = 0) -> None:
        """Freeze a host (SIGSTOP)."""
        self.hosts[number].signal(signal.SIGSTOP)

    def resume_host(self, number: int = 0) -> None:
        """Let a frozen host go on (SIGCONT)."""
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
        """Let every host know of all."""
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
    """Return the setting that the hosts read too; raises `StackError`."""
    try:
        return seconds_in(environment, SHORT_LIFE)
    except HostError as error:
        raise StackError(*error.faults) from None


def _probe(url: str, *, accept: Container[int] = (200,)) -> Probe:
    return lambda: missing_at(url, accept)


async def _together(*steps: Coroutine[Any, Any, object]) -> None:
    """Run steps at the same time; the first that fails ends the others and is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            for step in steps:
                group.create_task(step)
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
