"""Connections of callers: slow ones, ones that are gone, and those for which there is no descriptor."""

import asyncio
import errno
import logging
import socket

import pytest

from functions_alone.host import connection
from functions_alone.host.connection import RefusedConnections
from functions_alone.host.http import HttpListener
from functions_alone.host.index import ANONYMOUS, AppFunction, HttpTrigger
from functions_alone.host.settings import HostSettings
from functions_alone.tests.support.waiting import eventually

BODY = b"POST /f HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n"


class Calls:
    """Says when there is a process for a function, and counts what it is asked to do."""

    def __init__(self, function):
        self.function, self.ready, self.count = function, asyncio.Event(), 0
        self.waiting = asyncio.Event()

    def prepare(self, _):
        return self

    async def possible(self):
        self.waiting.set()
        await self.ready.wait()

    async def __call__(self, *_):
        self.count += 1


@pytest.fixture
async def served():
    """A listener with one function, its address, and what it is asked."""
    trigger = HttpTrigger(route="f", methods=frozenset({"POST"}), level=ANONYMOUS)
    calls = Calls(AppFunction(name="f", trigger=trigger))
    listener = HttpListener(
        functions=[calls.function], prefix="", own=HostSettings.read({}), invoker=calls
    )
    listening = socket.create_server(("127.0.0.1", 0))
    await listener.start(listening)
    yield listening.getsockname(), calls
    await listener.stop()


@pytest.mark.parametrize("begun", [b"", b"POST /f HTT", BODY[:-2]])
async def test_a_head_that_does_not_come_ends_its_connection(monkeypatch, served, begun):
    """Whoever opens connections and asks nothing cannot keep them for ever."""
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.2)
    reader, writer = await asyncio.open_connection(*served[0])
    writer.write(begun)
    async with asyncio.timeout(60):
        assert await reader.read() == b""
    writer.close()


async def test_a_body_and_an_idle_connection_may_take_longer_than_a_head(monkeypatch, served):
    """The time is up while the body is awaited, and again while nothing is asked."""
    address, calls = served
    calls.ready.set()
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.05)
    reader, writer = await asyncio.open_connection(*address)
    for _ in range(2):
        writer.write(BODY)
        await asyncio.sleep(0.2)
        writer.write(b"x")
        assert await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(0.2)
    assert calls.count == 2
    writer.close()


@pytest.mark.parametrize("there", [True, False])
async def test_a_caller_who_is_gone_gets_nothing_done(served, there):
    """While no process was there it has asked again, most likely: each of its calls would still be carried out."""
    address, calls = served
    reader, writer = await asyncio.open_connection(*address)
    writer.write(BODY + b"x")
    await calls.waiting.wait()
    if not there:
        writer.close()
        await writer.wait_closed()
    calls.ready.set()
    if there:
        await reader.readuntil(b"\r\n\r\n")
        writer.close()

    async def served_another():
        reader, writer = await asyncio.open_connection(*address)
        writer.write(BODY + b"x")
        await reader.readuntil(b"\r\n\r\n")
        writer.close()
        return True

    await eventually(served_another)
    assert calls.count == 1 + there


def test_that_no_connection_can_be_taken_is_logged_once(caplog):
    """asyncio tells it with a traceback, hundreds of times a second; all else it still tells."""
    handler, loop = RefusedConnections(), asyncio.new_event_loop()
    error = OSError(errno.EMFILE, "Too many open files")
    for _ in range(3):
        handler(loop, {"message": "socket.accept() out of system resource", "exception": error})
    handler(loop, {"message": "Task exception was never retrieved"})
    loop.close()
    logged = [(record.levelno, record.getMessage()) for record in caplog.records]
    assert logged == [
        (logging.ERROR, "no connection can be taken for now: [Errno 24] Too many open files"),
        (logging.ERROR, "Task exception was never retrieved"),
    ]
