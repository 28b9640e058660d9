"""What a host cannot do without: its end is the end of the host, and what is away for a while is waited for."""

import asyncio
import contextlib
import resource
import signal
import socket

import psutil
import pytest

from functions_alone.faults import LocalCode
from functions_alone.host.host_json import ServiceBusOptions
from functions_alone.host.index import ServiceBusTrigger
from functions_alone.host.service_bus import ServiceBusListener
from functions_alone.tests.support.host_process import HostProcess
from functions_alone.tests.support.places import TOOLS
from functions_alone.tests.support.runner import alive
from functions_alone.tests.support.waiting import until

FORKING = "the process that forks the workers"
NO_FORK = f"[{LocalCode.FORK_FAILED}]"
PROCESSES = pytest.mark.parametrize(
    "processes", [pytest.param("one", marks=pytest.mark.soak), "each"]
)


@pytest.fixture
def start(tmp_path, settings):
    """Start hosts that run some functions, with what is patched before anything of theirs is run."""
    started = []

    def start(processes="one", patch=""):
        (tmp_path / "sitecustomize.py").write_text(patch)
        own = {
            "LOCAL_FUNCTION_PROCESSES": processes,
            "PYTHONPATH": f"{tmp_path}:{TOOLS}",
            "WORK_QUEUE": "vital",
        }
        started.append(HostProcess(tmp_path, settings | own, "does,from_queue"))
        return started[-1].ready()

    yield start
    for host in started:
        if host.process.poll() is None:
            host.stop(signal.SIGKILL)


def assert_it_lost(host, place, reason):
    """The last line of the log names what the host cannot do without, and why it is gone."""
    last = host.log_text().splitlines()[-1]
    assert f"[{LocalCode.COMPONENT_ENDED}]" in last
    assert place in last
    assert reason in last


def family_of(host):
    """The process that forks, and the workers."""
    workers = [psutil.Process(pid) for pid in host.workers()]
    return workers[0].parent(), workers


@PROCESSES
def test_a_host_whose_fork_server_is_killed_ends_and_says_so(start, processes):
    """Whether a worker is missing or not: at the next end of one there would be no other."""
    host = start(processes)
    fork_server, workers = family_of(host)
    fork_server.kill()
    assert host.ended() == 1
    assert_it_lost(host, FORKING, "killed by SIGKILL")
    until(lambda: alive(workers), lambda left: left == [])


@pytest.mark.soak
@PROCESSES
def test_a_host_ends_also_when_it_waits_for_an_answer_of_the_fork_server(start, processes):
    """The fork server is stopped when a worker ends, and then killed."""
    host = start(processes)
    fork_server, workers = family_of(host)
    fork_server.suspend()
    workers[-1].kill()
    until(lambda: alive(workers[-1:]), lambda left: left == [])
    fork_server.kill()
    assert host.ended() == 1
    assert_it_lost(host, FORKING, "killed by SIGKILL")


@pytest.mark.soak
def test_a_fork_server_that_is_stopped_for_a_while_forks_when_it_goes_on(start):
    """Nothing has ended, so the host stays."""
    host = start()
    fork_server, [worker] = family_of(host)
    fork_server.suspend()
    worker.kill()
    until(lambda: alive([worker]), lambda left: left == [])
    fork_server.resume()
    assert host.call("/does/nothing").status == 200
    assert host.process.poll() is None


@pytest.mark.soak
@pytest.mark.skipif(not psutil.LINUX, reason="only Linux tells a child of its parent's death")
def test_no_worker_outlives_a_fork_server_that_is_killed(start, tmp_path):
    """Not even one that does not listen."""
    host = start()
    fork_server, workers = family_of(host)
    with socket.create_connection(("127.0.0.1", host.port)) as held:
        held.sendall(
            f"GET /does/spin?begun={tmp_path / 'spins'} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        )
        until((tmp_path / "spins").exists)
        fork_server.kill()
        assert host.ended() == 1
    until(lambda: alive(workers), lambda left: left == [])


FAILS = """
import asyncio
from functions_alone.host.{module} import {name}

async def fail(*_):
    raise {error}

{name}.{method} = fail
"""
RESISTS = """
import asyncio
from functions_alone.host.storage_queue import StorageQueueListener

async def resist(*_):
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass

StorageQueueListener._poll = resist
"""


@pytest.mark.soak
def test_a_host_ends_although_one_of_its_tasks_heeds_no_cancellation(start):
    """It would else go on without what it has lost, and nobody would start another."""
    host = start(patch=RESISTS)
    fork_server, _ = family_of(host)
    fork_server.kill()
    assert host.ended() == 1
    assert_it_lost(host, FORKING, "killed by SIGKILL")


def test_a_service_bus_trigger_ends_although_the_sdk_swallowed_its_cancellation():
    """What the SDK does not pass on is seen before the next frame."""
    listener = ServiceBusListener(
        trigger=ServiceBusTrigger(queue="q", connection="", many=False),
        call=None,
        options=ServiceBusOptions(),
    )

    async def serve():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await listener._step(link=None)

    async def cancel():
        task = asyncio.create_task(serve())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())


