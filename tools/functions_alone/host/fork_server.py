"""The process that forks the workers.

It has the libraries loaded, so that a worker starts quickly. It has no threads, connections or event loop, because
these would not survive a fork.
"""

import asyncio
import contextlib
import errno
import gc
import importlib
import os
import signal
import socket
import struct
import traceback
from collections.abc import Callable, Sequence
from typing import NoReturn, Self

from functions_alone.faults import LocalCode, StackFault
from functions_alone.host.errors import HostError
from functions_alone.process import end_with_parent, how_it_ended

OFTEN_USED = (
    "azure.data.tables.aio",
    "azure.eventgrid.aio",
    "azure.identity.aio",
    "azure.storage.blob.aio",
)
"""Libraries that an app may need besides the host's own. Loaded here, they are loaded once for all workers."""

_NUMBER = struct.Struct("!i")
_FORK = 0

Work = Callable[[socket.socket], NoReturn]
"""The work of a worker, which gets its end of the connection to the host."""


class ForkServer:
    """The host's end of the connection to the fork server."""

    def __init__(self, pid: int, control: socket.socket) -> None:
        self._pid = pid
        self._control = control
        self._asking = asyncio.Lock()
        self._answers: asyncio.Queue[int] = asyncio.Queue()

    @classmethod
    def start(cls, work: Work) -> Self:
        """Fork the server. Call this before the process has an event loop or a thread."""
        ours, its = socket.socketpair()
        pid = os.fork()
        if not pid:
            ours.close()
            _live(lambda: _serve(its, work))
        its.close()
        ours.setblocking(False)  # noqa: FBT003 - it takes no name
        return cls(pid, ours)

    async def listen(self) -> None:
        """Receive the answers for `fork` and `reap`. Raises `HostError` if the fork server ends."""
        loop = asyncio.get_running_loop()
        with contextlib.suppress(ConnectionError):  # this too means that it is gone
            while answer := await loop.sock_recv(self._control, _NUMBER.size):
                self._answers.put_nowait(int(_NUMBER.unpack(answer)[0]))
        how = how_it_ended(_wait_for(self._pid))
        raise HostError(
            StackFault(
                LocalCode.COMPONENT_ENDED, "the process that forks the workers", {"reason": how}
            )
        )

    async def fork(self) -> tuple[int, socket.socket]:
        """Make a worker. Return its process id and our end of the connection to it.

        Raises `HostError` if the machine has no process or file descriptor left, which may pass.
        """
        try:
            ours, its = socket.socketpair()
        except OSError as error:
            raise _no_worker(error.errno) from error
        with its:
            answer = await self._ask(_FORK, its.fileno())
        if answer < 0:
            ours.close()
            raise _no_worker(-answer)
        return answer, ours

    async def reap(self, pid: int) -> str:
        """Return how a worker ended, and wait for its end if necessary.

        Until then no other process gets its id.
        """
        return how_it_ended(await self._ask(pid))

    def close(self) -> None:
        """Kill all workers, and wait until they have ended."""
        self._control.close()
        with contextlib.suppress(ChildProcessError):  # `listen` has seen its end
            os.waitpid(self._pid, 0)

    async def _ask(self, number: int, *fds: int) -> int:
        async with self._asking:
            with contextlib.suppress(ConnectionError):  # `listen` says that it is gone
                socket.send_fds(self._control, [_NUMBER.pack(number)], fds)
            return await self._answers.get()


def _no_worker(number: int | None) -> HostError:
    reason = os.strerror(number or errno.EAGAIN)
    return HostError(StackFault(LocalCode.FORK_FAILED, "a worker process", {"reason": reason}))


def _live(live: Callable[[], None]) -> NoReturn:
    """Run the function in a child, and never return to the code of the parent."""
    try:
        live()
    except BaseException:  # noqa: BLE001 - nothing must get out of here
        traceback.print_exc()
    os._exit(1)


def _serve(control: socket.socket, work: Work) -> None:
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, signal.SIG_IGN)  # the host ends us; the workers inherit this
    for name in OFTEN_USED:
        _load(name)
    gc.freeze()
    workers: set[int] = set()
    with contextlib.suppress(ConnectionError):  # this too means that the host is gone
        while _answer(control, work, workers):
            continue
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
        _wait_for(pid)
    os._exit(0)


def _answer(control: socket.socket, work: Work, workers: set[int]) -> bool:
    """Do what the host asks next. Return whether the host is still there."""
    request, fds, *_ = socket.recv_fds(control, _NUMBER.size, 1)
    if not request:
        return False
    number = int(_NUMBER.unpack(request)[0])
    if number == _FORK:
        answer = _fork(control, fds, work)
        if answer > 0:
            workers.add(answer)
    else:
        answer = _wait_for(number)
        workers.remove(number)
    control.sendall(_NUMBER.pack(answer))
    return True


def _load(name: str) -> None:
    try:
        importlib.import_module(name)
    except ImportError:
        return  # the app does without


def _fork(control: socket.socket, fds: Sequence[int], work: Work) -> int:
    """Return the process id of a new worker. A value below zero is the number of an error."""
    if not fds:
        return -errno.EMFILE  # none was free to receive the connection
    server = os.getpid()
    with socket.socket(fileno=fds[0]) as connection:
        try:
            pid = os.fork()
        except OSError as error:
            return -(error.errno or errno.EAGAIN)
        if not pid:
            end_with_parent(server, signal.SIGKILL)
            control.close()
            _live(lambda: work(connection))
    return pid


def _wait_for(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
