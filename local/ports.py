"""Ports of the embedded stack, and whether they are free."""

import os
import socket
from dataclasses import dataclass, fields

HOST = "127.0.0.1"


class StackError(Exception):
    """The stack cannot run; the message says why and what to do."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ports:
    """One port for each thing that listens; the variable of the upper-case name moves it."""

    http_port: int = 7071
    blob_port: int = 10000
    queue_port: int = 10001
    table_port: int = 10002
    amqp_port: int = 5672
    broker_health_port: int = 5300
    eventgrid_port: int = 7080

    @classmethod
    def free(cls) -> "Ports":
        """Return ports that nobody listens on now, so that several stacks can run side by side."""
        sockets = [socket.create_server((HOST, 0)) for _ in fields(cls)]
        numbers = [open_socket.getsockname()[1] for open_socket in sockets]
        for open_socket in sockets:
            open_socket.close()
        return cls(**dict(zip((field.name for field in fields(cls)), numbers, strict=True)))

    @classmethod
    def from_environment(cls) -> "Ports":
        """Read the ports that a person has set; raises `StackError` that names every wrong one."""
        chosen, faults = {}, []
        for field in fields(cls):
            text = os.environ.get(field.name.upper())
            if text is None:
                continue
            if text.isdecimal() and 1 <= int(text) <= 65535:
                chosen[field.name] = int(text)
            else:
                faults.append(f"{field.name.upper()}={text}: expected a port from 1 to 65535")
        if faults:
            raise StackError("\n".join(faults))
        return cls(**chosen)

    def check_free(self) -> None:
        """Raise `StackError` that names every port somebody else listens on, and the variable that moves it."""
        taken = [field.name for field in fields(self) if not _is_free(getattr(self, field.name))]
        if taken:
            lines = [f"- {getattr(self, name)}: set {name.upper()} to another one" for name in taken]
            raise StackError("\n".join(["these ports are in use (is the stack running already?):", *lines]))


def _is_free(port: int) -> bool:
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
