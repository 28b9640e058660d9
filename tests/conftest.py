"""How the tests are spread over workers, what is said meanwhile, and what tests of several folders use."""

import gc
import os
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

gc.disable()  # what is loaded stays: to look through it for garbage took half of the time in which tests are collected
pytest.register_assert_rewrite("tests.support", "functions_alone.tests.support")

TOOLS = str(Path(__file__).parents[1] / "tools")
"""What a process needs on its path that runs one of the tools; `make` puts it there too."""
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (TOOLS, os.environ.get("PYTHONPATH"))))

from development.stack import AppStack, AppStackConfig  # noqa: E402
from functions_alone.proxies import bypass_proxies  # noqa: E402
from functions_alone.tests.support.starts import STARTED, count_starts  # noqa: E402
from tests.slices import FINISHED, SLICES, faults, slices_of  # noqa: E402
from tests.support.client import QUICK  # noqa: E402 - what is asserted is rewritten from here on
from tests.support.progress import Progress, folder_of  # noqa: E402
from tests.support.stacks import APP, running  # noqa: E402

ALL_OF_THEM = 8
"""Workers for a whole run, on two cores: most of them wait at any time. A part of the tests needs none."""

LONGEST = (
    "tests/system/test_long_outages.py",
    "tools/functions_alone/tests/conformance/test_settling.py",
    "tests/scale/test_poisoned_neighbours.py",
    "tests/scale/test_what_waits.py",
    "shared stack 1",
    "shared stack 2",
    "shared stack 3",
    "services 2",
    "services 3",
    "services 1",
    "another business",
    "tests/system/test_dependencies_away.py",
    "tests/system/test_versions_and_clocks.py",
    "tests/exploration/test_unattended_worlds.py",
    "samples/claims_with_approvals/test_grown.py",
)
"""What takes longest begins first."""

OF_MILLISECONDS = ("unit", "app", "repository")
"""The folders of unit tests."""

UNIT_SECONDS = 20 if os.environ.get("MUTANT_UNDER_TEST") else 120
"""How long one unit test may take, of which each takes milliseconds: what it waits for in vain, it says soon. Many
of mutmut's mutants make a test wait in vain. Those of the soak are large, and may take as long as any other test."""

FIRST = ("system", "exploration", "deployment")
"""Then what waits much: meanwhile the rest has the cores."""

TOGETHER = {
    "tests/system/test_workflows.py": "shared stack 1",
    "tests/system/test_operator_actions.py": "shared stack 1",
    "tests/system/test_example.py": "shared stack 2",
    "tests/system/test_notices.py": "shared stack 2",
    "tests/system/test_operator_lists.py": "shared stack 2",
    "tests/system/test_check.py": "shared stack 2",
    "tests/system/test_operator_api.py": "shared stack 2",
    "tests/system/test_bad_input.py": "shared stack 3",
    "tests/system/test_poison.py": "shared stack 3",
    "tests/system/test_bulk.py": "shared stack 3",
    "tests/deployment/test_another_business.py": "another business",
    "tests/deployment/test_new_business.py": "another business",
    "browser": "shared stack 3",
    "stack": "services 1",
    "contract": "services 1",
    "functions_alone/broker": "services 2",
    "functions_alone/conformance": "services 2",
    "functions_alone/host": "services 3",
    "functions_alone/stack": "services 3",
}
"""Files and folders whose tests use one stack, and so one worker. Any other file has one too, but for those of `APART`."""

APART = "exploration"
"""The folder whose tests share nothing, and some of which take minutes: each may go to another worker."""


SHARED = QUICK | {
    "STEP_TIMEOUT_SECONDS": "60",
    "FAILURE_THRESHOLD": "2",
    "NOTICE_TRIES": "2",
    "UNKNOWN_NAME_MAX_DELIVERIES": "2",
    "MIXED_VERSION_SECONDS": "8",
    "SCHEDULER_POLL_SCHEDULE": "*/3 * * * * *",
    "AzureFunctionsJobHost__extensions__queues__visibilityTimeout": "00:00:01",
}
"""Only steps that are meant to time out have a short time, by their workflows: no order fails because of its
neighbours, or of the machine."""


