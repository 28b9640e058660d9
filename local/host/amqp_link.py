"""One receiving link of the Service Bus SDK, driven frame by frame.

`receive_messages` waits 200 ms for more after its first message, holds the socket while it waits, so that nothing
can be settled meanwhile, and hands messages back that arrive between two calls. A host needs none of that: it
keeps exactly as much credit open as it has room, takes what arrives at once, and settles in between. This module
does so through a few attributes of the SDK that are not public, and is the only one that touches them.
"""

import logging
import queue
from typing import Any

from azure.servicebus import ServiceBusReceivedMessage
from azure.servicebus.aio import ServiceBusReceiver

from local.host.errors import LinkLostError

RENEW_TIMEOUT_SECONDS = 5.0
# How long to look for a further frame when one has just come.
NEXT_FRAME_SECONDS = 0.001

_log = logging.getLogger("local.host.amqp_link")


class Link:
    """All calls must come from one task: the SDK lets only one coroutine use the socket at a time."""

    def __init__(self, receiver: ServiceBusReceiver) -> None:
        self._receiver = receiver
        self._unreadable: list[tuple[int, bytes]] = []
        self._has_told = False

    async def open(self) -> None:
        """Connect and attach; raises the SDK's errors."""
        await self._receiver.__aenter__()
        self._handler = self._receiver._handler  # noqa: SLF001 - see above
        self._messages = self._handler._received_messages  # noqa: SLF001 - see above
        self._keep_what_cannot_be_read()

    def _keep_what_cannot_be_read(self) -> None:
        """Let a message that the SDK cannot decode cost itself alone: the SDK's error would end the link."""
        link: Any = self._handler._link  # noqa: SLF001 - see above
        read = link._incoming_transfer  # noqa: SLF001 - see above

        async def read_or_keep(frame: Any) -> None:
            try:
                await read(frame)
            except Exception as error:  # noqa: BLE001 - decoding fails in many ways, and the link is well
                link._received_payload = bytearray()  # noqa: SLF001 - see above
                _, number, tag, *_ = link._first_frame  # noqa: SLF001 - see above
                self._unreadable.append((number, tag))
                level = logging.DEBUG if self._has_told else logging.WARNING
                _log.log(level, "a message cannot be decoded, and is abandoned: %r", error)
                self._has_told = True

        link._incoming_transfer = read_or_keep  # noqa: SLF001 - see above

    async def close(self) -> None:
        """Hand back what was not started, then disconnect."""
        await self._receiver.close()

    @property
    def buffered(self) -> int:
        """Number of messages that arrived and were not taken."""
        return int(self._messages.qsize())

    async def allow(self, count: int) -> None:
        """Let the broker send `count` messages more; tells it only when that makes a difference."""
        link = self._handler._link  # noqa: SLF001 - see above
        credit = link.current_link_credit if link is not None else 0
        if link is not None and count != credit and (credit <= count // 2 or count == 0):
            await link.flow(link_credit=count)

    async def wait(self, seconds: float, frames: int = 1) -> None:
        """Process up to `frames` frames, waiting `seconds` for each; raises when the connection is gone."""
        handler = self._handler
        if not await handler.client_ready_async():
            if not self._is_attached():
                raise LinkLostError("the broker closed the link")
            return  # the token is being renewed; the SDK has read a frame for that
        connection: Any = handler._connection  # noqa: SLF001 - see above
        await connection.listen(wait=seconds, batch=frames)
        while self._unreadable:
            number, tag = self._unreadable.pop()
            await handler.settle_messages_async(number, tag, "modified", delivery_failed=True)

    def _is_attached(self) -> bool:
        link = self._handler._link  # noqa: SLF001 - see above
        return link is not None and link.get_state().name == "ATTACHED"

    def take(self, limit: int) -> list[ServiceBusReceivedMessage]:
        """Return up to `limit` of the messages that have arrived."""
        taken: list[ServiceBusReceivedMessage] = []
        while len(taken) < limit:
            try:
                frame = self._messages.get_nowait()
            except queue.Empty:
                break
            taken.append(self._receiver._build_received_message(frame))  # noqa: SLF001 - see above
        return taken

    async def settle(self, message: ServiceBusReceivedMessage, *, succeeded: bool) -> None:
        """Complete or abandon; raises the SDK's errors, such as for a lost lock."""
        if succeeded:
            await self._receiver.complete_message(message)
        else:
            await self._receiver.abandon_message(message)

    async def renew(self, message: ServiceBusReceivedMessage) -> None:
        """Renew a message's lock; raises the SDK's errors."""
        await self._receiver.renew_message_lock(message, timeout=RENEW_TIMEOUT_SECONDS)
