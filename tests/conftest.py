"""What tests of several folders use."""

import pytest
from bus_queues import QUEUES

from local.stack import Stack, StackConfig


@pytest.fixture(scope="session")
async def services(tmp_path_factory):
    """Azurite, the broker and the Event Grid stand-in, for all tests that leave them as they are."""
    config = StackConfig.for_tests(tmp_path_factory.mktemp("services"), hosts=0, more_queues=QUEUES)
    async with Stack(config) as stack:
        yield stack