class Together(LoadScopeScheduling):
    """Hands out the tests of a file, or of files that belong together, to one worker, and those of `APART` one by one."""

    def _split_scope(self, nodeid):
        return nodeid if folder_of(nodeid) == APART else _scope(nodeid)


def pytest_xdist_make_scheduler(config, log):
    """The mark `xdist_group`, which could say it in each file, is ignored by xdist 3.8 under pytest 9."""
    return Together(config, log)


def pytest_xdist_auto_num_workers(config):
    """Start workers for a whole run only: one test alone begins sooner without."""
    return (
        ALL_OF_THEM
        if config.args == config.getini("testpaths") and not config.option.keyword
        else 0
    )


def pytest_addoption(parser):
    parser.addoption("--slice", action="append", choices=[*SLICES], help="soak tests of this slice")
    parser.addoption(
        "--note-failures", type=Path, help="a file that gets the id of each failed test"
    )


def pytest_configure(config):
    """Say how it goes where the results arrive; workers only count."""
    bypass_proxies()
    count_starts()
    if hasattr(config, "workerinput"):
        return
    plugins = config.pluginmanager
    if config.option.note_failures:
        plugins.register(FailureNotes(config.option.note_failures))
    plugins.register(
        Progress(lambda line: plugins.getplugin("terminalreporter").write_line(line, flush=True))
    )


def pytest_collection_modifyitems(config, items):
    """Begin with what belongs together, which is long, and with the folders that wait much; no unit test hangs long."""
    soak = [item for item in items if item.get_closest_marker("soak")]
    if wrong := list(faults(item.nodeid for item in soak)):
        raise pytest.UsageError(*wrong)
    if wanted := config.option.slice:
        left_out = [item for item in soak if slices_of(item.nodeid)[0] not in wanted]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
    items.sort(key=_place)
    for item in items:
        if folder_of(item.nodeid).endswith(OF_MILLISECONDS) and not item.get_closest_marker("soak"):
            item.add_marker(pytest.mark.timeout(UNIT_SECONDS))


class FailureNotes:
    """Notes which tests failed, in a file with one node id a line, and at the end that the run finished."""

    def __init__(self, path):
        self._path, self._failed = path, set()

    def pytest_runtest_logreport(self, report):
        if report.failed and report.nodeid not in self._failed:
            self._failed.add(report.nodeid)
            self._note(report.nodeid)

    def pytest_sessionfinish(self, exitstatus):
        if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            self._note(FINISHED)

    def _note(self, line):
        with self._path.open("a") as file:
            file.write(f"{line}\n")


def _place(item):
    return _rank(_scope(item.nodeid), LONGEST), _rank(folder_of(item.nodeid), FIRST)


def _scope(nodeid):
    file = nodeid.partition("::")[0]
    return TOGETHER.get(file) or TOGETHER.get(folder_of(nodeid)) or file


def _rank(name, names):
    return names.index(name) if name in names else len(names)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop():
    """Look for garbage from here on, and not in what was loaded."""
    gc.freeze()
    gc.enable()


def pytest_sessionfinish(session):
    """Tell the one who collects the results what was started here."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["started"] = dict(STARTED)


@pytest.fixture(scope="session")
async def services(tmp_path_factory):
    """Azurite, the broker and the Event Grid stand-in, for all tests that leave them as they are."""
    config = AppStackConfig.for_tests(tmp_path_factory.mktemp("services"), hosts=0)
    async with AppStack(config) as stack:
        yield stack


@pytest.fixture(scope="session")
async def shared(tmp_path_factory):
    """A whole stack: Azurite, broker, Event Grid stand-in, and a host that runs the app with the tests' workflows.

    Whoever uses it lets things fail for orders of its own only, and expects other orders beside them.
    """
    async with running(
        tmp_path_factory.mktemp("stack"), settings=SHARED, app=APP
    ) as stack_and_client:
        yield stack_and_client


@pytest.fixture(scope="session")
def stack(shared):
    """The stack that all tests of a worker share."""
    return shared[0]


@pytest.fixture(scope="session")
def client(shared):
    """Somebody who uses it."""
    return shared[1]
