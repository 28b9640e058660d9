"""The runner as a person starts it."""

import asyncio
import os
import sys

import pytest

from development.servicebus_config import ROOT
from functions_alone.ports import Ports
from functions_alone.tests.support.dead_proxy import DEAD_PROXY
from functions_alone.tests.support.runner import Runner, environment_of
from functions_alone.tests.support.starts import STARTED


@pytest.fixture
async def start_runner(tmp_path):
    """Start a runner with these variables on free ports; what is left of it is killed afterwards."""
    started = []

    async def start(stdout=asyncio.subprocess.PIPE, **variables):
        ports = Ports.free()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "development", "run"),
            stdout=stdout,
            stderr=asyncio.subprocess.STDOUT,
            env=os.environ
            | environment_of(ports)
            | DEAD_PROXY
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
