"""The two interfaces to the operators' tools: HTTP, and the command line."""

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

from click.testing import CliRunner, Result

from operations.cli.main import main
from tests.support.client import Client

ROOT = Path(__file__).parent.parent.parent
GRACE = {"operator": "grace", "note": "the cause is mended"}
ONE_AT_A_TIME = Lock()
"""A command has the standard output of this process while it runs."""


class Http:
    """Acts on orders over HTTP."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def act(self, action: str, order_id: str, **more: str) -> str:
        """Do it; return why it was refused, or nothing."""
        status, answer = await self._client.request(
            "POST", f"/api/operator/orders/{order_id}/{action}", json=GRACE | more
        )
        assert status in (202, 409), answer
        return answer["detail"] if status == 409 else ""


class CommandLine:
    """Acts on orders by the command `operators`: in a thread, since a process costs ten times as much to start."""

    def __init__(self, client: Client) -> None:
        self._environment = {
            "OPERATOR_URL": client.url,
            "OPERATOR_KEY": client.key["x-functions-key"],
            "COLUMNS": "100",
        }

    async def run(self, *arguments: str, **environment: str) -> tuple[int, str, str]:
        """Run a command; return its exit code, its output, and what it complained of."""
        ran = await asyncio.to_thread(self._run, arguments, self._environment | environment)
        return ran.exit_code, ran.stdout, ran.stderr

    def _run(self, arguments: Sequence[str], environment: Mapping[str, str]) -> Result:
        with ONE_AT_A_TIME:
            return CliRunner().invoke(
                main, arguments, prog_name="operators", env=environment, catch_exceptions=False
            )

    async def start(self, *arguments: str, **environment: str) -> asyncio.subprocess.Process:
        """Start `python -m operations` as a process, for a command that is to be watched or killed."""
        own = os.environ | self._environment | {"PYTHONPATH": str(ROOT)}
        pipe, options = asyncio.subprocess.PIPE, {"cwd": ROOT, "env": own | environment}
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", "operations", *arguments, stdout=pipe, stderr=pipe, **options
        )

    async def act(self, action: str, order_id: str, **more: str) -> str:
        """Do it; return why it was refused, or nothing."""
        options = [word for name, value in (GRACE | more).items() for word in (f"--{name}", value)]
        code, out, err = await self.run(action, order_id, *options)
        assert code in (0, 1), err
        assert code or out.startswith(order_id), out
        return err if code else ""


def interfaces(client: Client) -> dict[str, Any]:
    """Both, by name."""
    return {"http": Http(client), "command line": CommandLine(client)}