KEEPER = {"module": "worker_process", "name": "WorkerProcess", "method": "_replace"}
TRIGGER = {"module": "storage_queue", "name": "StorageQueueListener", "method": "_poll"}
RENEWALS = {"module": "storage_queue", "name": "StorageQueueListener", "method": "_keep_locks"}
KEEPING = "what keeps a worker process for all functions"
SERVING = "the trigger of function from_queue"


@pytest.mark.parametrize(
    ("where", "error", "place", "reason"),
    [
        pytest.param(
            KEEPER,
            "RuntimeError('told to')",
            KEEPING,
            "RuntimeError: told to",
            marks=pytest.mark.soak,
        ),
        (TRIGGER, "RuntimeError('told to')", SERVING, "RuntimeError: told to"),
        pytest.param(
            TRIGGER,
            "asyncio.CancelledError",
            SERVING,
            "CancelledError",
            marks=pytest.mark.soak,
        ),
        pytest.param(
            RENEWALS,
            "RuntimeError('told to')",
            SERVING,
            "RuntimeError: told to",
            marks=pytest.mark.soak,
        ),
    ],
    ids=["keeper", "trigger", "cancelled", "renewals"],
)
def test_a_host_of_which_a_task_fails_ends_and_says_so(start, where, error, place, reason):
    """The task that has a worker replaced, a trigger, and what a trigger has going on beside it."""
    host = start(patch=FAILS.format(**where, error=error))
    if where is KEEPER:
        _, [worker] = family_of(host)
        worker.kill()
    assert host.ended() == 1
    assert_it_lost(host, place, reason)


@pytest.mark.soak
@pytest.mark.skipif(not psutil.LINUX, reason="only Linux limits another process")
@pytest.mark.parametrize("who", ["host", "fork server"])
def test_without_a_free_file_descriptor_a_fork_is_tried_again(start, who):
    """Until there is one, whichever of the two has to have it."""
    host = start()
    fork_server, workers = family_of(host)
    pid = {"host": host.process.pid, "fork server": fork_server.pid}[who]
    usual = resource.prlimit(
        pid, resource.RLIMIT_NOFILE, (3, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    )
    for worker in workers:
        worker.kill()
    until(lambda: host.logged(NO_FORK), lambda times: times > len(workers))
    resource.prlimit(pid, resource.RLIMIT_NOFILE, usual)
    works_with_the_same(host, fork_server, len(workers))


def works_with_the_same(host, fork_server, number):
    """So many workers are there again, and the fork server is the one that was there before."""
    assert host.call("/does/nothing").status == 200
    until(fork_server.children, lambda found: len(found) == number)
    assert host.process.poll() is None


NO_FORKS = """
import errno
import os
from pathlib import Path

fork = os.fork

def fork_unless_forbidden():
    if Path({marker!r}).exists():
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    return fork()

os.fork = fork_unless_forbidden
"""


@pytest.mark.soak
@PROCESSES
def test_a_fork_that_fails_is_tried_again(start, tmp_path, processes):
    """As when a container has no process left: by the fork server, which lives on."""
    marker = tmp_path / "no-forks"
    host = start(processes, NO_FORKS.format(marker=str(marker)))
    fork_server, workers = family_of(host)
    marker.touch()
    for worker in workers:
        worker.kill()
    until(lambda: host.logged(NO_FORK), lambda times: times > len(workers))
    marker.unlink()
    works_with_the_same(host, fork_server, len(workers))
