"""One child process: start it, wait until it is ready, stop it."""

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from local.ports import StackError

PR_SET_PDEATHSIG = 1

Probe = Callable[[], Awaitable[bool]]


def _end_with_parent() -> None:
    """Ask Linux to end the child when its parent is gone, however that came about."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Process:
    """A child in a session of its own, so that Ctrl-C reaches the runner alone, which stops all in order."""

    def __init__(
        self, name: str, command: Sequence[str], log: Path | None, env: Mapping[str, str], fds: Sequence[int] = ()
    ) -> None:
        self.name = name
        self._command = command
        self._log = log
        self._env = env
        self._fds = tuple(fds)
        self._child: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        """The process id; 0 when it does not run."""
        return self._child.pid if self._child else 0

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._child is not None and self._child.returncode is None

    async def start(self) -> None:
        """Start the process; its output is appended to its log, or goes to ours where it has none."""
        with contextlib.ExitStack() as stack:
            log = None
            if self._log is not None:
                self._log.parent.mkdir(parents=True, exist_ok=True)
                log = stack.enter_context(self._log.open("ab"))
            self._child = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=dict(self._env),
                start_new_session=True,
                pass_fds=self._fds,
                preexec_fn=_end_with_parent,
            )

    async def wait_ready(self, probe: Probe, seconds: float) -> None:
        """Wait until the probe says yes; raises `StackError` with the last output if the process ends or is late."""
        deadline = time.monotonic() + seconds
        while not await probe():
            if not self.alive:
                raise StackError(f"{self.name} ended while starting:\n{self.last_output()}")
            if time.monotonic() > deadline:
                raise StackError(f"{self.name} was not ready after {seconds:.0f} s:\n{self.last_output()}")
            await asyncio.sleep(0.05)

    def last_output(self, lines: int = 15) -> str:
        """Return the end of what the process said."""
        if self._log is None or not self._log.exists():
            return ""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-lines:])

    async def stop(self, seconds: float = 15) -> None:
        """Ask the process to end, and kill it if it does not."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self.ended(), seconds)
        except TimeoutError:
            await self.kill()

    async def kill(self) -> None:
        """End the process at once (SIGKILL)."""
        self.signal(signal.SIGKILL)
        await self.ended()

    async def ended(self) -> None:
        """Wait for the end of the process."""
        if self._child is not None:
            await self._child.wait()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process, if it runs."""
        if self.alive:
            os.kill(self.pid, number)
