"""Documents that are followed to the letter: every command gives the output that the page shows."""

import asyncio
import os
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from development.install import write_command
from functions_alone.tests.support.waiting import eventually

CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
END = "-- end of answer --"


def steps(page: Path) -> Iterator[tuple[str, str]]:
    """Every command of the page's console blocks, with the output to expect."""
    for block in CONSOLE.findall(page.read_text()):
        yield from commands(block)


def commands(block: str) -> Iterator[tuple[str, str]]:
    """Yield every command of a console block, with the output to expect."""
    for part in block.split("$ ", 1)[1].split("\n$ "):
        command, _, expected = part.partition("\n")
        yield command, expected.strip()


def is_shown(expected: str, answer: str) -> bool:
    """Whether the answer begins as the reader sees it, where … stands for anything."""
    first, *parts = expected.split("…")
    place = len(first) if answer.startswith(first) else -1
    for part in parts:
        found = answer.find(part, place) if place >= 0 else -1
        place = found + len(part) if found >= 0 else -1
    return place >= 0


def with_operators(folder: Path) -> dict[str, str]:
    """Return an environment that has the command `operators`, also where no set-up has written it."""
    write_command(folder)
    path = f"{os.environ['PATH']}{os.pathsep}{folder}"
    return {**os.environ, "PATH": path, "COLUMNS": "100"}


class Shell:
    """One bash, as the reader has it open."""

    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self._process = process
        self._port = port

    @classmethod
    async def open(cls, port: int, **options: object) -> "Shell":
        pipe = asyncio.subprocess.PIPE
        return cls(
            await asyncio.create_subprocess_exec("bash", stdin=pipe, stdout=pipe, **options), port
        )  # type: ignore[arg-type]

    async def run(self, command: str) -> str:
        command = command.replace(":7071", f":{self._port}")
        self._process.stdin.write(f"{command}\necho\necho '{END}'\n".encode())
        lines = []
        while (line := (await self._process.stdout.readline()).decode()).strip() != END:
            assert line, "the shell ended"
            lines.append(line)
        return "".join(lines).strip()

    async def close(self) -> None:
        self._process.stdin.close()
        await self._process.wait()


ACTS = (
    "acknowledge",
    "resubmit",
    "skip",
    "cancel",
    "erase",
    "redrive",
    "drop",
    "run",
    "export",
    "restore",
)


def asks_only(command: str) -> bool:
    """Whether a reader may run the command again until it shows what is expected."""
    program = command.removeprefix(".venv/bin/")
    asks = program.startswith(("curl", "operator")) and not set(ACTS).intersection(command.split())
    return asks and "-X" not in command and " -d " not in command


async def answered(shell: Shell, command: str, expected: str) -> bool:
    """Run a command; it has to give the output that the page shows."""
    answer = await shell.run(command)
    assert is_shown(expected, answer), f"$ {command}\n{answer}\nexpected\n{expected}"
    return True


async def follow(
    page: Path, port: int, *, cwd: Path | None = None, env: dict[str, str] | None = None
) -> None:
    """Run every command of the page; what only asks may be asked again for a while."""
    shell = await Shell.open(port, cwd=cwd, env={**os.environ, **(env or {})})
    try:
        for command, expected in steps(page):
            if asks_only(command):
                await eventually(partial(answered, shell, command, expected))
            else:
                await answered(shell, command, expected)
    finally:
        await shell.close()
