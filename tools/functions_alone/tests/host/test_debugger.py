"""A debugger attaches to a worker process on the port that a setting names."""

import os
import socket
import sys
from importlib.util import find_spec
from types import SimpleNamespace

import pytest

from functions_alone.faults import LocalCode, StackFault
from functions_alone.host.debugger import PACKAGE, PORT, listen_if_set
from functions_alone.host.errors import HostError
from functions_alone.tests.support.host_process import HostProcess
from functions_alone.tests.support.places import TOOLS

APP = """
import azure.functions as func

app = func.FunctionApp()


@app.route(route="ping", auth_level=func.AuthLevel.ANONYMOUS)
def ping(req: func.HttpRequest) -> str:
    return "pong"
"""
STAND_IN = """
import socket


def listen(address):
    try:
        server = socket.create_server(address)
    except OSError as error:
        raise RuntimeError(str(error)) from error
    globals()["server"] = server
"""


@pytest.fixture
def listened(monkeypatch):
    """The addresses on which a debugger was awaited."""
    addresses = []
    monkeypatch.setitem(sys.modules, PACKAGE, SimpleNamespace(listen=addresses.append))
    return addresses


@pytest.mark.parametrize("environ", [{}, {PORT: ""}])
def test_without_the_setting_nothing_listens(environ, listened):
    """An empty one counts as none."""
    listen_if_set(environ)
    assert listened == []


def test_the_worker_listens_on_this_machine_alone(listened):
    """On the port that the setting names."""
    listen_if_set({PORT: "5678"})
    assert listened == [("127.0.0.1", 5678)]


@pytest.mark.parametrize("text", ["0", "65536", "-1", "5678a", "localhost:5678"])
def test_what_is_no_port_is_refused(text, listened):
    """With the setting and its value."""
    with pytest.raises(HostError) as caught:
        listen_if_set({PORT: text})
    assert list(caught.value.faults) == [StackFault(LocalCode.PORT_INVALID, PORT, {"value": text})]
    assert listened == []


def test_without_debugpy_the_fault_says_how_to_install_it(monkeypatch):
    """Into the environment of the host."""
    monkeypatch.setitem(sys.modules, PACKAGE, None)
    with pytest.raises(HostError) as caught:
        listen_if_set({PORT: "5678"})
    [fault] = caught.value.faults
    assert fault.code is LocalCode.DEBUGGER_MISSING
    assert fault.facts == {"command": f"{sys.executable} -m pip install {PACKAGE}"}


@pytest.mark.parametrize("error", [OSError, RuntimeError])
def test_a_port_that_is_taken_is_named(error, monkeypatch):
    """By the fault of any other port on which nobody can listen, with the setting."""

    def listen(_):
        raise error("in use")

    monkeypatch.setitem(sys.modules, PACKAGE, SimpleNamespace(listen=listen))
    with pytest.raises(HostError) as caught:
        listen_if_set({PORT: "5678"})
    assert list(caught.value.faults) == [
        StackFault(LocalCode.CANNOT_LISTEN, f"port 5678 ({PORT})", {"reason": "in use"})
    ]


@pytest.fixture
def start(tmp_path):
    """Starts a host of a small app with these settings."""
    app, modules = tmp_path / "app", tmp_path / "modules"
    app.mkdir()
    modules.mkdir()
    (app / "function_app.py").write_text(APP)
    (app / "host.json").write_text('{"version": "2.0"}')
    if not find_spec(PACKAGE):
        (modules / f"{PACKAGE}.py").write_text(STAND_IN)
    hosts = []

    def started(settings):
        path = f"{TOOLS}{os.pathsep}{modules}"
        hosts.append(HostProcess(tmp_path, {"PYTHONPATH": path} | settings, app=app))
        return hosts[-1]

    yield started
    for host in hosts:
        if host.process.poll() is None:
            host.stop()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def test_a_debugger_reaches_the_worker_of_a_host(start):
    """While the host answers calls as it always does."""
    port = free_port()
    host = start({PORT: str(port)}).ready()
    with socket.create_connection(("127.0.0.1", port), 10):
        assert host.call("/api/ping").body == b"pong"


def test_a_host_whose_debugger_cannot_be_awaited_does_not_start(start):
    """Its output has the code of the fault."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        host = start({PORT: str(taken.getsockname()[1])})
        assert host.ended() == 1
    assert f"[{LocalCode.CANNOT_LISTEN}]" in host.log.read_text()
