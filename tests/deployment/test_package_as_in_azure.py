"""The package under the library that runs functions in Azure. It exists for Azure's version of Python only."""

import asyncio
import json
import os
import subprocess

from development.servicebus_config import ROOT
from development.stack import AppStack, AppStackConfig
from tests.support.client import QUICK
from tests.support.deployed_package import clean_python
from tests.support.deploying import AGENTS, everything


async def test_every_function_runs_as_in_azure(package, functions, tmp_path):
    """It indexes the package, and carries out each of its functions."""
    python = await asyncio.to_thread(clean_python, "azure-functions-runtime==1.3.0")
    async with AppStack(
        AppStackConfig.for_tests(tmp_path, hosts=0, settings=QUICK, agents=AGENTS)
    ) as stack:
        environment = os.environ | stack.app_environment() | everything(stack.ports)
        command = [python, ROOT / "tests/support/azure_worker.py", package]
        ran = await asyncio.to_thread(
            subprocess.run,
            command,
            cwd=package,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout.splitlines()[-1]) == dict.fromkeys(functions, "")
