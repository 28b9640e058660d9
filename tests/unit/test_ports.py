"""Ports that side-by-side stacks are given."""

import socket

import pytest

from local.ports import HOST, Ports, is_free, listen


def test_a_port_that_was_given_is_nobody_elses_though_nothing_listens_on_it_yet():
    port = Ports.free().http_port
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind((HOST, port))


def test_what_it_was_given_for_can_listen_there_again_and_again():
    port = Ports.free().http_port
    for _ in range(2):
        with listen(port):
            assert not is_free(port)
