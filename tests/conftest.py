"""How the tests are spread over workers, and what is said meanwhile."""

import pytest

pytest.register_assert_rewrite("client", "failing", "inspection", "reading")

from progress import Progress, folder_of  # noqa: E402 - what they assert is rewritten from here on
from starts import STARTED, count_starts  # noqa: E402

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
