"""Python objects over a socket between the host and a worker.

Both ends belong to us, so the objects may be pickled.
"""

import asyncio
import pickle
import socket
import struct
from collections.abc import Callable
from typing import Any, Self, cast

_LENGTH = struct.Struct("!Q")


class ObjectChannel(asyncio.Protocol):
    """Passes each object that arrives to `received`, and calls `lost` when the other end is gone."""

    def __init__(self, received: Callable[[Any], None], lost: Callable[[], None]) -> None:
        self._received = received
        self._lost = lost
        self._incoming = bytearray()
        self._outgoing: list[object] = []
        self._transport: asyncio.Transport

    @classmethod
    async def over(
        cls, end: socket.socket, received: Callable[[Any], None], lost: Callable[[], None]
    ) -> Self:
        """Use this end of a pair of sockets."""
        loop = asyncio.get_running_loop()
        _, channel = await loop.create_unix_connection(lambda: cls(received, lost), sock=end)
        return channel

    def send(self, message: object) -> None:
        """Send an object. All objects of one turn of the event loop are sent together."""
        if not self._outgoing:
            asyncio.get_running_loop().call_soon(self._flush)
        self._outgoing.append(message)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        self._incoming += data
        while len(self._incoming) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._incoming)
            end = _LENGTH.size + length
            if len(self._incoming) < end:
                break
            messages = pickle.loads(self._incoming[_LENGTH.size : end])  # noqa: S301 - both ends are ours
            del self._incoming[:end]
            for message in messages:
                self._received(message)

    def connection_lost(self, _: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._lost()

    def _flush(self) -> None:
        content = pickle.dumps(self._outgoing, pickle.HIGHEST_PROTOCOL)
        self._outgoing = []
        self._transport.write(_LENGTH.pack(len(content)) + content)
