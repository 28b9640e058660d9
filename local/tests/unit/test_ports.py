"""Ports that side-by-side stacks are given."""

import socket

import pytest

from local.ports import HOST, RANDOM_PORTS, Ports, is_free, listen, listening_programs


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
