"""Output is written beside the work: neither a terminal nor a disk that takes nothing is in the way."""

import asyncio
import contextlib
import json
import logging
import os
import pty
import signal
import sys
import time
from pathlib import Path

import pytest

from functions_alone.faults import LocalCode
from functions_alone.hosts import HostsFile
from functions_alone.ports import StackError
from functions_alone.process import Command, Process
from functions_alone.supervise import Supervisor
from functions_alone.terminal import WAITING_LINES, Terminal
from functions_alone.tests.support.waiting import eventually, until

MANY = 5 * WAITING_LINES
FULL = Path("/dev/full")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a file that is full")


@pytest.fixture
def pipe():
    reading, writing = os.pipe()
    yield reading, writing
    for fd in (reading, writing):
        os.close(fd)


def test_a_terminal_that_nobody_reads_holds_nobody_up(pipe):
    """What does not fit is left out and counted; once it is read again, lines come whole and in order."""
    reading, writing = pipe
    with Terminal(writing) as terminal:
        for number in range(MANY):
            terminal.show(f"line {number:05} {'x' * 100}")
        os.set_blocking(reading, False)
        read = until_it_has(reading, b"\n", WAITING_LINES)
        terminal.show("the last")
        read += until_it_has(reading, b"the last\n", 1)
    lines = read.decode().splitlines()
    shown = [line for line in lines if line.startswith("line")]
    assert shown == sorted(set(shown))
    left_out = [int(line.split()[1]) for line in lines if line.endswith("are in the logs alone")]
    assert len(shown) + sum(left_out) == MANY
    assert left_out
    assert lines[-1] == "the last"


def until_it_has(fd, text, times):
    read = bytearray()

    def count():
        with contextlib.suppress(BlockingIOError):
            read.extend(os.read(fd, 65536))
        return read.count(text)

    until(count, lambda found: found >= times)
    return bytes(read)


def test_a_terminal_that_nobody_reads_holds_up_no_end(pipe):
    """Whoever stops the stack sees it end, although lines are still to be written."""
    with Terminal(pipe[1]) as terminal:
        for _ in range(MANY):
            terminal.show("x" * 100)


def test_a_terminal_that_is_gone_is_no_fault(pipe):
    """As when `make run | head` has seen enough."""
    reading, _ = pipe
    gone, writing = os.pipe()
    os.close(gone)
    with Terminal(writing) as terminal:
        for _ in range(MANY):
            terminal.show("nobody sees this")
    os.close(writing)
    assert os.fstat(reading)


def test_what_a_library_logs_is_shown_too(pipe):
    """It would otherwise be written to the terminal by whoever logs, who waits for that."""
    reading, writing = pipe
    with Terminal(writing):
        logging.getLogger("aiohttp").error("something happened")
        logging.getLogger("aiohttp").info("nothing happened")
    assert os.read(reading, 65536) == b"ERROR aiohttp something happened\n"


SWEPT = "host-1 | 2026-11-24 20:00:0{} INFO supervisor.service supervisor.swept recovered={}"
FAILED = "host-1 | 2026-11-24 20:00:0{} ERROR x failed"


def test_a_line_of_a_moment_ago_is_not_shown_again(monkeypatch, pipe):
    """But for its time; a warning is shown each time, and anything again after a minute."""
    reading, writing = pipe
    clock = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    with Terminal(writing) as terminal:
        for line in (SWEPT.format(1, 0), SWEPT.format(2, 0), SWEPT.format(3, 1)):
            terminal.show(line)
        for _ in range(2):
            terminal.show(FAILED.format(4))
            terminal.show("a line of its own")
        clock[0] += 61
        terminal.show(SWEPT.format(5, 0))
    shown = os.read(reading, 65536).decode().splitlines()
    assert shown == [
        SWEPT.format(1, 0),
        SWEPT.format(3, 1),
        *[FAILED.format(4), "a line of its own"] * 2,
        SWEPT.format(5, 0),
    ]


@pytest.mark.parametrize(("variables", "colour"), [({}, "\x1b[31m"), ({"NO_COLOR": "1"}, "")])
def test_errors_are_in_colour_where_it_is_a_terminal(monkeypatch, variables, colour):
    """And nowhere else, nor where somebody wants none."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    reading, writing = pty.openpty()
    with Terminal(writing) as terminal:
        terminal.show(FAILED.format(1))
    assert os.read(reading, 65536).decode().startswith(f"{colour}host-1 | ")
    for fd in (reading, writing):
        os.close(fd)


SPEAKS = """
import sys
for number in range(100_000):
    print("line", number, "x" * 20)
