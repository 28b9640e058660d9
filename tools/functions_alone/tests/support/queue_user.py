"""One queue of Service Bus with its links, as tests use it."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from azure.servicebus import (
    ServiceBusMessage,
    ServiceBusMessageState,
    ServiceBusReceivedMessage,
    ServiceBusSubQueue,
)
from azure.servicebus.aio import ServiceBusReceiver, ServiceBusSender
from azure.servicebus.exceptions import MessageAlreadySettled, MessageLockLostError

from functions_alone.tests.support.waiting import PATIENCE_SECONDS, eventually


@dataclass(frozen=True)
class QueueUser:
    """A queue with its links, open for all tests of a file, because opening one takes half a second."""

    name: str
    sender: ServiceBusSender
    receiver: ServiceBusReceiver
    dead_letters: ServiceBusReceiver
    received: list[ServiceBusReceivedMessage] = field(default_factory=list, repr=False)

    @classmethod
    def of(cls, client: Any, name: str) -> "QueueUser":
        """A user whose links are not open yet."""
        return cls(
            name,
            client.get_queue_sender(name),
            client.get_queue_receiver(name),
            client.get_queue_receiver(name, sub_queue=ServiceBusSubQueue.DEAD_LETTER),
        )

    @property
    def links(self) -> tuple[ServiceBusSender, ServiceBusReceiver, ServiceBusReceiver]:
        """All that can be opened."""
        return self.sender, self.receiver, self.dead_letters

    async def close(self) -> None:
        """Close the links that using them has opened."""
        await asyncio.gather(*(link.close() for link in self.links))

    async def send(self, *bodies: str | bytes, **properties: Any) -> None:
        for body in bodies:
            await self.sender.send_messages(ServiceBusMessage(body, **properties))

    async def receive(
        self, count: int = 1, wait: float = PATIENCE_SECONDS
    ) -> list[ServiceBusReceivedMessage]:
        """Receive exactly `count` messages, or fail."""
        messages: list[ServiceBusReceivedMessage] = []
        while len(messages) < count:
            more = await self.receiver.receive_messages(count - len(messages), max_wait_time=wait)
            assert more, (
                f"{self.name}: only {len(messages)} of {count} messages came within {wait} s"
            )
            messages += more
            self.received.extend(more)
        return messages

    async def complete(self, *messages: ServiceBusReceivedMessage) -> None:
        for message in messages:
            await self.receiver.complete_message(message)

    async def receive_dead(self) -> ServiceBusReceivedMessage:
        """Receive one message from the dead-letter queue."""
        [message] = await self.dead_letters.receive_messages(1, max_wait_time=PATIENCE_SECONDS)
        return message

    async def bury(self) -> ServiceBusReceivedMessage:
        """Receive one message from the dead-letter queue, and complete it."""
        message = await self.receive_dead()
        await self.dead_letters.complete_message(message)
        return message

    async def let_go(self) -> None:
        """Complete what was received and not settled: what a failed test leaves would be its neighbours' failure."""
        while self.received:
            with suppress(MessageAlreadySettled, MessageLockLostError):
                await self.receiver.complete_message(self.received.pop())

    async def leave_empty(self) -> None:
        """Remove whatever a test has left, in whichever state."""
        await self.let_go()
        for receiver in (self.receiver, self.dead_letters):
            await eventually(lambda receiver=receiver: self._is_empty(receiver))

    async def _is_empty(self, receiver: ServiceBusReceiver) -> bool:
        left = await receiver.peek_messages(100, sequence_number=1)
        scheduled = _numbers(left, ServiceBusMessageState.SCHEDULED)
        deferred = _numbers(left, ServiceBusMessageState.DEFERRED)
        if scheduled:
            await self.sender.cancel_scheduled_messages(scheduled)
        taken = await receiver.receive_deferred_messages(deferred) if deferred else []
        if len(scheduled) + len(deferred) < len(left):
            taken += await receiver.receive_messages(len(left), max_wait_time=1)
        for message in taken:
            await receiver.complete_message(message)
        return not left


def _numbers(
    messages: Iterable[ServiceBusReceivedMessage], state: ServiceBusMessageState
) -> list[int]:
    return [message.sequence_number for message in messages if message.state == state]
