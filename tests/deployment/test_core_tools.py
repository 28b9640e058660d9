"""`make func`: what it needs, what it starts, and that it stays within the limits of Microsoft's emulators."""

import asyncio
import json
import os
import re
import socket
import stat
import subprocess
import sys
from dataclasses import replace

import psutil
import pytest
import yaml
from azure.storage.queue.aio import QueueClient

from development import core_tools
from development.business import DEPLOYED
from development.faults import DevelopmentCode
from development.servicebus_config import ROOT, emulator_config, queues
from development.settings import app_settings
from development.stack import MODULES, AppStack, AppStackConfig
from engine.azure.connect import connect
from engine.azure.settings import Settings
from engine.domain.messages import DEAD_LETTERS
from functions_alone.faults import StackFault
from functions_alone.ports import Ports
from functions_alone.tests.support.waiting import PATIENCE_SECONDS
from shop.business import SHOP
from tests.support.deploying import AGENTS, index

COMPOSE = yaml.safe_load((ROOT / "tools/development/compose.yaml").read_text())["services"]
OF_CORE_TOOLS = {"FUNCTIONS_WORKER_RUNTIME": "python", "AzureWebJobsDisableHomepage": "true"}


@pytest.fixture(scope="module")
async def services(tmp_path_factory):
    """Azurite, the broker and the Event Grid stand-in, without any functions host."""
    config = AppStackConfig.for_tests(tmp_path_factory.mktemp("services"), hosts=0, agents=AGENTS)
    async with AppStack(config) as stack:
        yield stack


def test_settings_are_those_of_the_embedded_stack():
    """A new file says what the embedded stack says on its default ports, and what Core Tools want besides."""
    template = core_tools.first_settings()
    wanted = app_settings(Ports(), "", "local-event-grid", AGENTS)
    del wanted["LOCAL_FUNCTION_KEY"]  # Core Tools ask for no key
    assert template["Values"] == wanted | OF_CORE_TOOLS
    assert template["Host"]["LocalHttpPort"] == Ports().http_port


@pytest.mark.parametrize("name", COMPOSE)
def test_images_are_pinned_and_healthy(name):
    """Each image has a full version; what others wait for says when it is ready, by itself or through a neighbour."""
    service = COMPOSE[name]
    assert re.search(r":\d+(\.\d+\.\d+|-CU\d+-ubuntu-\d\d\.\d\d)$", service["image"])
    neighbours = [
        container["healthcheck"]["test"]
        for container in COMPOSE.values()
        if "healthcheck" in container
    ]
    checks = "".join(map(str, neighbours))
    assert "healthcheck" in service or (
        f"nc -z {name} 5672" in checks and f"http://{name}:5300/health" in checks
    )


def test_only_this_machine_reaches_the_emulators():
    """Their ports are those that the settings name, on the loopback address."""
    published = {port for service in COMPOSE.values() for port in service.get("ports", [])}
    ports = Ports()
    wanted = [
        ports.blob_port,
        ports.queue_port,
        ports.table_port,
        ports.amqp_port,
        ports.broker_health_port,
    ]
    assert published == {f"127.0.0.1:{port}:{port}" for port in wanted}


def test_azurite_is_the_one_that_is_tested():
    """The same version in Docker as in the embedded stack."""
    lock = json.loads((ROOT / "tools/functions_alone/package-lock.json").read_text())
    assert COMPOSE["azurite"]["image"].endswith(
        f":{lock['packages']['node_modules/azurite']['version']}"
    )


def test_the_emulator_gets_every_queue(tmp_path):
    """Config.json has the queues in infra/, with their properties."""
    written = json.loads(core_tools.write_config(tmp_path / "new").read_text())
    assert written == emulator_config()
    made = {
        queue["Name"]: queue["Properties"]
        for queue in written["UserConfig"]["Namespaces"][0]["Queues"]
    }
    for queue in queues()["serviceBusQueues"]:
        assert made[queue["name"]]["LockDuration"] == queue["lockDuration"]
        assert made[queue["name"]]["MaxDeliveryCount"] == min(10, queue["maxDeliveryCount"])
    assert len(made) == len(queues()["serviceBusQueues"])


def open_to(port):
    """The connections of this process to a port."""
    every = psutil.Process().net_connections("tcp")
    return [connection for connection in every if connection.raddr and connection.raddr.port == port and connection.status == "ESTABLISHED"]  # fmt: skip


async def test_the_app_opens_as_many_connections_as_are_counted_for_the_emulator(
    services, monkeypatch
):
    """Counted on this process, with a sender to every queue that it sends to, and the health check's receiver; the host opens one."""
    template = core_tools.first_settings()["Values"]
    used = {
        function["queueName"].partition("/")[0]
        for function in index(template).values()
        if function["type"] == "serviceBusTrigger" and function["queueName"] != DEAD_LETTERS
    }
    for name, value in services.app_environment().items():
        monkeypatch.setenv(name, value)
    parts = connect(Settings.read(AGENTS))
    await parts.bus.probe(list(used))
    opened = len(open_to(services.ports.amqp_port))
    await parts.close()
    assert opened > len(used)
    assert opened + 1 == core_tools.connections(AGENTS)


def test_the_emulator_has_enough_connections_for_the_shop():
    """With one more for a private response queue, or for a link that replaces another."""
    assert core_tools.connections(SHOP.agents) < core_tools.MAX_CONNECTIONS


