"""The two doors to the operators' tools: HTTP, and the command line as a process of its own."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from client import Client

ROOT = Path(__file__).parent.parent.parent
GRACE = {"operator": "grace", "note": "the cause is mended"}


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
    """Acts on orders by `python -m operators`."""

    def __init__(self, client: Client) -> None:
        self._environment = {
            **os.environ,
            "OPERATOR_URL": client.url,
            "OPERATOR_KEY": client.key["x-functions-key"],
            "PYTHONPATH": str(ROOT),
            "COLUMNS": "100",
        }

    async def run(self, *arguments: str, **environment: str) -> tuple[int, str, str]:
        """Run a command; return its exit code, its output, and what it complained of."""
        process = await self.start(*arguments, **environment)
        out, err = await process.communicate()
        return process.returncode, out.decode(), err.decode()

    async def start(self, *arguments: str, **environment: str) -> asyncio.subprocess.Process:
        """Start a command."""
        pipe, options = (
            asyncio.subprocess.PIPE,
            {"cwd": ROOT, "env": self._environment | environment},
        )
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", "operators", *arguments, stdout=pipe, stderr=pipe, **options
        )

    async def act(self, action: str, order_id: str, **more: str) -> str:
        """Do it; return why it was refused, or nothing."""
        options = [word for name, value in (GRACE | more).items() for word in (f"--{name}", value)]
        code, out, err = await self.run(action, order_id, *options)
        assert code in (0, 1), err
        assert code or out.startswith(order_id), out
        return err if code else ""


def doors(client: Client) -> dict[str, Any]:
    """Both, by name."""
    return {"http": Http(client), "command line": CommandLine(client)}
