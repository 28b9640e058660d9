"""One child process: start it, wait until it is ready, stop it."""

import asyncio
import contextlib
import ctypes
import functools
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Self

from functions_alone.faults import LocalCode, StackFault
from functions_alone.ports import StackError

PR_SET_PDEATHSIG = 1
POLL_SECONDS = 0.05
SAY_AGAIN_SECONDS = 3.0
OUTPUT_SECONDS = 1.0
LONGEST_LINE_BYTES = 1024 * 1024
"""Only the end of a longer line is shown. The log has the whole line."""
WHOLE_GROUP = frozenset({signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT})
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
"""Loaded here because a forked child must not load anything."""

Probe = Callable[[], Awaitable[str]]
"""Returns what is still missing, or an empty text when the process is ready."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """The command of a child, and the use of its output."""

    name: str
    arguments: Sequence[str]
    env: Mapping[str, str]
    cwd: Path
    log: Path
    """The file to which the output is appended."""
    fds: tuple[int, ...] = ()
    orphan_signal: signal.Signals = signal.SIGKILL
    """The signal that the child gets if its parent dies without stopping it, on Linux only."""
    echo: Callable[[str], None] | None = None
    """Also gets the output, line by line."""
    say: Callable[[str], None] = lambda _: None
    """Gets a line when the log cannot be written, and one when it can be written again."""


class Process:
    """A child in its own session, so that Ctrl-C reaches only the runner, which stops all in order."""

    def __init__(self, command: Command) -> None:
        self.name = command.name
        self.log = command.log
        self._command = command
        self._child: asyncio.subprocess.Process | None = None
        self._relay: asyncio.Task[None] | None = None
        self._log_start = 0

    @property
    def pid(self) -> int:
        """The process id, or 0 if the process was never started."""
        return self._child.pid if self._child else 0

    @property
    def alive(self) -> bool:
        return self._child is not None and self._child.returncode is None

    @property
    def how_it_ended(self) -> str:
        """The exit code or the signal, for people to read."""
        code = self._child.returncode if self._child else None
        return "running" if code is None else how_it_ended(code)

    async def start(self) -> None:
        with self._open_log() as log:
            output = asyncio.subprocess.PIPE if self._command.echo else log
            self._child = await asyncio.create_subprocess_exec(
                *self._command.arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=asyncio.subprocess.STDOUT,
                env=dict(self._command.env),
                cwd=self._command.cwd,
                start_new_session=True,
                pass_fds=self._command.fds,
                preexec_fn=functools.partial(
                    end_with_parent, os.getpid(), self._command.orphan_signal
                ),
            )
        if self._child.stdout is not None:
            self._relay = asyncio.create_task(self._relay_output(self._child.stdout))
            self._relay.add_done_callback(self._unread)

    async def wait_ready(
        self, probe: Probe, seconds: float, say: Callable[[str], None] = lambda _: None
    ) -> None:
        """Wait until the probe misses nothing.

        If that takes long, `say` gets what the process waits for. Raises `StackError` with the last output if the
        process ends or is late. The process is checked after the probe too, because another program may have answered
        in its place.
        """
        began = reported_at = time.monotonic()
        while (missing := await probe()) or not self.alive:
            now = time.monotonic()
            if not self.alive:
                facts = {"exit": self.how_it_ended, **self._last_words()}
                raise StackError(StackFault(LocalCode.PART_ENDED, self.name, facts))
            if now > began + seconds:
                facts = {"seconds": f"{seconds:.0f}", "missing": missing, **self._last_words()}
                raise StackError(StackFault(LocalCode.PART_NOT_READY, self.name, facts))
            if now > reported_at + SAY_AGAIN_SECONDS:
                reported_at = now
                say(f"still waiting for {self.name}: {missing}")
            await asyncio.sleep(POLL_SECONDS)

    def output(self) -> str:
        """Return the output of the process since its last start."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")

    async def stop(self, seconds: float = 15) -> None:
        """Ask the process to end, and kill it after `seconds`."""
        self.signal(signal.SIGTERM)
        self.signal(signal.SIGCONT)
        try:
            await asyncio.wait_for(self.ended(), seconds)
        except TimeoutError:
            await self.kill()

    async def kill(self) -> None:
        """End the process at once, with SIGKILL."""
        self.signal(signal.SIGKILL)
        await self.ended()

    async def ended(self) -> None:
        """Wait for the end of the process and of its output."""
        if self._child is not None:
            await self._child.wait()
        if self._relay is not None:  # not for ever: a child of the child may hold on to the output
            await asyncio.wait([self._relay], timeout=OUTPUT_SECONDS)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process if it runs. SIGKILL, SIGSTOP and SIGCONT go to its children too."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                send = os.killpg if number in WHOLE_GROUP else os.kill
                send(self.pid, number)

    def _unread(self, relay: asyncio.Task[None]) -> None:
        """Kill a child whose output is no longer read, because it would stand still.

        If a supervisor keeps the child, it is started again.
        """
        if not relay.cancelled() and (fault := relay.exception()):
            self.signal(signal.SIGKILL)
            self._command.say(f"the output of {self.name} cannot be read ({fault}); killed it")

    def _last_words(self, lines: int = 15) -> Mapping[str, str]:
        """Return the facts of a fault: the log, and the end of the output."""
        tail = self.output().splitlines()[-lines:]
        return {"log": str(self.log), "output": "\n".join(tail)}

    def _open_log(self) -> BinaryIO:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        log = self.log.open("ab", buffering=0)
        self._log_start = log.tell()
        return log

    async def _relay_output(self, output: asyncio.StreamReader) -> None:
        """Copy the output to the log, and whole lines to `echo`.

        The output is read even if it cannot be written, because a child whose output nobody reads stands still.
        """
        rest = b""
        with Log(self.log, self.name, self._command.say) as log:
            while data := await output.read(65536):
                log.write(data)
                *lines, rest = (rest + data).split(b"\n")
                rest = rest[-LONGEST_LINE_BYTES:]
                self._echo(lines)
        self._echo([rest] if rest else [])

    def _echo(self, lines: Sequence[bytes]) -> None:
        for line in lines:
            if self._command.echo:
                self._command.echo(line.decode(errors="replace"))


class Log:
    """A log file that grows. While it cannot be written, output is left out, which is reported once."""

    def __init__(self, path: Path, name: str, say: Callable[[str], None]) -> None:
        self._path, self._name, self._say = path, name, say
        self._file: BinaryIO | None = None
        self._fails = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def write(self, data: bytes) -> None:
        """Append data if that is possible. It never raises."""
        try:
            if self._file is None:
                self._file = self._path.open("ab", buffering=0)
            self._file.write(data)
        except OSError as error:
            if not self._fails:
                self._say(
                    f"the log of {self._name} cannot be written ({error}); going on without it"
                )
            self._fails = True
            self._close()
            return
        if self._fails:
            self._say(f"the log of {self._name} is written again; a part is missing")
        self._fails = False

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def how_it_ended(code: int) -> str:
    """Return an exit code, or a signal if it is negative, for people to read."""
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def end_with_parent(parent: int, number: signal.Signals) -> None:
    """Make Linux end this child when its parent is gone for any reason."""
    if _LIBC is not None:
        _LIBC.prctl(PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:  # it went before we could ask
            os._exit(1)
