"""A running stack that all tests of a worker share."""

import pytest
from client import QUICK
from stacks import APP, running

SHARED = QUICK | {
    "STEP_TIMEOUT_SECONDS": "60",
    "FAILURE_THRESHOLD": "2",
    "NOTICE_TRIES": "2",
    "UNKNOWN_NAME_TRIES": "2",
    "SCHEDULER_POLL_SCHEDULE": "*/3 * * * * *",
    "AzureFunctionsJobHost__extensions__queues__visibilityTimeout": "00:00:01",
}
"""Only steps that are meant to time out have a short time, by their workflows: no order fails because of its
neighbours, or of the machine."""


@pytest.fixture(scope="session")
async def shared(tmp_path_factory):
    """A whole stack: Azurite, broker, Event Grid stand-in, and a host that runs the app with the tests' workflows.

    Whoever uses it lets things fail for orders of its own only, and expects other orders beside them.
    """
    async with running(tmp_path_factory.mktemp("stack"), settings=SHARED, app=APP) as stack_and_client:
        yield stack_and_client


@pytest.fixture(scope="session")
def stack(shared):
    """The stack that all tests of a worker share."""
    return shared[0]


@pytest.fixture(scope="session")
def client(shared):
    """Somebody who uses it."""
    return shared[1]
