"""The part of the suite that runs with Azure's SDK for JavaScript."""

import asyncio
import os
from pathlib import Path

import pytest

from functions_alone.tests.support.broker_process import NODE

HERE = Path(__file__).with_name("js")
NPM = NODE.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"


@pytest.fixture(scope="module")
async def installed() -> None:
    """Install the SDK as the lock file says, unless it is there."""
    stamp, lock = HERE / "node_modules" / ".package-lock.json", HERE / "package-lock.json"
    if not stamp.exists() or stamp.stat().st_mtime < lock.stat().st_mtime:
        await run(
            NODE, NPM, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"
        )


async def run(*command: str | Path, **environment: str) -> None:
    pipe = asyncio.subprocess.PIPE
    environment = (
        os.environ | environment | {"PATH": f"{NODE.parent}{os.pathsep}{os.environ['PATH']}"}
    )
    process = await asyncio.create_subprocess_exec(
        *command, cwd=HERE, env=environment, stdout=pipe, stderr=pipe
    )
    output, error = await process.communicate()
    assert process.returncode == 0, (output + error).decode()


@pytest.mark.soak
@pytest.mark.usefixtures("installed")
async def test_javascript_sdk(connection_string, any_queue):
    """Every test of conformance.test.mjs passes."""
    names = {"SERVICEBUS_CONNECTION": connection_string, "SERVICEBUS_QUEUE": any_queue}
    await run(NODE, "--test", "--test-timeout=120000", "conformance.test.mjs", **names)
