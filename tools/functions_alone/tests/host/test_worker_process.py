"""The worker process: what ends it, what becomes of its calls, and which functions share one."""

import re
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from functions_alone.faults import LocalCode
from functions_alone.tests.support.host_process import HostProcess
from functions_alone.tests.support.runner import alive
from functions_alone.tests.support.waiting import until

TIMEOUT = {"AzureFunctionsJobHost__functionTimeout": "00:00:02"}
TRIES = {"AzureFunctionsJobHost__extensions__queues__maxDequeueCount": "100"}
ENDED = {"overruns": (["does"], 0), "exits": ([], 1)}
"""The functions that overran, and how often the process ended by itself."""
FAILED_START = re.compile(
    rf"next try in ([\d.]+) s\): .*function_app\.py.* RuntimeError.*\[{LocalCode.APP_FAILED}\]"
)
OVERRUN = re.compile(r"is replaced: function (\w+) ran for more than 2 s")


def is_empty(messages):
    return messages == 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("worker")


@pytest.fixture(scope="module")
def queues(storage_queue, bus_queue, _own_names):
    """A Storage Queue, and two Service Bus queues."""
    return storage_queue("mortal"), bus_queue(next(_own_names)), bus_queue(next(_own_names))


@pytest.fixture(scope="module")
def _mortal(folder, settings, queues):
    _, single, batch = queues
    names = {"WORK_QUEUE": "mortal", "SINGLES": single.name, "BATCHES": batch.name}
    does = {
        "TICK": "00:00:00.1",
        "TICK_DOES": f"once {folder / 'timer'}",
        "FAIL_TO_LOAD": str(folder / "fail"),
    }
    host = HostProcess(folder, settings | TIMEOUT | TRIES | names | does)
    yield host.ready()
    host.stop()


@pytest.fixture
def host(_mortal):
    """A host whose functions may run for two seconds."""
    _mortal.log_start = _mortal.log.stat().st_size
    return _mortal


@pytest.fixture
def calls():
    """Calls over HTTP that are not waited for."""
    with ThreadPoolExecutor() as pool:
        yield pool


def replaced(host, worker):
    """Wait until another worker is there; it works."""
    until(host.workers, lambda workers: workers[-1] != worker)
    until(lambda: host.call("/does/nothing").status, lambda status: status == 200)
    assert host.process.poll() is None


@pytest.mark.parametrize("how", ["overruns", "exits"])
def test_what_ran_beside_a_function_that_ends_the_worker_is_done_all_the_same(
    host, folder, queues, calls, how
):
    """Messages are handled again, the timer goes on, a caller gets 500 and may ask again; the host stays."""
    storage, single, batch = queues
    worker = host.workers()[-1]
    armed = {
        name: folder / name
        for name in ("overrunning", "timer", "caller", "storage", "single", "batch")
    }
    begun = {name: path.with_suffix(".begun") for name, path in armed.items()}
    for path in begun.values():
        path.unlink(missing_ok=True)
    if how == "overruns":
        armed["overrunning"].touch()
        cause = calls.submit(host.call, f"/does/work?body=once%20{armed['overrunning']}")
        until(begun["overrunning"].exists)
    neighbours = ("timer", "caller", "storage", "single", "batch")
    for name in neighbours:
        armed[name].touch()
    caller = calls.submit(host.call, f"/does/work?body=once%20{armed['caller']}")
    storage.send_message(f"once {armed['storage']}")
    single.send(f"once {armed['single']}")
    batch.send(f"once {armed['batch']}")
    for name in neighbours:
        until(begun[name].exists)
    if how == "exits":
        cause = calls.submit(host.call, "/does/exit")

    assert (cause.result().status, caller.result().status) == (500, 500)
    replaced(host, worker)
    assert host.call(f"/does/work?body=once%20{armed['caller']}").status == 200
    until(single.under_way, is_empty)
    until(batch.under_way, is_empty)
    until(lambda: storage.get_queue_properties().approximate_message_count, is_empty)
    host.wait_for("timer")
    assert (
        OVERRUN.findall(host.log_text()),
        host.logged("it ended by itself (exit code 3)"),
    ) == ENDED[how]


def test_what_ran_beside_a_function_that_overruns_stands_still_until_its_own_time_is_up(
    host, folder, calls
):
    """Nothing says to it that its process was killed (load.md 3)."""
    armed, began = folder / "beside", time.monotonic()
    armed.touch()
    overrunning = calls.submit(host.call, "/does/cancel")
    until(time.monotonic, lambda now: now > began + 2.5)
    began = time.monotonic()
    assert host.call(f"/does/work?body=once%20{armed}").status == 500
    assert time.monotonic() - began > 1.9
    assert overrunning.result().status == 500
    until(host.log_text, lambda log_text: "calls that stand still: " in log_text)
    until(lambda: host.call("/does/nothing").status, lambda status: status == 200)


