"""A command that runs a stack, in a process of its own."""

import asyncio
from pathlib import Path

import psutil

from functions_alone.ports import Ports
from functions_alone.tests.support.waiting import PATIENCE_SECONDS


class Runner:
    """The process and what it has said."""

    def __init__(self, process: asyncio.subprocess.Process, ports: Ports, data: Path) -> None:
        self.process, self.ports, self.data = process, ports, data
        self.output = ""

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children()

    def descendants(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    async def until_it_says(self, text: str) -> None:
        """Read on until the text comes; what was said before does not count."""
        output = ""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while text not in output:
                line = (await self.process.stdout.readline()).decode()
                assert line, f"the runner ended without saying {text!r}:\n{self.output}"
                output += line
                self.output += line

    async def listen(self) -> None:
        """Read on to the end, as a terminal does: a runner whose output nobody reads stands still."""
        while line := await self.process.stdout.readline():
            self.output += line.decode()

    async def until_it_ends(self) -> int:
        """Return the exit code."""
        self.output += (await self.process.stdout.read()).decode()
        return await self.process.wait()


def environment_of(ports: Ports) -> dict[str, str]:
    """Return the variables that move the parts to these ports."""
    return {name.upper(): str(getattr(ports, name)) for name in Ports.__dataclass_fields__}


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Return those that have not ended."""
    return [process for process in processes if _is_alive(process)]


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it ended between the two questions
        return False