def test_a_business_with_too_many_agents_for_the_emulator_is_rejected(tmp_path):
    """Else the messages of some queues would never leave, and nobody would know why."""
    fake(tmp_path, "func", "docker")
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "ACCEPT_EULA": "Y"}
    most = [replace(SHOP.agents[0], name=f"agent-{number}") for number in range(3)]
    assert list(core_tools.missing(environ, most)) == []
    one_more = replace(SHOP.agents[0], name="agent-3")
    [fault] = core_tools.missing(environ, [*most, one_more])
    assert fault == StackFault(
        DevelopmentCode.TOO_MANY_CONNECTIONS, DEPLOYED, {"needed": 11, "allowed": 10}
    )
    assert list(core_tools.missing(environ, [*most, replace(one_more, optional=True)])) == []


def fake(folder, *names):
    """Programs that answer everything with success."""
    for name in names:
        (folder / name).write_text("#!/bin/sh\nexit 0\n")
        (folder / name).chmod(stat.S_IRWXU)


def test_everything_that_is_missing_is_named(tmp_path):
    """With nothing there, one run names all of it, and nothing is started."""
    environ = {"PATH": str(tmp_path), "PYTHONPATH": MODULES}
    command = [sys.executable, "-m", "development.core_tools"]
    ran = subprocess.run(
        command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1
    too_many = core_tools.connections(AGENTS) > core_tools.MAX_CONNECTIONS
    wanted = [
        *([(DevelopmentCode.TOO_MANY_CONNECTIONS, DEPLOYED)] if too_many else []),
        (DevelopmentCode.PROGRAM_MISSING, "`func`"),
        (DevelopmentCode.PROGRAM_MISSING, "`docker`"),
        (DevelopmentCode.EULA_NOT_ACCEPTED, "ACCEPT_EULA"),
    ]
    _, *reported = ran.stderr.splitlines()
    assert len(reported) == len(wanted)
    for line, (code, place) in zip(reported, wanted, strict=True):
        assert place in line
        assert f"[{code}]" in line


def test_a_docker_that_does_not_answer_is_missing(tmp_path):
    """Docker may be installed and not run, or be without Compose."""
    fake(tmp_path, "func", "docker")
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "ACCEPT_EULA": "Y"}
    assert list(core_tools.missing(environ, SHOP.agents)) == []
    (tmp_path / "docker").write_text("#!/bin/sh\nexit 1\n")
    found = [(fault.code, fault.place) for fault in core_tools.missing(environ, SHOP.agents)]
    assert found == [
        (DevelopmentCode.PROGRAM_MISSING, "docker compose"),
        (DevelopmentCode.DOCKER_NOT_RUNNING, "docker info"),
    ]


FUNC = """#!{python}
import os, socket, sys, time
for attempt in range({attempts}):
    try:
        for port in {ports}:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
        break
    except OSError:
        time.sleep(0.1)
else:
    sys.exit("a stand-in does not answer")
with open(os.environ["RECORD"], "a") as record:
    print("func", *sys.argv[1:], file=record)
sys.exit(7)
"""


async def test_make_func_starts_everything_and_stops_it_again(services, tmp_path, monkeypatch):
    """Emulators up, storage filled, the stand-ins at work when Core Tools start; all down once they end."""
    record, programs = tmp_path / "record", tmp_path / "programs"
    programs.mkdir()
    own = Ports.free()
    of_stand_ins = ("eventgrid_port", "channels_port", "smtp_port")
    ports = replace(services.ports, **{name: getattr(own, name) for name in of_stand_ins})
    (programs / "docker").write_text(
        f'#!/bin/sh\necho docker "$@" | sed "s|{ROOT}/||" >> {record}\n'
    )
    (programs / "func").write_text(
        FUNC.format(
            python=sys.executable,
            ports=[getattr(ports, name) for name in of_stand_ins],
            attempts=10 * PATIENCE_SECONDS,
        )
    )
    for program in programs.iterdir():
        program.chmod(stat.S_IRWXU)
    monkeypatch.setattr(core_tools, "Ports", lambda: ports)
    monkeypatch.setattr(core_tools, "SETTINGS", tmp_path / "local.settings.json")
    (tmp_path / "local.settings.json").write_text(
        json.dumps({"Values": app_settings(ports, "", "a-key", AGENTS)})
    )
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    environ = os.environ | {"RECORD": str(record)}
    async with QueueClient.from_connection_string(
        services.storage_connection_string, "operator-alerts"
    ) as queue:
        await queue.delete_queue()
        assert await asyncio.to_thread(core_tools.start_all, environ, tmp_path / "data") == 7
        await queue.get_queue_properties()  # it is there again
    assert record.read_text().splitlines() == [
        "docker compose -f tools/development/compose.yaml up --detach --wait",
        "func start",
        "docker compose -f tools/development/compose.yaml down --volumes",
    ]
    assert json.loads((tmp_path / "data/Config.json").read_text()) == emulator_config()
    for name in of_stand_ins:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", getattr(ports, name)), timeout=5)


def test_own_settings_are_never_overwritten(tmp_path, monkeypatch):
    """The first time they are made from the template; what somebody changed stays."""
    monkeypatch.setattr(core_tools, "SETTINGS", tmp_path / "local.settings.json")
    assert core_tools.own_settings()["BUCKETS"] == "8"
    (tmp_path / "local.settings.json").write_text(json.dumps({"Values": {"BUCKETS": "3"}}))
    assert core_tools.own_settings() == {"BUCKETS": "3"}
