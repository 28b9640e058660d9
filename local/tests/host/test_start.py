"""Start-up: settings, the choice of functions, faults."""

import json
import signal
import socket
from types import SimpleNamespace

import azure.functions as func
import pytest
from click.testing import CliRunner
from host_process import HostProcess

from local.host import running
from local.host.__main__ import main
from local.host.errors import HostError
from local.host.host import make_listener
from local.host.host_json import HostJson, read_host_json
from local.host.http import HttpListener
from local.host.index import INSTEAD, HttpTrigger, index_functions
from local.host.invoke import Call
from local.host.settings import AppSettings, HostSettings


def test_missing_settings_are_all_named():
    """Names of queues, schedules and connections that are missing stand in one message."""
    app = func.FunctionApp()
    app.function_name("one")(app.queue_trigger("x", "%WORK_QUEUE%", "Storage")(lambda x: None))
    app.function_name("two")(app.service_bus_queue_trigger("x", "Bus", "%SINGLES%")(lambda x: None))
    app.function_name("three")(app.timer_trigger("x", "%TICK%", use_monitor=False)(lambda x: None))
    settings = AppSettings(values={"Bus": "Endpoint=sb://x/"})
    missing = "WORK_QUEUE, Storage, SINGLES, TICK, AzureWebJobsStorage"
    with pytest.raises(HostError, match=f"^missing app settings: {missing}$"):
        index_functions(app.get_functions(), settings, None)


