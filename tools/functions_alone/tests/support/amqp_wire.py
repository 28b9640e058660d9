"""A connection to the broker frame by frame, to see and send what an SDK hides. Uses the codec of the Python SDK."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from azure.servicebus._pyamqp._decode import decode_frame
from azure.servicebus._pyamqp._encode import encode_frame
from azure.servicebus._pyamqp.endpoints import Source, Target
from azure.servicebus._pyamqp.performatives import AttachFrame, BeginFrame, FlowFrame, OpenFrame

from functions_alone.tests.support.waiting import PATIENCE_SECONDS

SASL_MECHANISMS, SASL_OUTCOME = 0x40, 0x44
ATTACH, FLOW, TRANSFER, DISPOSITION, DETACH = 0x12, 0x13, 0x14, 0x15, 0x16
AMQP_HEADER, SASL_HEADER = b"AMQP\x00\x01\x00\x00", b"AMQP\x03\x01\x00\x00"
AMQP_FRAME, SASL_FRAME = b"\x00", b"\x01"
UNSETTLED, SETTLED = 0, 1
"""Sender settle modes: a settled message is gone once it is delivered."""

OPEN = OpenFrame("c", "localhost", 65536, 1, None, None, None, None, None, None)
BEGIN = BeginFrame(None, 0, 100, 100, 10, None, None, None)


class Frame(NamedTuple):
    """A frame that the broker sent: its type, and its fields by their places in the standard."""

    code: int
    fields: list[Any]


class Wire:
    """One end of a connection; its session has channel 0."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def start(self, header: bytes) -> None:
        """Exchange protocol headers."""
        self._writer.write(header)
        assert await self._reader.readexactly(len(header)) == header

    def send(self, *performatives: NamedTuple, kind: bytes = AMQP_FRAME) -> None:
        """Send frames in one piece."""
        frames = (encode_frame(performative, kind) for performative in performatives)
        self._writer.write(b"".join(head + b"\0\0" + body for head, body in frames))

    async def receive(self) -> Frame:
        """Return the next frame that is not a sign of life."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                size = int.from_bytes(await self._reader.readexactly(4), "big")
                content = await self._reader.readexactly(size - 4)
                if len(content) > 4:
                    return Frame(*decode_frame(memoryview(content)[4:]))

    async def receive_until(self, code: int) -> list[Frame]:
        """Return the frames up to the first of this type."""
        frames = [await self.receive()]
        while frames[-1].code != code:
            frames.append(await self.receive())
        return frames


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[Wire]:
    """A connection without a protocol header yet, closed at the end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Wire(reader, writer)
    finally:
        writer.close()


def attach_receiver(address: str, settle_mode: int = UNSETTLED) -> AttachFrame:
    """Attach a link, with handle 0, that receives from this address."""
    ends = Source(address=address), Target(address="mine")
    return AttachFrame("l", 0, True, settle_mode, 0, *ends, None, False, *[None] * 5)


def attach_sender(address: str) -> AttachFrame:
    """Attach a link, with handle 0, that sends to this address."""
    ends = Source(address="mine"), Target(address=address)
    return AttachFrame("l", 0, False, UNSETTLED, 0, *ends, None, False, 0, *[None] * 4)


def credit(count: int, *, drain: bool = False) -> FlowFrame:
    """Ask for messages on the link with handle 0, which has received none."""
    return FlowFrame(0, 100, 0, 100, 0, 0, count, None, drain, None, None)
