"""The broker that all tests share, and its special queues."""

from collections.abc import AsyncIterator

import pytest
from azure.servicebus.aio import ServiceBusClient

from functions_alone.tests.support.broker_process import RunningBroker, opened
from functions_alone.tests.support.bus_queues import OF_THE_BROKERS_TESTS as QUEUES
from functions_alone.tests.support.queue_user import QueueUser


@pytest.fixture(scope="session")
def broker(services) -> RunningBroker:
    """The shared broker, which these tests leave running."""
    return RunningBroker(
        services.ports.amqp_port, f"http://127.0.0.1:{services.ports.broker_health_port}/health"
    )


@pytest.fixture(scope="module")
async def client(broker) -> AsyncIterator[ServiceBusClient]:
    """A client of the shared broker."""
    # The SDK would try again, with growing pauses, what the tests expect to be refused.
    async with broker.connect(retry_total=0) as client:
        yield client


@pytest.fixture(scope="module")
async def links(client) -> AsyncIterator[dict[str, QueueUser]]:
    """All queues of the suite."""
    found = {name: QueueUser.of(client, name) for name in QUEUES}
    async with opened(*(link for user in found.values() for link in user.links)):
        yield found


@pytest.fixture
async def users(links) -> AsyncIterator[dict[str, QueueUser]]:
    """The same links for every test, and nothing in their hands afterwards."""
    yield links
    for user in links.values():
        await user.let_go()


@pytest.fixture
def plain(users) -> QueueUser:
    """A queue with a lock that outlasts every test."""
    return users["plain"]


@pytest.fixture
def special(users):
    """The queue of this name with the special properties that QUEUES gives it."""
    return lambda name: users[name]
