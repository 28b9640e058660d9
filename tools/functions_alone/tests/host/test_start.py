"""Start-up: settings, the choice of functions, faults."""

import json
import signal
import socket
import sys
from pathlib import Path
from types import SimpleNamespace

import azure.functions as func
import pytest
from click.testing import CliRunner

from functions_alone.faults import LocalCode, StackFault
from functions_alone.host import running, worker
from functions_alone.host.__main__ import main
from functions_alone.host.errors import HostError
from functions_alone.host.host import Host, make_listener
from functions_alone.host.host_json import HOST_JSON, HostJson, read_host_json, seconds_of
from functions_alone.host.http import HttpListener
from functions_alone.host.index import INSTEAD, HttpTrigger, index_functions
from functions_alone.host.invoke import FunctionCall
from functions_alone.host.settings import DEFAULT_SECONDS, AppSettings, HostSettings
from functions_alone.tests.support.host_process import HostProcess

TIMERS = json.loads((Path(__file__).parents[4] / "tests/data/azure_host/timers.json").read_text())


def test_missing_settings_are_all_named():
    """Names of queues, schedules and connections that are missing are named by one start."""
    app = func.FunctionApp()
    app.function_name("one")(app.queue_trigger("x", "%WORK_QUEUE%", "Storage")(lambda x: None))
    app.function_name("two")(app.service_bus_queue_trigger("x", "Bus", "%SINGLES%")(lambda x: None))
    app.function_name("three")(app.timer_trigger("x", "%TICK%", use_monitor=False)(lambda x: None))
    settings = AppSettings(values={"Bus": "Endpoint=sb://x/"})
    with pytest.raises(HostError) as caught:
        index_functions(app.get_functions(), settings, None)
    names = ("WORK_QUEUE", "Storage", "SINGLES", "TICK", "AzureWebJobsStorage")
    assert list(caught.value.faults) == [
        StackFault(LocalCode.SETTING_MISSING, name) for name in names
    ]


def test_a_host_that_cannot_start_says_why(tmp_path, monkeypatch):
    """The exit code is 1, and the output has the code of the fault and the file."""
    monkeypatch.setattr(running, "configure_logging", lambda level: None)
    ended = CliRunner().invoke(main, ["--app-dir", str(tmp_path)])
    assert ended.exit_code == 1
    assert f"[{LocalCode.HOST_JSON_UNREADABLE}]" in ended.stderr
    assert f"{tmp_path}/host.json" in ended.stderr


