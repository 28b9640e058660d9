"""Outages of services that others go on using."""

import asyncio
import contextlib
from collections.abc import Callable

from functions_alone.ports import HOST, Ports


class Gateway:
    """A port that leads to a service; while it is closed nobody listens on it, and no connection is left.

    With `answers` off, what the service says is lost.
    """

    def __init__(self, service_port: int) -> None:
        self.port = Ports.free().http_port
        self._service_port = service_port
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []
        self.answers = True

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._lead, HOST, self.port)

    async def close(self) -> None:
        if self._server:
            self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _lead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        service_reader, service_writer = await asyncio.open_connection(HOST, self._service_port)
        self._writers += writer, service_writer
        await asyncio.gather(
            self._copy(reader, service_writer, lambda: True),
            self._copy(service_reader, writer, lambda: self.answers),
        )

    @staticmethod
    async def _copy(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, goes: Callable[[], bool]
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if goes():
                    writer.write(data)
                await writer.drain()
        writer.close()
