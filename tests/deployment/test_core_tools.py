"""`make func`: what it needs, what it starts, and that it stays within the limits of Microsoft's emulators."""

import json
import os
import re
import stat
import subprocess
import sys

import psutil
import pytest
import yaml
from deploying import index

from adapters.azure import connect
from adapters.settings import Settings
from local import core_tools
from local.ports import Ports
from local.servicebus_config import ROOT, config, queues
from local.settings import app_settings
from local.stack import Stack, StackConfig

MOST_CONNECTIONS = 10
"""What the emulator allows for one namespace."""
HOST_CONNECTIONS = 1
"""All triggers of one namespace share a client in the Functions host, and with it a connection."""
COMPOSE = yaml.safe_load((ROOT / "local/compose.yaml").read_text())["services"]
OF_CORE_TOOLS = {"FUNCTIONS_WORKER_RUNTIME": "python", "AzureWebJobsDisableHomepage": "true"}


def test_settings_are_those_of_the_embedded_stack():
    """The template says what the embedded stack says on its default ports, and what Core Tools want besides."""
    template = json.loads((ROOT / "local.settings.template.json").read_text())
    wanted = app_settings(Ports(), "", "local-event-grid")
    del wanted["OPERATOR_KEY"]  # Core Tools ask for no key
    assert template["Values"] == wanted | OF_CORE_TOOLS
    assert template["Host"]["LocalHttpPort"] == Ports().http_port


@pytest.mark.parametrize("name", COMPOSE)
def test_images_are_pinned_and_healthy(name):
    """Each image has a full version; what others wait for says when it is ready, by itself or through a neighbour."""
    service = COMPOSE[name]
    assert re.search(r":\d+(\.\d+\.\d+|-CU\d+-ubuntu-\d\d\.\d\d)$", service["image"])
    neighbours = [each["healthcheck"]["test"] for each in COMPOSE.values() if "healthcheck" in each]
    assert "healthcheck" in service or any(f"http://{name}:5300/health" in test for test in neighbours)


def test_only_this_machine_reaches_the_emulators():
    """Their ports are those that the settings name, on the loopback address."""
    published = {port for service in COMPOSE.values() for port in service.get("ports", [])}
    ports = Ports()
    wanted = [ports.blob_port, ports.queue_port, ports.table_port, ports.amqp_port, ports.broker_health_port]
    assert published == {f"127.0.0.1:{port}:{port}" for port in wanted}


def test_azurite_is_the_one_that_is_tested():
    """The same version in Docker as in the embedded stack."""
    lock = json.loads((ROOT / "local/package-lock.json").read_text())
    assert COMPOSE["azurite"]["image"].endswith(f":{lock['packages']['node_modules/azurite']['version']}")


def test_the_emulator_gets_every_queue(tmp_path):
    """Config.json has the queues of infra/queues.json, with their properties."""
    written = json.loads(core_tools.write_config(tmp_path / "new").read_text())
    assert written == config()
    made = {each["Name"]: each["Properties"] for each in written["UserConfig"]["Namespaces"][0]["Queues"]}
    for queue in queues()["serviceBusQueues"]:
        assert made[queue["name"]]["LockDuration"] == queue["lockDuration"]
    assert len(made) == len(queues()["serviceBusQueues"])


async def test_the_app_opens_no_more_connections_than_the_emulator_allows(tmp_path, monkeypatch):
    """Counted on this process, with a sender to every queue of the app and the health check's receiver open."""
    triggers = index(json.loads((ROOT / "local.settings.template.json").read_text())["Values"]).values()
    used = [each["queueName"] for each in triggers if each["type"] == "serviceBusTrigger"]
    async with Stack(StackConfig.for_tests(tmp_path, hosts=0)) as stack:
        for name, value in stack.app_environment().items():
            monkeypatch.setenv(name, value)
        parts = connect(Settings.read())
        await parts.bus.probe(used)
        open_now = [
            each for each in psutil.Process().net_connections("tcp")
            if each.raddr and each.raddr.port == stack.ports.amqp_port and each.status == "ESTABLISHED"
        ]  # fmt: skip
        await parts.close()
    assert len(open_now) > len(used)
    assert len(open_now) + HOST_CONNECTIONS <= MOST_CONNECTIONS


def fake(folder, *names):
    """Programs that answer everything with success."""
    for name in names:
        (folder / name).write_text("#!/bin/sh\nexit 0\n")
        (folder / name).chmod(stat.S_IRWXU)


def test_everything_that_is_missing_is_named(tmp_path):
    """With nothing there, one message names all of it, and nothing is started."""
    environ = {"PATH": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "local.core_tools"]
    ran = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert [line.split(":")[0] for line in ran.stderr.splitlines()] == [
        "Missing for make func", "- func", "- docker", "- ACCEPT_EULA=Y",
    ]  # fmt: skip


def test_a_docker_that_does_not_answer_is_missing(tmp_path):
    """Docker may be installed and not run, or be without Compose."""
    fake(tmp_path, "func", "docker")
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "ACCEPT_EULA": "Y"}
    assert list(core_tools.missing(environ)) == []
    (tmp_path / "docker").write_text("#!/bin/sh\nexit 1\n")
    assert [line.split(":")[0] for line in core_tools.missing(environ)] == ["docker compose", "a running Docker"]


def test_own_settings_are_never_overwritten(tmp_path, monkeypatch):
    """The first time they are made from the template; what somebody changed stays."""
    monkeypatch.setattr(core_tools, "SETTINGS", tmp_path / "local.settings.json")
    assert core_tools.own_settings()["BUCKETS"] == "8"
    (tmp_path / "local.settings.json").write_text(json.dumps({"Values": {"BUCKETS": "3"}}))
    assert core_tools.own_settings() == {"BUCKETS": "3"}
