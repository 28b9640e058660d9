"""Start-up: settings, the choice of functions, faults."""

import signal
import socket

import azure.functions as func
import pytest
from conftest import Host

from local.host.errors import HostError
from local.host.host import make_listener
from local.host.host_json import HostJson, read_host_json
from local.host.http import HttpListener
from local.host.index import HttpTrigger, index_functions
from local.host.invoke import Invoker
from local.host.settings import AppSettings, HostSettings


def test_missing_settings_are_all_named(tmp_path):
    """Names of queues, schedules and connections that are missing stand in one message; the exit code is 1."""
    host = Host(tmp_path, {"Bus": "Endpoint=sb://x/", "SINGLES": "s"})
    with host.process.stdout:
        assert host.process.wait(timeout=15) == 1
    assert host.log.read_text() == "error: missing app settings: WORK_QUEUE, Storage, BATCHES, TICK\n"


def two_routes():
    app = func.FunctionApp()
    for name in ("first", "second"):
        app.function_name(name)(app.route(route=name)(lambda req: None))
    return app.get_functions()


def test_an_unknown_function_is_refused():
    """A wrong name is named, along with the right ones."""
    with pytest.raises(HostError, match=r"^no such function: frist \(there are: first, second\)$"):
        index_functions(two_routes(), AppSettings(values={}), frozenset({"frist", "second"}))


def test_a_function_can_be_disabled_by_setting():
    """AzureWebJobs.<name>.Disabled switches a function off, as in Azure."""
    settings = AppSettings(values={"AzureWebJobs.first.Disabled": "1"})
    assert [each.name for each in index_functions(two_routes(), settings, None)] == ["second"]


BUS = {"arg_name": "x", "queue_name": "q", "connection": "C"}


@pytest.mark.parametrize(
    ("decorate", "message"),
    [
        (lambda app: app.blob_trigger("x", "a/b", "C"), "this host has no trigger blobTrigger"),
        (lambda app: app.route("admin/x"), "route admin/x: paths under /admin and /runtime are the host's own"),
        (lambda app: app.route("{a:regex(x)}"), "route {a:regex(x)}: this host has no constraint regex(x)"),
        (lambda app: app.timer_trigger("x", "* * *"), "schedule '* * *': Wrong number of fields"),
        (
            lambda app: app.service_bus_queue_trigger(**BUS, is_sessions_enabled=True),
            "this host has no Service Bus sessions",
        ),
        (
            lambda app: app.service_bus_topic_trigger("x", "C", "t", "s"),
            "this host has no Service Bus topics",
        ),
        (
            lambda app: lambda f: app.route("a")(app.queue_output("x", "q", "C")(f)),
            "this host has no binding queue",
        ),
    ],
)
def test_what_the_host_cannot_do_is_refused(decorate, message):
    """A binding, route or schedule that this host does not know ends the start with a clear message."""
    app = func.FunctionApp()
    app.function_name("f")(decorate(app)(lambda x: None))
    with pytest.raises(HostError) as caught:
        start_up(app)
    assert str(caught.value) == f"function f: {message}"


def start_up(app):
    [function] = index_functions(app.get_functions(), AppSettings(values={"C": "c"}), None)
    invoker = Invoker(timeout=None, threads=1)
    if isinstance(function.trigger, HttpTrigger):
        HttpListener(functions=[function], prefix="", key="", invoker=invoker, grace=1.0)
    else:
        make_listener(function, HostJson(), HostSettings.read({}), invoker)


def test_a_bad_host_json_is_refused(tmp_path):
    """The message names the place in the file."""
    (tmp_path / "host.json").write_text('{"extensions": {"queues": {"batchSize": 33}}}')
    with pytest.raises(HostError, match=r"extensions\.queues\.batchSize: .* less than or equal to 32"):
        read_host_json(tmp_path)


def test_hosts_share_an_inherited_socket_and_run_only_what_they_are_told(tmp_path):
    """Functions not chosen need no settings and have no route; when one host stops, the other goes on."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        inherited = {"listen": ("--listen-fd", str(listening.fileno())), "pass_fds": [listening.fileno()]}
        hosts = [Host(tmp_path, {}, functions="special, secret", **inherited) for _ in range(2)]
        for host in hosts:
            assert host.ready().line.endswith("with functions: special, secret\n")
        assert hosts[0].stop(signal.SIGINT) == 0
        assert hosts[1].call("/items/special").status == 200
        assert hosts[1].call("/items/5").status == 404
        assert hosts[1].stop() == 0
