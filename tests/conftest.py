"""How the tests are spread over workers, what is said meanwhile, and what tests of several folders use."""

import pytest

pytest.register_assert_rewrite("client", "failing", "inspection", "reading")

from bus_queues import QUEUES  # noqa: E402 - what is asserted is rewritten from here on
from progress import Progress, folder_of  # noqa: E402
from starts import STARTED, count_starts  # noqa: E402

from local.stack import Stack, StackConfig  # noqa: E402

FIRST = ("system", "deployment", "host", "stack", "contract", "exploration")
"""What waits much comes first: meanwhile the rest has the cores."""


def pytest_configure(config):
    """Say how it goes where the results arrive; workers only count."""
    count_starts()
    if hasattr(config, "workerinput"):
        return
    plugins = config.pluginmanager
    plugins.register(Progress(lambda line: plugins.getplugin("terminalreporter").write_line(line, flush=True)))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Keep the tests of a file on one worker, unless they say otherwise; begin with the folders that wait much."""
    for item in items:
        if not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))
    items.sort(key=_place)


def _place(item):
    folder = folder_of(item.nodeid)
    return FIRST.index(folder) if folder in FIRST else len(FIRST)


def pytest_sessionfinish(session):
    """Tell the one who collects the results what was started here."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["started"] = dict(STARTED)


@pytest.fixture(scope="session")
async def services(tmp_path_factory):
    """Azurite, the broker and the Event Grid stand-in, for all tests that leave them as they are."""
    config = StackConfig.for_tests(tmp_path_factory.mktemp("services"), hosts=0, more_queues=QUEUES)
    async with Stack(config) as stack:
        yield stack