def test_a_host_whose_port_is_taken_says_so():
    """With the port."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(HostError) as caught:
            running._listen(port, None)
    [fault] = caught.value.faults
    assert (fault.code, fault.place) == (LocalCode.CANNOT_LISTEN, f"port {port}")


def two_routes():
    app = func.FunctionApp()
    for name in ("first", "second"):
        app.function_name(name)(app.route(route=name)(lambda req: None))
    return app.get_functions()


def test_an_unknown_function_is_refused():
    """A wrong name is named, along with the right ones."""
    with pytest.raises(HostError) as caught:
        index_functions(two_routes(), AppSettings(values={}), frozenset({"frist", "second"}))
    [fault] = caught.value.faults
    assert fault == StackFault(
        LocalCode.FUNCTION_UNKNOWN, "function frist", {"functions": "first, second"}
    )


def test_a_function_can_be_disabled_by_setting():
    """AzureWebJobs.<name>.Disabled switches a function off, as in Azure."""
    settings = AppSettings(values={"AzureWebJobs.first.Disabled": "1"})
    assert [function.name for function in index_functions(two_routes(), settings, None)] == [
        "second"
    ]


BUS = {"arg_name": "x", "queue_name": "q", "connection": "C"}
CORE_TOOLS = "run the app with Azure Functions Core Tools"


def unsupported(feature, alternative=CORE_TOOLS):
    """The fault of function f that uses this."""
    facts = {"feature": feature, "alternative": alternative}
    return StackFault(LocalCode.FEATURE_UNSUPPORTED, "function f", facts)


@pytest.mark.parametrize(
    ("decorate", "fault"),
    [
        (
            lambda app: app.blob_trigger("x", "a/b", "C"),
            unsupported("trigger blobTrigger", INSTEAD["blobTrigger"]),
        ),
        (
            lambda app: app.cosmos_db_trigger("x", "C", "d", "c"),
            unsupported("trigger cosmosDBTrigger"),
        ),
        (
            lambda app: app.route("admin/x"),
            StackFault(LocalCode.ROUTE_RESERVED, "function f, route admin/x"),
        ),
        (
            lambda app: app.route("{a:regex(x)}"),
            StackFault(
                LocalCode.ROUTE_CONSTRAINT_UNKNOWN,
                "function f, route {a:regex(x)}",
                {"constraint": "regex(x)"},
            ),
        ),
        (
            lambda app: app.route("a/{b"),
            StackFault(LocalCode.ROUTE_UNREADABLE, "function f, route a/{b", {"part": "{b"}),
        ),
        (
            lambda app: app.timer_trigger("x", "* * *", use_monitor=False),
            StackFault(
                LocalCode.SCHEDULE_INVALID,
                "function f, schedule '* * *'",
                {"reason": "Wrong number of fields"},
            ),
        ),
        (
            lambda app: app.timer_trigger("x", "0 0 * * * *"),
            StackFault(LocalCode.TIMER_MONITORED, "function f"),
        ),
        (
            lambda app: app.service_bus_queue_trigger(**BUS, auto_complete_messages=False),
            StackFault(LocalCode.MESSAGES_NOT_COMPLETED, "function f"),
        ),
        (
            lambda app: app.service_bus_queue_trigger(**BUS, is_sessions_enabled=True),
            unsupported("Service Bus sessions"),
        ),
        (
            lambda app: app.service_bus_topic_trigger("x", "C", "t", "s"),
            unsupported("Service Bus topics", INSTEAD["topics"]),
        ),
        (
            lambda app: (
                lambda f: app.timer_trigger("x", "* * * * * *", use_monitor=False)(
                    app.retry("fixed_delay", "2", delay_interval="00:00:01")(f)
                )
            ),
            unsupported("retry policies", INSTEAD["policies"]),
        ),
        (
            lambda app: lambda f: app.route("a")(app.table_output("x", "C", "t")(f)),
            unsupported("binding table", INSTEAD["table"]),
        ),
        (
            lambda app: (
                lambda f: app.route("a")(app.service_bus_topic_output("x", "C", "t", "s")(f))
            ),
            unsupported("binding serviceBus", INSTEAD["serviceBus"]),
        ),
    ],
)
def test_what_the_host_cannot_do_is_refused(decorate, fault):
    """A binding, route or schedule that this host does not know ends the start, and is named."""
    app = func.FunctionApp()
    app.function_name("f")(decorate(app)(lambda x: None))
    with pytest.raises(HostError) as caught:
        start_up(app)
    assert list(caught.value.faults) == [fault]


def test_what_the_host_cannot_do_is_named_function_by_function():
    """One start shows all that has to change."""
    app = func.FunctionApp()
    app.function_name("one")(app.blob_trigger("x", "a/b", "C")(lambda x: None))
    app.function_name("fine")(app.route("a")(lambda x: None))
    app.function_name("two")(app.service_bus_topic_trigger("x", "C", "t", "s")(lambda x: None))
    with pytest.raises(HostError) as caught:
        index_functions(app.get_functions(), AppSettings(values={}), None)
    assert [fault.place for fault in caught.value.faults] == ["function one", "function two"]


def start_up(app):
    [function] = index_functions(
        app.get_functions(), AppSettings(values={"C": "c", "AzureWebJobsStorage": "s"}), None
    )
    invoker = SimpleNamespace(prepare=lambda function: FunctionCall(function=function, worker=None))
    if isinstance(function.trigger, HttpTrigger):
        HttpListener(functions=[function], prefix="", own=HostSettings.read({}), invoker=invoker)
    else:
        make_listener(function, HostJson(version="2.0"), HostSettings.read({}), invoker)


def test_an_app_that_ends_its_process_when_it_is_loaded_ends_the_host(tmp_path):
    """At the first start: later ones are tried again."""
    host = HostProcess(tmp_path, {"WHEN_LOADED": "exit"})
    assert host.ended() == 1
    last = host.log_text().splitlines()[-1]
    assert f"[{LocalCode.APP_ENDED}]" in last
    assert "exit code 3" in last


def test_times_are_those_of_azure_and_shorter_ones_are_logged_at_the_start(host):
    """So whoever reads the log of a run knows what it flatters."""
    in_azure = HostSettings.read({})
    assert (in_azure.queue_lock_seconds, in_azure.shortened) == (600, [])
    assert (
        "shorter than in Azure: LOCAL_QUEUE_LOCK_SECONDS is 2 instead of 600\n"
        in host.log.read_text()
    )


def test_how_functions_share_processes_is_one_of_two_words():
    """A misspelt one would quietly put all of them into one."""
    with pytest.raises(HostError) as caught:
        HostSettings.read({"LOCAL_FUNCTION_PROCESSES": "all"})
    facts = {"value": "all", "choices": "one, each"}
    [fault] = caught.value.faults
    assert fault == StackFault(LocalCode.SETTING_NOT_A_CHOICE, "LOCAL_FUNCTION_PROCESSES", facts)


@pytest.mark.parametrize("value", ["", "soon", "nan", "inf"])
@pytest.mark.parametrize("name", DEFAULT_SECONDS)
def test_a_time_of_the_host_is_a_number(name, value):
    """Of seconds; the setting and its value are named."""
    with pytest.raises(HostError) as caught:
        HostSettings.read({name: value})
    [fault] = caught.value.faults
    assert fault == StackFault(LocalCode.SETTING_NOT_A_NUMBER, name, {"value": value})


APP = "import azure.functions as func\napp = func.FunctionApp()"
REFUSES = "class RefusedError(Exception):\n    faults = ()"


@pytest.mark.parametrize(
    ("content", "code", "facts"),
    [
        (None, LocalCode.APP_MISSING, {}),
        ("", LocalCode.APP_NOT_UNIQUE, {"count": 0}),
        (f"{APP}\nother = func.FunctionApp()", LocalCode.APP_NOT_UNIQUE, {"count": 2}),
        ("raise LookupError('no salt')", LocalCode.APP_FAILED, {"error": "LookupError"}),
        (f"{REFUSES}\nraise RefusedError('no salt')", LocalCode.APP_REFUSED, {"reason": "no salt"}),
    ],
    ids=["missing", "none", "two", "raises", "refuses"],
)
def test_an_app_that_cannot_be_loaded_is_named(tmp_path, monkeypatch, content, code, facts):
    """With its folder or its file; an app that names its own faults is shown without a traceback."""
    if content is not None:
        (tmp_path / "function_app.py").write_text(content)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "function_app", raising=False)
    succeeded, faults = worker._load(worker.Worker(), tmp_path, None)
    monkeypatch.delitem(sys.modules, "function_app", raising=False)
    place = str(tmp_path) if content is None else "function_app.py"
    assert (succeeded, list(faults)) == (False, [StackFault(code, place, facts)])


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
    """What keeps Azure's host from starting keeps this one; the fault names the place in the file."""
    (tmp_path / "host.json").write_text(json.dumps(host_json({place: value})))
    with pytest.raises(HostError) as caught:
        read_host_json(tmp_path, {})
    assert in_host_json(caught) == [place]


