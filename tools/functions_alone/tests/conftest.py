"""Parts that the tests of several folders use, without any app."""

from functools import partial

import pytest

pytest.register_assert_rewrite(
    "functions_alone.tests.support.queue_user", "functions_alone.tests.support.waiting"
)

from functions_alone.alone import make_queues  # noqa: E402
from functions_alone.broker_config import configuration  # noqa: E402
from functions_alone.ports import Ports  # noqa: E402
from functions_alone.proxies import bypass_proxies  # noqa: E402
from functions_alone.stack import Stack, StackConfig, Topic  # noqa: E402
from functions_alone.tests.support.bus_queues import QUEUES  # noqa: E402 - what is asserted is rewritten from here on

EVENTS = "events"
"""The Storage Queue to which the topic delivers."""


def pytest_configure():
    """No proxy of this machine's user may come between a test and the parts."""
    bypass_proxies()


def pytest_xdist_auto_num_workers(config):
    """Start no workers for a part of the tests: one test alone begins sooner without."""
    whole = config.args == config.getini("testpaths") and not config.option.keyword
    return None if whole else 0


def parts(folder, **more):
    """What runs without a host: Azurite, the broker and the stand-ins for other services."""
    named = [{"name": name, **properties} for name, properties in QUEUES.items()]
    usual = {
        "ports": Ports.free(),
        "data": folder,
        "app": folder,
        "hosts": 0,
        "queues": configuration(named),
        "make": partial(make_queues, names=[EVENTS]),
        "topic": Topic(key="the-topics-key", queue=EVENTS),
        "channels": True,
        "restart": False,
    }
    return StackConfig(**(usual | more))


@pytest.fixture(scope="session")
async def services(tmp_path_factory):
    """Parts for all tests that leave them as they are."""
    async with Stack(parts(tmp_path_factory.mktemp("services"), in_memory=True)) as stack:
        yield stack


@pytest.fixture(scope="module")
async def own_parts(tmp_path_factory):
    """Parts that keep their data, for tests that stop them and start them again."""
    async with Stack(parts(tmp_path_factory.mktemp("parts"))) as stack:
        yield stack


@pytest.fixture
def config_of(tmp_path):
    """The configuration of such parts, with these changes."""
    return partial(parts, tmp_path)
