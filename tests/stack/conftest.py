"""The parts of the stack that need no app, and the runner as a person starts it."""

import asyncio
import contextlib
import os
import signal
import sys

import psutil
import pytest

from local.ports import Ports
from local.servicebus_config import ROOT
from local.stack import Stack, StackConfig


@pytest.fixture(scope="session")
async def parts(tmp_path_factory):
    """A stack without hosts, for tests that leave it as it is."""
    async with Stack(StackConfig.for_tests(tmp_path_factory.mktemp("parts"), hosts=0)) as running:
        yield running


class Runner:
    """`python -m local run` in a process of its own."""

    def __init__(self, process, ports, data):
        self.process = process
        self.ports = ports
        self.data = data
        self.output = ""

    @property
    def children(self):
        return psutil.Process(self.process.pid).children(recursive=True)

    async def until_it_says(self, text):
        while text not in self.output:
            line = await self.process.stdout.readline()
            assert line, f"the runner ended without saying {text!r}:\n{self.output}"
            self.output += line.decode()

    async def until_it_ends(self):
        self.output += (await self.process.stdout.read()).decode()
        return await self.process.wait()


@pytest.fixture
async def start_runner(tmp_path):
    """Start runners with these variables on free ports; what is left of them is killed afterwards."""
    started = []

    async def start(**variables):
        ports = Ports.free()
        moved = {name.upper(): str(getattr(ports, name)) for name in Ports.__dataclass_fields__}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "local", "run"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=os.environ | moved | {"DATA_DIR": str(tmp_path), "LOCAL_SHUTDOWN_SECONDS": "2"} | variables,
            cwd=ROOT,
        )
        started.append(process)
        return Runner(process, ports, tmp_path)

    yield start
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        await process.communicate()
