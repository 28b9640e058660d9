"""Ports that side-by-side stacks are given."""

import os
import socket
from pathlib import Path

import psutil
import pytest

from functions_alone.ports import HOST, RANDOM_PORTS, Ports, is_free, listen, listening_programs

OWN_NAME = Path(f"/proc/{os.getpid()}/comm")


def test_a_port_that_was_given_is_nobody_elses_though_nothing_listens_on_it_yet():
    port = Ports.free().http_port
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind((HOST, port))


def test_what_it_was_given_for_can_listen_there_again_and_again():
    port = Ports.free().http_port
    for _ in range(2):
        with listen(port):
            assert not is_free(port)


def test_ports_of_tests_are_not_those_of_outgoing_connections():
    """A part that is stopped for a while finds its port free."""
    ports = Ports.free()
    assert {getattr(ports, name) in RANDOM_PORTS for name in Ports.__dataclass_fields__} == {True}
    assert ports.shared() == []


def test_a_port_whose_program_nobody_finds_is_another_programs():
    """A program of another user, say: of its sockets nobody else may know."""
    assert listening_programs()[Ports.free().http_port] == "another program"


@pytest.mark.skipif(not OWN_NAME.exists(), reason="only Linux knows a process by its main thread")
def test_a_program_is_named_by_its_command_and_not_by_its_main_thread():
    """Node.js calls its main thread MainThread, which names no program to stop."""
    before = OWN_NAME.read_text()
    OWN_NAME.write_text("MainThread")
    try:
        with listen(port := Ports.free().http_port):
            named = listening_programs()[port]
    finally:
        OWN_NAME.write_text(before.strip())
    program = Path(psutil.Process().cmdline()[0]).name
    assert named == f"{program} (process {os.getpid()})"
