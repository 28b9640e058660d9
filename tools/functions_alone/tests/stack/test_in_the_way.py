"""What is in the way of a start is named, with what to do; nobody else reads what is kept."""

import os
import socket
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from functions_alone.data_folder import FOLDERS, DataFolder, Layout
from functions_alone.faults import LocalCode, StackFault
from functions_alone.ports import HOST, Ports, StackError
from functions_alone.process import Command, Process
from functions_alone.stack import Stack
from functions_alone.tests.support.waiting import PATIENCE_SECONDS


async def test_every_taken_port_is_named_before_anything_starts(tmp_path, config_of):
    """All of them by one start, each with its program and the variable that moves it."""
    ports = Ports.free()
    taken = ("http_port", "queue_port", "amqp_port", "eventgrid_port")
    with ExitStack() as sockets:
        for name in taken:
            sockets.enter_context(socket.create_server((HOST, getattr(ports, name))))
        with pytest.raises(StackError) as raised:
            await Stack(config_of(ports=ports)).start()
    assert list(raised.value.faults) == [in_use(ports, name) for name in taken]
    assert list(tmp_path.iterdir()) == []


async def test_the_ports_of_parts_that_are_not_started_may_be_taken(config_of):
    """An app without Event Grid and channels needs six ports."""
    ports = Ports.free()
    taken = ("http_port", "eventgrid_port", "channels_port", "smtp_port")
    with ExitStack() as sockets:
        for name in taken:
            sockets.enter_context(socket.create_server((HOST, getattr(ports, name))))
        with pytest.raises(StackError) as raised:
            await Stack(config_of(ports=ports, topic=None, channels=False)).start()
    assert list(raised.value.faults) == [in_use(ports, "http_port")]


def in_use(ports, name):
    """The fault of a port on which this process listens."""
    own = f"{Path(psutil.Process().cmdline()[0]).name} (process {os.getpid()})"
    facts = {"port": getattr(ports, name), "program": own}
    return StackFault(LocalCode.PORT_IN_USE, name.upper(), facts)


async def test_a_part_that_loses_the_race_for_its_port_is_reported_with_the_variable(config_of):
    """Azurite ends when a port is taken, while whoever has the port answers in its place."""
    stack = Stack(config_of(in_memory=True))
    with socket.create_server((HOST, stack.ports.blob_port)), pytest.raises(StackError) as raised:
        await stack.start_azurite()
    ended, *taken = raised.value.faults
    assert (ended.code, ended.place) == (LocalCode.PART_ENDED, "azurite")
    assert taken == [in_use(stack.ports, "blob_port")]


async def test_an_event_grid_that_cannot_listen_is_named(config_of):
    """With its port, the program that has it, and the variable that moves it."""
    stack = Stack(config_of())
    with (
        socket.create_server((HOST, stack.ports.eventgrid_port)),
        pytest.raises(StackError) as raised,
    ):
        await stack.start_event_grid()
    assert list(raised.value.faults) == [in_use(stack.ports, "eventgrid_port")]


async def test_two_stacks_cannot_use_one_data_folder(services, config_of):
    """They would write each other's files to pieces."""
    with pytest.raises(StackError) as raised:
        await Stack(config_of(data=services.config.data)).start()
    [fault] = raised.value.faults
    assert fault == StackFault(LocalCode.DATA_IN_USE, str(services.config.data))


async def test_a_folder_that_cannot_be_made_is_named(tmp_path, config_of):
    """A file is in its place, say."""
    (tmp_path / "file").touch()
    with pytest.raises(StackError) as raised:
        await Stack(config_of(data=tmp_path / "file")).start()
    [fault] = raised.value.faults
    assert (fault.code, fault.place) == (LocalCode.DATA_UNUSABLE, str(tmp_path / "file"))


async def test_a_part_that_is_late_is_named_with_its_output(tmp_path):
    """Its log, its output, and what is still missing."""
    log = tmp_path / "log"
    sleeper = Command(
        name="sleeper",
        arguments=["sh", "-c", "echo hello; exec sleep 99"],
        env=os.environ,
        cwd=tmp_path,
        log=log,
    )
    process = Process(sleeper)
    await process.start()

    async def probe():
        return "" if process.output() else "no output"

    async def never():
        return "the kettle"

    await process.wait_ready(probe, PATIENCE_SECONDS)
    try:
        with pytest.raises(StackError) as raised:
            await process.wait_ready(never, 0)
    finally:
        await process.kill()
    facts = {"seconds": "0", "missing": "the kettle", "log": str(log), "output": "hello"}
    assert list(raised.value.faults) == [StackFault(LocalCode.PART_NOT_READY, "sleeper", facts)]


def test_nobody_else_on_the_machine_can_read_what_customers_sent(tmp_path):
    """Also where the folder was made before, and is open to all."""
    old, new = tmp_path / "old", tmp_path / "new"
    (old / "logs").mkdir(parents=True)
    (old / "logs").chmod(0o755)
    for path in (old, new):
        folder = DataFolder(path, Layout())
        folder.claim()
        assert {name: mode_of(path / name) for name in FOLDERS} == dict.fromkeys(FOLDERS, 0o700)
        folder.release()
    assert mode_of(new) == 0o700


def mode_of(path):
    return path.stat().st_mode & 0o777