@pytest.mark.parametrize(
    ("path", "functions"),
    [("/does/block", {"does", "tick"}), ("/does/cancel", {"does"}), ("/blocks", {"blocks"})],
)
def test_a_function_that_does_not_answer_is_ended(host, path, functions):
    """One that blocks the loop or its thread; and one that raises CancelledError has given no answer, as on Azure.

    With the loop that is blocked the timer stands still too, and its time may be up first.
    """
    worker = host.workers()[-1]
    assert host.call(path).status == 500
    replaced(host, worker)
    assert functions & set(OVERRUN.findall(host.log_text()))
    assert host.logged("failed") == 0


def test_a_call_waits_for_a_worker_that_cannot_start_and_is_tried_ever_later(host, folder, calls):
    """An app that fails when it is loaded again must not keep the machine busy."""
    (folder / "fail").touch()
    assert host.call("/does/exit").status == 500
    waiting = calls.submit(host.call, "/does/nothing")
    first, second, *_ = until(
        lambda: FAILED_START.findall(host.log_text()), lambda found: len(found) > 1
    )
    (folder / "fail").unlink()
    assert waiting.result().status == 200
    assert float(second) == 2 * float(first)


@pytest.mark.soak
def test_a_message_uses_up_deliveries_while_there_is_no_worker(host, folder, queues):
    """Each fails at once, every 35 ms (host.md 6): a dozen are gone before a worker can be replaced."""
    _, single, _ = queues
    (folder / "fail").touch()
    assert host.call("/does/exit").status == 500
    single.send("hello")
    until(lambda: FAILED_START.findall(host.log_text()), lambda found: len(found) > 1)
    (folder / "fail").unlink()
    until(single.under_way, is_empty)
    assert [message["tries"] > 12 for message in host.wait_for("single")] == [True]
    assert host.logged("calls refused while there was no process") == 1


def test_lines_that_come_after_the_end_of_their_invocation_are_dropped(host):
    """As on Azure; those without any invocation are kept, and those in detail are not asked for."""
    assert host.call("/logs").status == 200
    assert host.call("/logs/release").status == 200
    assert [host.logged(f"said {how}") for how in ("in time", "too late", "in detail")] == [1, 0, 0]
    assert "the sample app is loaded" in host.log.read_text()


@pytest.fixture(scope="module")
def own_queue(storage_queue):
    return storage_queue("own")


@pytest.fixture(scope="module")
def grouped_host(folder, settings, own_queue):
    """A host in which each function group has a process of its own, and functions may run for ever."""
    own = {"AzureFunctionsJobHost__functionTimeout": "-1", "LOCAL_FUNCTION_PROCESSES": "each"}
    own |= {"TICK_DOES": f"pid {folder / 'timer.pid'}", "WORK_QUEUE": "own"}
    host = HostProcess(folder, settings | own, "special,does,from_queue,tick")
    yield host.ready()
    host.stop(signal.SIGKILL)


@pytest.mark.soak
def test_every_group_has_a_process_of_its_own(grouped_host, folder, own_queue):
    """The HTTP functions share one, as in Flex Consumption; any other function is by itself."""
    own_queue.send_message(f"pid {folder / 'queue.pid'}")
    by_name = {name: until_written(folder / f"{name}.pid") for name in ("timer", "queue")}
    http = {
        grouped_host.call(path).json()["process"] for path in ("/does/nothing", "/items/special")
    }
    assert len(http) == 1
    assert sorted([*http, *by_name.values()]) == sorted(grouped_host.workers())
    assert len(grouped_host.workers()) == 3


def until_written(path):
    return int(until(lambda: path.exists() and path.read_text()))


@pytest.mark.soak
def test_a_worker_that_ends_takes_only_its_own_calls_with_it(grouped_host, folder, calls):
    """They fail at once, however long they may run; the other groups keep their processes."""
    before, armed = grouped_host.workers(), folder / "neighbour"
    armed.touch()
    neighbour = calls.submit(grouped_host.call, f"/does/work?body=once%20{armed}")
    until(armed.with_suffix(".begun").exists)
    assert grouped_host.call("/does/exit").status == neighbour.result().status == 500
    until(grouped_host.workers, lambda now: len(now) == len(before) + 1)
    assert len([pid for pid in before if psutil.pid_exists(pid)]) == len(before) - 1


@pytest.mark.soak
def test_no_worker_outlives_a_host_that_is_killed(grouped_host, folder):
    """Not even one that does not listen."""
    processes = psutil.Process(grouped_host.process.pid).children(recursive=True)
    assert len(processes) == 4
    with socket.create_connection(("127.0.0.1", grouped_host.port)) as held:
        held.sendall(
            f"GET /does/spin?begun={folder / 'spins'} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        )
        until((folder / "spins").exists)
        grouped_host.process.kill()
        until(lambda: alive(processes), lambda left: left == [])
