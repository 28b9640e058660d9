"""One receiving link of the Service Bus SDK, driven frame by frame.

The SDK's `receive_messages` does not suit a host: after its first message it waits 200 ms for more, and holds the
socket meanwhile, so that nothing can be settled. It also hands back messages that arrive between two calls. This
module keeps exactly as much credit open as the host has room for, takes messages as soon as they arrive, and settles
in between.

For this it uses attributes of the SDK that are not public. No other module touches them. The lock file pins
azure-servicebus, so check these attributes at each upgrade: of the receiver `_handler` and `_build_received_message`;
of the handler `_received_messages`, `_connection`, `_link` and `settle_messages_async`; of the link its credit, state
and flow, `_incoming_transfer`, `_first_frame` and `_received_payload`.
"""

import queue
from collections.abc import Callable
from typing import Any

from azure.servicebus import ServiceBusReceivedMessage
from azure.servicebus.aio import ServiceBusReceiver

from functions_alone.host.errors import LinkLostError

RENEW_TIMEOUT_SECONDS = 5.0
# How long to look for a further frame when one has just come.
NEXT_FRAME_SECONDS = 0.001


class Link:
    """A receiving link. Make all calls from one task, because only one coroutine may use the SDK's socket."""

    def __init__(
        self, receiver: ServiceBusReceiver, *, on_undecodable: Callable[[Exception], None]
    ) -> None:
        """`on_undecodable` is called for each delivery that the SDK cannot decode. The link abandons it."""
        self._receiver = receiver
        self._on_undecodable = on_undecodable

    async def open(self) -> None:
        """Connect and attach. Raises the SDK's errors."""
        await self._receiver.__aenter__()
        self._handler = self._receiver._handler  # noqa: SLF001 - see above
        self._messages = self._handler._received_messages  # noqa: SLF001 - see above
        self._tolerate_undecodable()

    def _tolerate_undecodable(self) -> None:
        """Make the link abandon each delivery that the SDK cannot decode.

        Otherwise the SDK raises from whichever call reads the frame, as if the connection were lost.
        """
        link: Any = self._handler._link  # noqa: SLF001 - see above
        decode = link._incoming_transfer  # noqa: SLF001 - see above

        async def tolerant(frame: Any) -> None:
            try:
                await decode(frame)
            except Exception as error:  # noqa: BLE001 - a value of an unknown type is a TypeError, and so on
                # The SDK keeps the frames of this message, and would put them before the next one.
                link._received_payload = bytearray()  # noqa: SLF001 - see above
                first = link._first_frame  # noqa: SLF001 - see above
                self._on_undecodable(error)
                await self._abandon(delivery_id=first[1], delivery_tag=first[2])

        # No message came before this: the SDK attaches with a credit of 0, and `allow` gives the first.
        link._incoming_transfer = tolerant  # noqa: SLF001 - see above

    async def _abandon(self, *, delivery_id: int, delivery_tag: bytes) -> None:
        """Abandon the delivery, so that the broker counts it.

        After `maxDeliveryCount` deliveries the broker dead-letters the message.
        """
        await self._handler.settle_messages_async(
            delivery_id, delivery_tag, "modified", delivery_failed=True
        )

    async def close(self) -> None:
        """Hand back the messages that were not started, then disconnect."""
        await self._receiver.close()

    @property
    def buffered(self) -> int:
        """The number of messages that arrived and were not taken."""
        return int(self._messages.qsize())

    async def allow(self, count: int) -> None:
        """Allow the broker to send `count` more messages. It gets a message only when that makes a difference."""
        link = self._handler._link  # noqa: SLF001 - see above
        credit = link.current_link_credit if link is not None else 0
        if link is not None and count != credit and (credit <= count // 2 or count == 0):
            await link.flow(link_credit=count)

    async def wait(self, seconds: float, frames: int = 1) -> None:
        """Process up to `frames` frames, and wait `seconds` for each. Raises if the connection is lost."""
        handler = self._handler
        if not await handler.client_ready_async():
            if not self._is_attached():
                raise LinkLostError("the broker closed the link")
            return  # the token is being renewed; the SDK has read a frame for that
        connection: Any = handler._connection  # noqa: SLF001 - see above
        await connection.listen(wait=seconds, batch=frames)

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
        """Complete or abandon a message. Raises the SDK's errors, for example for a lost lock."""
        if succeeded:
            await self._receiver.complete_message(message)
        else:
            await self._receiver.abandon_message(message)

    async def renew(self, message: ServiceBusReceivedMessage) -> None:
        """Renew a message's lock. Raises the SDK's errors."""
        await self._receiver.renew_message_lock(message, timeout=RENEW_TIMEOUT_SECONDS)