"""


@on_linux
async def test_a_child_is_read_although_its_log_cannot_be_written(tmp_path):
    """A full disk is said once, with its reason; every line is still shown, and the child comes to its end."""
    lines, shown = [], []
    process = Process(
        Command(
            name="speaker",
            arguments=[sys.executable, "-c", SPEAKS],
            env={},
            cwd=tmp_path,
            log=FULL,
            echo=shown.append,
            say=lines.append,
        )
    )
    await process.start()
    await process.ended()
    assert process.how_it_ended == "exit code 0"
    assert len(shown) == 100_000
    assert lines == [
        "the log of speaker cannot be written ([Errno 28] No space left on device); going on without it"
    ]


async def test_a_child_that_nobody_can_read_any_more_is_killed(tmp_path):
    """Or it would stand still for ever; its end is one that whoever keeps it sees."""
    lines = []

    def broken(line):
        raise ValueError(f"cannot show {line}")

    process = Process(
        Command(
            name="speaker",
            arguments=[sys.executable, "-c", "import time; print(1, flush=True); time.sleep(600)"],
            env={},
            cwd=tmp_path,
            log=tmp_path / "log",
            echo=broken,
            say=lines.append,
        )
    )
    await process.start()
    await process.ended()
    assert process.how_it_ended == "killed by SIGKILL"
    assert lines == ["the output of speaker cannot be read (cannot show 1); killed it"]


@on_linux
async def test_a_log_is_written_again_when_the_disk_has_space(tmp_path):
    """What is missing is said."""
    lines, shown = [], []
    log = tmp_path / "log"
    log.symlink_to(FULL)
    process = Process(
        Command(
            name="cat",
            arguments=[
                "sh",
                "-c",
                "while [ ! -e go ]; do echo before; sleep 0.05; done; echo after",
            ],
            env={},
            cwd=tmp_path,
            log=log,
            echo=shown.append,
            say=lines.append,
        )
    )
    await process.start()

    async def has_lines():
        return lines

    await eventually(has_lines)
    log.unlink()
    (tmp_path / "go").touch()
    await process.ended()
    assert lines[1:] == ["the log of cat is written again; a part is missing"]
    assert log.read_text().endswith("after\n")


async def test_what_would_start_nothing_again_ends_the_runner(tmp_path):
    """A stack whose parts stay down after their next end must not look as if it were well."""
    process = Process(
        Command(name="x", arguments=["true"], env={}, cwd=tmp_path, log=tmp_path / "log")
    )
    await process.start()
    stopped = asyncio.create_task(asyncio.Event().wait())

    def fail(_):
        raise RuntimeError("told to")

    supervisor = Supervisor(fail)
    supervisor.keep(process)
    with pytest.raises(StackError) as raised:
        await supervisor.until_it_fails(stopped)
    [fault] = raised.value.faults
    assert (fault.code, fault.place) == (LocalCode.PART_NOT_SUPERVISED, "x")
    assert fault.facts["reason"] == repr(RuntimeError("told to"))
    stopped.cancel()


async def test_the_runner_tells_of_a_host_that_ended_and_of_the_one_that_follows(tmp_path):
    """At once, in a file that hosts read; the end stays told, and a disk that takes nothing ends nothing."""
    path, seen = tmp_path / "hosts.json", []
    sleep = Command(
        name="host-1", arguments=["sleep", "99"], env={}, cwd=tmp_path, log=tmp_path / "log"
    )
    host, file = Process(sleep), HostsFile(path)

    def changed():
        file.write([host])
        seen.append(json.loads(path.read_text()))

    file.write([host])
    assert json.loads(path.read_text()) == []  # it was never started
    await host.start()
    file.write([host])
    first = {"name": "host-1", "pid": host.pid, "runs": True, "endedAt": None}
    assert json.loads(path.read_text()) == [first]
    supervisor = Supervisor(lambda _: None, changed)
    supervisor.keep(host)
    host.signal(signal.SIGKILL)
    await asyncio.to_thread(until, lambda: len(seen) == 2)
    await supervisor.stop()
    ([ended], [again]) = seen
    assert (ended["pid"], ended["runs"], again["runs"]) == (first["pid"], False, True)
    assert again["pid"] != ended["pid"]
    assert ended["endedAt"] == again["endedAt"] is not None
    await host.kill()
    HostsFile(tmp_path / "missing" / "hosts.json").write([host])
