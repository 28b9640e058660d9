"""Apps that are run by the command alone, each in a copy of its folder."""

import asyncio
import os
import shutil
import sys
from pathlib import Path

import pytest

from functions_alone.ports import Ports
from functions_alone.tests.support.dead_proxy import DEAD_PROXY
from functions_alone.tests.support.places import TOOLS
from functions_alone.tests.support.runner import Runner, environment_of
from functions_alone.tests.support.starts import STARTED

APPS = Path(__file__).parent / "apps"
READY = "Ctrl-C stops it"


@pytest.fixture
async def run(tmp_path):
    """Run a copy of an app with the command on free ports; what is left of it is killed afterwards."""
    started = []

    async def run(name, command=(sys.executable, "-m", "functions_alone.alone"), path=str(TOOLS)):
        app = tmp_path / name
        shutil.copytree(APPS / name, app, dirs_exist_ok=True)
        shutil.move(app / "settings.json", app / "local.settings.json")
        ports = Ports.free()
        process = await asyncio.create_subprocess_exec(
            *(*command, str(app)),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=os.environ
            | environment_of(ports)
            | DEAD_PROXY
            | {"PYTHONPATH": path, "LOCAL_SHUTDOWN_SECONDS": "2"},
            cwd=tmp_path,
        )
        STARTED["stacks"] += 1
        started.append(process)
        return Runner(process, ports, app / ".functions")

    yield run
    for process in started:
        if process.returncode is None:
            process.kill()
        await process.communicate()
