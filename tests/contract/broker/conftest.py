"""A real broker process for the suite, or the namespace that SERVICEBUS_CONNECTION names."""

import os
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from azure.servicebus import ServiceBusMessage, ServiceBusReceivedMessage, ServiceBusSubQueue
from azure.servicebus.aio import ServiceBusClient, ServiceBusReceiver, ServiceBusSender
from azure.servicebus.exceptions import MessageAlreadySettled, MessageLockLostError
from broker_process import RunningBroker, opened
from bus_queues import OF_THE_BROKERS_TESTS as QUEUES
from waiting import PATIENCE_SECONDS

NAMESPACE = os.environ.get("SERVICEBUS_CONNECTION")


@pytest.fixture(scope="session")
def local_broker(request) -> RunningBroker | None:
    """The broker that all tests share; None where a namespace takes its place."""
    if NAMESPACE:
        return None
    ports = request.getfixturevalue("services").ports
    return RunningBroker(ports.amqp_port, f"http://127.0.0.1:{ports.broker_health_port}/health")


@pytest.fixture
def broker(local_broker) -> RunningBroker:
    """The shared broker, for tests that need the process or a queue with special properties."""
    if local_broker is None:
        pytest.skip("needs the local broker")
    return local_broker


@pytest.fixture(scope="module")
async def client(local_broker) -> AsyncIterator[ServiceBusClient]:
    """A client of the namespace or of the shared broker."""
    if NAMESPACE:
        client = ServiceBusClient.from_connection_string(NAMESPACE)
    else:
        # The SDK would try again, with growing pauses, what the tests expect to be refused.
        client = ServiceBusClient.from_connection_string(local_broker.connection_string, retry_total=0)
    async with client:
        yield client


@dataclass(frozen=True)
class QueueUser:
    """One queue with its links, open for all tests of a file, because opening one takes half a second."""

    name: str
    sender: ServiceBusSender
    receiver: ServiceBusReceiver
    dead_letters: ServiceBusReceiver
    received: list[ServiceBusReceivedMessage] = field(default_factory=list, repr=False)

    async def send(self, *bodies: str | bytes, **properties) -> None:
        for body in bodies:
            await self.sender.send_messages(ServiceBusMessage(body, **properties))

    async def receive(self, count: int = 1, wait: float = PATIENCE_SECONDS) -> list[ServiceBusReceivedMessage]:
        """Receive exactly `count` messages, or fail."""
        messages: list[ServiceBusReceivedMessage] = []
        while len(messages) < count:
            more = await self.receiver.receive_messages(count - len(messages), max_wait_time=wait)
            assert more, f"{self.name}: only {len(messages)} of {count} messages came within {wait} s"
            messages += more
            self.received.extend(more)
        return messages

    async def complete(self, *messages: ServiceBusReceivedMessage) -> None:
        for message in messages:
            await self.receiver.complete_message(message)

    async def let_go(self) -> None:
        """Complete what was received and not settled: what a failed test leaves would be its neighbours' failure."""
        while self.received:
            with suppress(MessageAlreadySettled, MessageLockLostError):
                await self.receiver.complete_message(self.received.pop())

    async def receive_dead(self) -> ServiceBusReceivedMessage:
        """Receive one message from the dead-letter queue."""
        [message] = await self.dead_letters.receive_messages(1, max_wait_time=PATIENCE_SECONDS)
        return message


@pytest.fixture(scope="module")
async def links(client) -> AsyncIterator[dict[str, QueueUser]]:
    """All queues of the suite; of a namespace only the one that SERVICEBUS_QUEUE names."""
    names = [os.environ.get("SERVICEBUS_QUEUE", "plain")] if NAMESPACE else list(QUEUES)
    found = {
        name: QueueUser(
            name,
            client.get_queue_sender(name),
            client.get_queue_receiver(name),
            client.get_queue_receiver(name, sub_queue=ServiceBusSubQueue.DEAD_LETTER),
        )
        for name in names
    }
    async with opened(*(link for user in found.values() for link in (user.sender, user.receiver, user.dead_letters))):
        yield found


@pytest.fixture
async def users(links) -> AsyncIterator[dict[str, QueueUser]]:
    """The same links for every test, and nothing in their hands afterwards."""
    yield links
    for user in links.values():
        await user.let_go()


@pytest.fixture
def plain(users) -> QueueUser:
    """A queue with a lock that outlasts every test, for the operations that any namespace has."""
    return next(iter(users.values()))


@pytest.fixture
def special(broker, users):
    """The queue of this name with the special properties that QUEUES gives it: only on the local broker."""
    return lambda name: users[name]
