"""One running stack for the tests that only use it; those that break it start their own."""

import pytest
from client import QUICK, Client

from local.stack import Stack, StackConfig


@pytest.fixture(scope="module")
def stack_options():
    """What the stack of a file runs on; a file may say otherwise."""
    return {"settings": QUICK}


@pytest.fixture(scope="module")
async def stack(tmp_path_factory, stack_options):
    """A whole stack: Azurite, broker, Event Grid stand-in and one host, each a process of its own."""
    config = StackConfig.for_tests(tmp_path_factory.mktemp("stack"), **stack_options)
    async with Stack(config) as running:
        yield running


@pytest.fixture(scope="module")
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