def test_every_fault_of_a_host_json_is_named(tmp_path):
    """By one start, and not the first fault alone."""
    places = dict(WRONG_IN_HOST_JSON)
    (tmp_path / "host.json").write_text(json.dumps(host_json(places)))
    with pytest.raises(HostError) as caught:
        read_host_json(tmp_path, {})
    assert sorted(in_host_json(caught)) == sorted(places)


def in_host_json(caught):
    """The places in host.json that an error names."""
    assert {fault.code for fault in caught.value.faults} == {LocalCode.HOST_JSON_INVALID}
    assert {Path(fault.facts["file"]).name for fault in caught.value.faults} == {"host.json"}
    return [fault.place for fault in caught.value.faults]


def test_a_host_json_without_json_is_named(tmp_path):
    """As one that is not there."""
    (tmp_path / "host.json").write_text("{")
    with pytest.raises(HostError) as caught:
        read_host_json(tmp_path, {})
    [fault] = caught.value.faults
    assert fault.code == LocalCode.HOST_JSON_UNREADABLE
    assert fault.place == str(tmp_path / "host.json")


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


@pytest.mark.parametrize("option", ["listenerLockPeriod", "listenerLockRecoveryPollingInterval"])
def test_the_lock_of_a_timer_has_the_times_that_azure_takes(tmp_path, option):
    """How long it lasts and how often another host asks for it, by default and at the ends of the range (webjobs.md 9)."""
    (tmp_path / "host.json").write_text('{"version": "2.0"}')
    name, facts = f"AzureFunctionsJobHost__singleton__{option}", TIMERS[option]

    def read(value):
        options = read_host_json(tmp_path, {name: value} if value else {}).singleton
        return options.model_dump(by_alias=True)[option]

    assert read(None) == seconds_of(facts["default"])
    for taken in (facts["least"], facts.get("most", "01:00:00")):
        assert read(taken) == seconds_of(taken)
    for refused in facts["refused"]:
        with pytest.raises(HostError) as caught:
            read(refused)
        assert in_host_json(caught) == [f"singleton.{option}"]


