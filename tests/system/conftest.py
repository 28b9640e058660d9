"""A running stack that all tests of a worker share, and stacks of a test's own for those that break them."""

from pathlib import Path

import pytest
from client import QUICK, Client

from local.stack import Stack, StackConfig

SHARED = QUICK | {
    "ALLOWANCE_SECONDS": "60",
    "FAILURE_THRESHOLD": "2",
    "NOTICE_TRIES": "2",
    "SCHEDULER_POLL_SCHEDULE": "*/3 * * * * *",
}
"""Only steps that are meant to time out have a short time, by their workflows: no order fails because of its
neighbours, or of the machine."""


@pytest.fixture(scope="session")
async def stack(tmp_path_factory):
    """A whole stack: Azurite, broker, Event Grid stand-in, and a host that runs the app with the tests' workflows.

    Whoever uses it lets things fail for orders of its own only, and expects other orders beside them.
    """
    app = Path(__file__).parent / "app"
    async with Stack(StackConfig.for_tests(tmp_path_factory.mktemp("stack"), settings=SHARED, app=app)) as running:
        yield running


@pytest.fixture(scope="session")
async def client(stack):
    """Somebody who uses the running stack."""
    client = Client(stack)
    yield client
    await client.close()


@pytest.fixture
async def own_stack(tmp_path):
    """Start stacks of a test's own, which it may break; their data survives until the test ends."""
    running, clients = [], []

    async def start(**changes):
        config = StackConfig.for_tests(tmp_path, **({"settings": QUICK} | changes))
        stack = Stack(config)
        running.append(stack)
        await stack.start()
        client = Client(stack)
        clients.append(client)
        return stack, client

    yield start
    for client in clients:
        await client.close()
    for stack in running:
        await stack.stop()