def test_a_host_that_cannot_start_says_why(tmp_path, monkeypatch):
    """In one line, and the exit code is 1."""
    monkeypatch.setattr(running, "configure_logging", lambda level: None)
    ended = CliRunner().invoke(main, ["--app-dir", str(tmp_path)])
    assert (ended.exit_code, ended.stderr) == (
        1,
        f"error: cannot read {tmp_path}/host.json: No such file or directory\n",
    )


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
        (
            lambda app: app.blob_trigger("x", "a/b", "C"),
            f"this host has no trigger blobTrigger; instead: {INSTEAD['blobTrigger']}",
        ),
        (
            lambda app: app.cosmos_db_trigger("x", "C", "d", "c"),
            "this host has no trigger cosmosDBTrigger; instead: run the app with Azure Functions Core Tools",
        ),
        (
            lambda app: app.route("admin/x"),
            "route admin/x: paths under /admin and /runtime are the host's own",
        ),
        (
            lambda app: app.route("{a:regex(x)}"),
            "route {a:regex(x)}: this host has no constraint regex(x)",
        ),
        (
            lambda app: app.timer_trigger("x", "* * *", use_monitor=False),
            "schedule '* * *': Wrong number of fields",
        ),
        (
            lambda app: app.timer_trigger("x", "0 0 * * * *"),
            "this host keeps no past times of timers; it needs use_monitor=False",
        ),
        (
            lambda app: app.service_bus_queue_trigger(**BUS, is_sessions_enabled=True),
            "this host has no Service Bus sessions; instead: run the app with Azure Functions Core Tools",
        ),
        (
            lambda app: app.service_bus_topic_trigger("x", "C", "t", "s"),
            f"this host has no Service Bus topics; instead: {INSTEAD['topics']}",
        ),
        (
            lambda app: (
                lambda f: app.timer_trigger("x", "* * * * * *", use_monitor=False)(
                    app.retry("fixed_delay", "2", delay_interval="00:00:01")(f)
                )
            ),
            f"this host has no retry policies; instead: {INSTEAD['policies']}",
        ),
        (
            lambda app: lambda f: app.route("a")(app.table_output("x", "C", "t")(f)),
            f"this host has no binding table; instead: {INSTEAD['table']}",
        ),
        (
            lambda app: (
                lambda f: app.route("a")(app.service_bus_topic_output("x", "C", "t", "s")(f))
            ),
            f"this host has no binding serviceBus; instead: {INSTEAD['serviceBus']}",
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


def test_what_the_host_cannot_do_is_named_function_by_function():
    """One start shows all that has to change."""
    app = func.FunctionApp()
    app.function_name("one")(app.blob_trigger("x", "a/b", "C")(lambda x: None))
    app.function_name("fine")(app.route("a")(lambda x: None))
    app.function_name("two")(app.service_bus_topic_trigger("x", "C", "t", "s")(lambda x: None))
    with pytest.raises(HostError) as caught:
        index_functions(app.get_functions(), AppSettings(values={}), None)
    named = [line.partition(":")[0] for line in str(caught.value).splitlines()]
    assert named == ["function one", "function two"]


def start_up(app):
    [function] = index_functions(
        app.get_functions(), AppSettings(values={"C": "c", "AzureWebJobsStorage": "s"}), None
    )
    invoker = SimpleNamespace(prepare=lambda function: Call(function=function, worker=None))
    if isinstance(function.trigger, HttpTrigger):
        HttpListener(functions=[function], prefix="", own=HostSettings.read({}), invoker=invoker)
    else:
        make_listener(function, HostJson(version="2.0"), HostSettings.read({}), invoker)


def test_an_app_that_ends_its_process_when_it_is_loaded_ends_the_host(tmp_path):
    """At the first start: later ones are tried again."""
    host = HostProcess(tmp_path, {"WHEN_LOADED": "exit"})
    assert host.ended() == 1
    assert host.said().endswith(
        "error: the worker process ended while it loaded the app (exit code 3)\n"
    )


def test_times_are_those_of_azure_and_what_is_shorter_is_said_at_the_start(host):
    """So whoever reads the log of a run knows what it flatters."""
    in_azure = HostSettings.read({})
    assert (in_azure.queue_lock_seconds, in_azure.shortened) == (600, [])
    assert (
        "shorter than in Azure: LOCAL_QUEUE_LOCK_SECONDS is 2 instead of 600\n"
        in host.log.read_text()
    )


def test_how_functions_share_processes_is_one_of_two_words():
    """A misspelt one would quietly put all of them into one."""
    with pytest.raises(HostError, match=r"^LOCAL_FUNCTION_PROCESSES=all: expected one or each$"):
        HostSettings.read({"LOCAL_FUNCTION_PROCESSES": "all"})


WRONG_IN_HOST_JSON = [
    ("version", "3.0"),
    ("functionTimeout", "00:00:00.900"),
    ("extensions.queues.batchSize", 33),
    ("extensions.queues.batchSize", 0),
    ("extensions.queues.newBatchThreshold", -1),
    ("extensions.queues.maxDequeueCount", 0),
    ("extensions.queues.maxPollingInterval", "00:00:00.099"),
    ("extensions.queues.visibilityTimeout", "5 s"),
    ("extensions.queues.messageEncoding", "base32"),
    ("extensions.serviceBus.maxConcurrentCalls", 0),
    ("extensions.serviceBus.minMessageBatchSize", 1001),
    ("extensions.serviceBus.maxBatchWaitTime", "00:02:31"),
    ("extensions.serviceBus.maxAutoLockRenewalDuration", "-00:00:01"),
    ("extensions.serviceBus.clientRetryOptions.mode", "linear"),
    ("extensions.serviceBus.clientRetryOptions.maxRetries", 101),
    ("extensions.serviceBus.clientRetryOptions.delay", "00:05:01"),
    ("extensions.serviceBus.clientRetryOptions.tryTimeout", "01:00:01"),
]


@pytest.mark.parametrize(("place", "value"), WRONG_IN_HOST_JSON)
def test_a_bad_host_json_is_refused(tmp_path, place, value):
    """What keeps Azure's host from starting keeps this one; the message names the place in the file."""
    (tmp_path / "host.json").write_text(json.dumps(host_json({place: value})))
    with pytest.raises(HostError) as caught:
        read_host_json(tmp_path, {})
    assert f"host.json: {place}: " in str(caught.value)


def test_every_fault_of_a_host_json_is_named(tmp_path):
    """One message, and not the first fault alone."""
    places = dict(WRONG_IN_HOST_JSON)
    (tmp_path / "host.json").write_text(json.dumps(host_json(places)))
    with pytest.raises(HostError) as caught:
        read_host_json(tmp_path, {})
    assert [place for place in places if f"{place}: " not in str(caught.value)] == []


def test_what_azure_just_takes_is_taken(tmp_path):
    """The ends of the ranges."""
    extremes = {
        "functionTimeout": "-1",
        "extensions.queues.batchSize": 32,
        "extensions.queues.newBatchThreshold": 0,
        "extensions.queues.maxPollingInterval": "00:00:00.100",
        "extensions.queues.messageEncoding": "None",
        "extensions.serviceBus.minMessageBatchSize": 1000,
        "extensions.serviceBus.maxBatchWaitTime": "00:02:30",
        "extensions.serviceBus.clientRetryOptions.tryTimeout": "01:00:00",
    }
    (tmp_path / "host.json").write_text(json.dumps(host_json(extremes)))
    assert read_host_json(tmp_path, {}).function_timeout is None


def host_json(values):
    """Content with these values, by their places."""
    content = {"version": "2.0"}
    for place, value in values.items():
        *sections, last = place.split(".")
        inner = content
        for section in sections:
            inner = inner.setdefault(section, {})
        inner[last] = value
    return content


def test_hosts_may_not_ask_for_a_lock_more_often_than_in_azure(tmp_path):
    """Every 15 s at most; without the setting once a minute."""
    (tmp_path / "host.json").write_text('{"version": "2.0"}')
    name = "AzureFunctionsJobHost__singleton__listenerLockRecoveryPollingInterval"
    times = [read_host_json(tmp_path, given).singleton for given in ({}, {name: "00:00:15"})]
    assert [each.listener_lock_recovery_polling_interval for each in times] == [60, 15]
    with pytest.raises(
        HostError, match=r"singleton\.listenerLockRecoveryPollingInterval: .* or equal to 15"
    ):
        read_host_json(tmp_path, {name: "00:00:14"})


def test_an_app_setting_replaces_a_value_of_host_json(tmp_path):
    """As in Azure, by its path; a value that makes no sense is refused like one in the file."""
    (tmp_path / "host.json").write_text(
        '{"version": "2.0", "extensions": {"queues": {"batchSize": 8}}}'
    )
    name = "AzureFunctionsJobHost__extensions__queues__maxPollingInterval"
    queues = read_host_json(tmp_path, {name: "00:00:00.500"}).extensions.queues
    assert (queues.batch_size, queues.max_polling_interval) == (8, 0.5)
    with pytest.raises(HostError, match="maxPollingInterval"):
        read_host_json(tmp_path, {name: "soon"})
    with pytest.raises(HostError, match="goes through version, which is a value"):
        read_host_json(tmp_path, {"AzureFunctionsJobHost__version__major": "3"})


def test_a_host_shares_an_inherited_socket_and_runs_only_what_it_is_told(tmp_path):
    """Functions not chosen need no settings and have no route; when it stops, others go on with the socket."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listen = ("--listen-fd", str(listening.fileno()))
        host = HostProcess(
            tmp_path, {}, "special, secret", listen, pass_fds=[listening.fileno()]
        ).ready()
        assert host.line.endswith("with functions: special, secret\n")
        assert host.call("/items/special").status == 200
        assert host.call("/items/5").status == 404
        assert b"is running" in host.call("/").body
        assert host.stop(signal.SIGINT) == 0
        with (
            socket.create_connection(listening.getsockname()) as caller,
            listening.accept()[0] as other,
        ):
            assert other.getpeername() == caller.getsockname()
