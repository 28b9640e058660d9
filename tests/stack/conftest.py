"""Parts that a test may stop and start, and the runner as a person starts it."""

import asyncio
import os
import sys

import pytest
from runner import Runner
from starts import STARTED

from local.ports import Ports
from local.servicebus_config import ROOT
from local.stack import Stack, StackConfig


@pytest.fixture(scope="module")
async def own_parts(tmp_path_factory):
    """A stack without hosts, for tests that stop its parts and start them again; no host could run on its settings."""
    wrong = {"LEASE_SECONDS": "3", "BUCKETS": "none"}
    config = StackConfig.for_tests(
        tmp_path_factory.mktemp("parts"), hosts=0, in_memory=False, settings=wrong
    )
    async with Stack(config) as running:
        yield running


@pytest.fixture
async def start_runner(tmp_path):
    """Start a runner with these variables on free ports; what is left of it is killed afterwards."""
    started = []

    async def start(**variables):
        ports = Ports.free()
        moved = {name.upper(): str(getattr(ports, name)) for name in Ports.__dataclass_fields__}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "local", "run"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=os.environ
            | moved
            | {"DATA_DIR": str(tmp_path), "LOCAL_SHUTDOWN_SECONDS": "2"}
            | variables,
            cwd=ROOT,
        )
        started.append(process)
        STARTED["stacks"] += 1
        return Runner(process, ports, tmp_path)

    yield start
    for process in started:
        if process.returncode is None:
            process.kill()
        await process.communicate()
