"""The namespace under test: the local broker, or the one that SERVICEBUS_CONNECTION names (docs/reference/embedded-host.md)."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest

from functions_alone.connections import service_bus_connection_string
from functions_alone.tests.support.both_sdks import CLIENTS
from functions_alone.tests.support.broker_process import opened
from functions_alone.tests.support.queue_user import QueueUser

FOREIGN = os.environ.get("SERVICEBUS_CONNECTION")

ANY = "SERVICEBUS_QUEUE"
MOURNING = "SERVICEBUS_QUEUE_DEAD_LETTERING_EXPIRED"
FORWARDING = "SERVICEBUS_QUEUE_FORWARDING_DEAD_LETTERS"
UNIQUE = "SERVICEBUS_QUEUE_WITHOUT_DUPLICATES"
LOCAL_QUEUES = {ANY: "plain", MOURNING: "mourned", FORWARDING: "forwarding", UNIQUE: "unique"}
"""Queues by the setting that names them in a foreign namespace, where it also switches on the tests that need them."""

# The SDK would try again, with growing pauses, what the tests expect to be refused.
AT_ONCE = {"retry_total": 0}


@pytest.fixture(scope="session")
def connection_string(request) -> str:
    """The namespace, as an SDK wants it."""
    if FOREIGN:
        assert os.environ.get(ANY), f"{ANY} must name an empty queue of {FOREIGN.partition(';')[0]}"
        return FOREIGN
    return service_bus_connection_string(request.getfixturevalue("services").ports)


@pytest.fixture
def local(request) -> None:
    """For what only the local broker does, or shows with its special queues."""
    if FOREIGN:
        pytest.skip("shown on the local broker only")


@pytest.fixture(params=["aio", pytest.param("sync", marks=pytest.mark.soak)], scope="module")
async def client(request, connection_string) -> AsyncIterator[Any]:
    """A client of each SDK for Python; both send the same, so the second is left to the soak."""
    async with CLIENTS[request.param](connection_string, **AT_ONCE) as client:
        yield client


@dataclass
class OpenQueues:
    """Queues whose links stay open for all tests of a file."""

    client: Any
    stack: AsyncExitStack
    users: dict[str, QueueUser] = field(default_factory=dict)

    async def use(self, name: str) -> QueueUser:
        """Open a queue, if it is not open; it belongs to nobody else, since whatever it holds is removed."""
        if name not in self.users:
            user = QueueUser.of(self.client, name)
            await self.stack.enter_async_context(opened(*user.links))
            assert await user.receiver.peek_messages(1, sequence_number=1) == [], (
                f"{name} is somebody else's"
            )
            self.users[name] = user
        return self.users[name]


@pytest.fixture(scope="module")
async def open_queues(client) -> AsyncIterator[OpenQueues]:
    """The queues that the tests of a file have used so far."""
    async with AsyncExitStack() as stack:
        yield OpenQueues(client, stack)


def name_of(setting: str) -> str:
    """The queue that this setting names, or that the local broker has for it."""
    name = os.environ.get(setting) if FOREIGN else LOCAL_QUEUES.get(setting, setting)
    if not name:
        pytest.skip(f"{setting} names no queue")
    return name


@pytest.fixture
async def use(open_queues) -> AsyncIterator[Callable[[str], Awaitable[QueueUser]]]:
    """Give a queue by the setting that names it, and leave every queue empty."""

    async def named(setting: str) -> QueueUser:
        return await open_queues.use(name_of(setting))

    yield named
    for user in open_queues.users.values():
        await user.leave_empty()


@pytest.fixture
async def any_queue(connection_string) -> AsyncIterator[str]:
    """The name of any queue, for clients that are not Python's."""
    name = name_of(ANY)
    yield name
    async with CLIENTS["aio"](connection_string) as client:
        user = QueueUser.of(client, name)
        await user.leave_empty()
        await user.close()


@pytest.fixture
async def queue(use) -> QueueUser:
    """Any queue without sessions. Its lock is held to be longer than a test takes."""
    return await use(ANY)


@pytest.fixture
def forwarding_name() -> str:
    """The name of the queue that forwards its dead letters."""
    return name_of(FORWARDING)


@pytest.fixture
async def forwarding(client, forwarding_name) -> AsyncIterator[tuple[Any, Any]]:
    """Sender and receiver of a queue that forwards its dead letters to the queue of the other fixture.

    Nobody may receive from its own dead-letter queue, so it is no `QueueUser`.
    """
    sender = client.get_queue_sender(forwarding_name)
    async with opened(sender, client.get_queue_receiver(forwarding_name)) as links:
        yield links


@pytest.fixture
async def unread(client) -> AsyncIterator[QueueUser]:
    """Any queue, with nobody who receives from it, for tests with receivers of their own."""
    user = QueueUser.of(client, name_of(ANY))
    yield user
    await user.leave_empty()
    await user.close()


@pytest.fixture
async def hasty(use) -> QueueUser:
    """A queue with a short lock, or in a foreign namespace the one there is, however long that takes."""
    return await use(ANY if FOREIGN else "quick")


@pytest.fixture
async def lasting(use) -> QueueUser:
    """The same with time enough to renew a lock: `AutoLockRenewer` counts in whole seconds."""
    return await use(ANY if FOREIGN else "renewed")


@pytest.fixture
async def leisurely(use) -> QueueUser:
    """The same with a lock that the SDK begins to renew ten seconds before it ends, as it would any longer one."""
    return await use(ANY if FOREIGN else "renewed-often")