def test_the_lock_period_of_host_json_reaches_the_timers(tmp_path):
    """A host that locks for longer than another one believes would take its timers for lost."""
    name = "AzureFunctionsJobHost__singleton__listenerLockPeriod"
    (tmp_path / "host.json").write_text('{"version": "2.0"}')
    lasts = [Host(app_dir=tmp_path, environ=given)._own for given in ({}, {name: "00:00:20"})]
    assert [own.timer_lock_seconds for own in lasts] == [60, 20]


def test_a_host_json_may_be_in_another_folder_than_the_app(tmp_path):
    """(bugs2 59) Apps of one repository share one file, without links, which a Windows checkout may not make."""
    (tmp_path / "shared.json").write_text('{"version": "2.0", "functionTimeout": "00:07:00"}')
    app = tmp_path / "app"
    assert read_host_json(app, {HOST_JSON: str(tmp_path / "shared.json")}).function_timeout == 420
    with pytest.raises(HostError) as caught:
        read_host_json(app, {})
    assert [fault.place for fault in caught.value.faults] == [str(app / "host.json")]
    app.mkdir()
    (app / "host.json").write_text('{"version": "2.0", "functionTimeout": "00:01:00"}')
    own = read_host_json(app, {HOST_JSON: str(tmp_path / "shared.json")})
    assert own.function_timeout == 60


def test_an_app_setting_replaces_a_value_of_host_json(tmp_path):
    """As in Azure, by its path; a value that makes no sense is refused like one in the file."""
    (tmp_path / "host.json").write_text(
        '{"version": "2.0", "extensions": {"queues": {"batchSize": 8}}}'
    )
    name = "AzureFunctionsJobHost__extensions__queues__maxPollingInterval"
    queues = read_host_json(tmp_path, {name: "00:00:00.500"}).extensions.queues
    assert (queues.batch_size, queues.max_polling_interval) == (8, 0.5)
    with pytest.raises(HostError) as caught:
        read_host_json(tmp_path, {name: "soon"})
    assert in_host_json(caught) == ["extensions.queues.maxPollingInterval"]
    major = "AzureFunctionsJobHost__version__major"
    with pytest.raises(HostError) as caught:
        read_host_json(tmp_path, {major: "3"})
    [fault] = caught.value.faults
    assert fault == StackFault(LocalCode.HOST_JSON_OVERRIDE, major, {"section": "version"})


def test_a_host_shares_an_inherited_socket_and_runs_only_the_chosen_functions(tmp_path):
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
