"""The ports of the embedded stack, and whether they are free."""

import os
import random
import socket
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from functions_alone.faults import FaultsError, LocalCode, StackFault

if TYPE_CHECKING:
    import psutil

HOST = "127.0.0.1"

RANDOM_PORTS = range(12_000, 32_000)
"""Ports below those that Linux gives to outgoing connections."""


class StackError(FaultsError):
    """The stack cannot run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ports:
    """One port for each part that listens. The variable with the upper-case name changes it."""

    http_port: int = 7071
    blob_port: int = 10000
    queue_port: int = 10001
    table_port: int = 10002
    amqp_port: int = 5672
    broker_health_port: int = 5300
    eventgrid_port: int = 7080
    channels_port: int = 7081
    smtp_port: int = 7025

    @classmethod
    def free(cls) -> "Ports":
        """Reserve ports that no other program has, so that several stacks can run side by side."""
        free = _reserve_random_ports()
        return cls(**{field.name: next(free) for field in fields(cls)})

    @classmethod
    def from_environment(cls) -> "Ports":
        """Read the ports from the environment. Raises `StackError`, which names every wrong one."""
        chosen, faults = {}, list[StackFault]()
        for field in fields(cls):
            name = field.name.upper()
            text = os.environ.get(name)
            if text is None:
                continue
            if text.isdecimal() and 1 <= int(text) <= 65535:
                chosen[field.name] = int(text)
            else:
                faults.append(StackFault(LocalCode.PORT_INVALID, name, {"value": text}))
        ports = cls(**chosen)
        faults += ports.shared()
        if faults:
            raise StackError(*faults)
        return ports

    def shared(self) -> list[StackFault]:
        """Return a fault for each port that two parts would use."""
        users = defaultdict(list)
        for field in fields(self):
            users[getattr(self, field.name)].append(field.name.upper())
        return [
            StackFault(LocalCode.PORT_SHARED, " and ".join(names), {"port": port})
            for port, names in users.items()
            if len(names) > 1
        ]

    def check_free(self, without: Collection[str] = ()) -> None:
        """Raise `StackError` if other programs listen on ports, except on those of the names in `without`.

        It names every such port and the variable that changes it.
        """
        names = (field.name for field in fields(self) if field.name not in without)
        if taken := self.taken(*names):
            raise StackError(*taken)

    def taken(self, *names: str) -> list[StackFault]:
        """Return a fault for each of these ports that is taken. Its place is the variable that changes it."""
        numbers = {name: getattr(self, name) for name in names}
        taken = {name: port for name, port in numbers.items() if not is_free(port)}
        programs = listening_programs() if taken else {}
        return [
            StackFault(
                LocalCode.PORT_IN_USE, name.upper(), {"port": port, "program": programs[port]}
            )
            for name, port in taken.items()
        ]


def listening_programs() -> Mapping[int, str]:
    """Return the name and process id of the program that listens on each port, if this user may see them."""
    import psutil  # noqa: PLC0415 - needed only to explain a failed start

    found: defaultdict[int, str] = defaultdict(lambda: "another program")
    # macOS shows the connections of a process to its owner, but those of all processes to root alone.
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            for connection in process.net_connections("tcp"):
                if connection.status == psutil.CONN_LISTEN:
                    name = f"{_name(process)} (process {process.pid})"
                    found.setdefault(connection.laddr.port, name)  # children share the socket
    return found


def _name(process: "psutil.Process") -> str:
    # Linux knows a process by the name of its main thread, which Node.js sets to MainThread.
    command = process.cmdline()
    return Path(command[0]).name if command else process.name()


def is_free(port: int) -> bool:
    try:
        listen(port).close()
    except OSError:
        return False
    return True


def listen(port: int) -> socket.socket:
    """Open the listening socket that all hosts of a stack share."""
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        server.bind((HOST, port))
        server.listen(512)
    except OSError:
        server.close()
        raise
    return server


def _reserve_random_ports() -> Iterator[int]:
    for port in random.sample(RANDOM_PORTS, len(RANDOM_PORTS)):
        if _reserve(port):
            yield port


def _reserve(port: int) -> bool:
    """Reserve the port for as long as this process lives. Return whether no other program has it.

    This way no other program takes the port between its choice and the start of the part that listens there, or while
    a test has stopped that part for a moment. The socket is bound and does not listen. A server that shares addresses
    can therefore listen beside it.
    """
    held = socket.socket()
    try:
        held.bind(
            (HOST, port)
        )  # without SO_REUSEADDR, so that it fails where another process holds the port
    except OSError:
        held.close()
        return False
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.detach()
    return True
