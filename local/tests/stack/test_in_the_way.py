"""What is in the way of a start is named, with what to do; nobody else reads what is kept."""

import socket
from contextlib import ExitStack

import pytest

from local.data_folder import FOLDERS, DataFolder, Layout
from local.ports import HOST, Ports, StackError
from local.stack import Stack


async def test_every_taken_port_is_named_before_anything_starts(tmp_path, config_of):
    """All of them in one message, each with the variable that moves it."""
    ports = Ports.free()
    taken = ("http_port", "queue_port", "amqp_port", "eventgrid_port")
    with ExitStack() as sockets:
        for name in taken:
            sockets.enter_context(socket.create_server((HOST, getattr(ports, name))))
        with pytest.raises(StackError) as raised:
            await Stack(config_of(ports=ports)).start()
    named = [
        name for name in Ports.__dataclass_fields__ if f"set {name.upper()}" in str(raised.value)
    ]
    assert named == list(taken)
    assert list(tmp_path.iterdir()) == []


async def test_a_part_that_loses_the_race_for_its_port_is_reported_with_the_variable(config_of):
    """Azurite ends when a port is taken, while whoever has the port answers in its place."""
    stack = Stack(config_of(in_memory=True))
    with socket.create_server((HOST, stack.ports.blob_port)), pytest.raises(StackError) as raised:
        await stack.start_azurite()
    assert "azurite ended while starting" in str(raised.value)
    assert f"{stack.ports.blob_port}: set BLOB_PORT" in str(raised.value)
    assert "QUEUE_PORT" not in str(raised.value)


async def test_two_stacks_cannot_use_one_data_folder(services, config_of):
    """They would write each other's files to pieces."""
    with pytest.raises(StackError, match="set DATA_DIR to another folder"):
        await Stack(config_of(data=services.config.data)).start()


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
