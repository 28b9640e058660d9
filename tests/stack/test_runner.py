"""`python -m local run`, as a person starts and stops it."""

import asyncio
import json
import os
import signal
import socket
import sys
from dataclasses import fields
from functools import partial

import aiohttp
import psutil
import pytest
from client import eventually

from local.ports import Ports
from local.servicebus_config import config, queues


class Runner:
    """The command in a process of its own, with its output."""

    def __init__(self, process, ports):
        self.process, self.ports, self.output = process, ports, ""

    async def says(self, text):
        while text not in self.output:
            chunk = await self.process.stdout.read(4096)
            assert chunk, self.output
            self.output += chunk.decode()

    def children(self):
        return psutil.Process(self.process.pid).children(recursive=True)


@pytest.fixture
async def start(tmp_path):
    """Start the runner; end it with everything that belongs to it."""
    runners = []

    async def launch(**environ):
        ports = Ports.free()
        settings = {field.name.upper(): str(getattr(ports, field.name)) for field in fields(ports)}
        settings |= {"DATA_DIR": str(tmp_path)} | environ
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "local", "run"),
            env=os.environ | settings,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        runners.append(Runner(process, ports))
        return runners[-1]

    yield launch
    for runner in runners:
        if runner.process.returncode is None:
            runner.process.terminate()
        await runner.process.communicate()


async def healthy(runner):
    url = f"http://127.0.0.1:{runner.ports.http_port}/api/health"
    async with aiohttp.ClientSession() as client, client.get(url) as response:
        return response.status == 200


async def test_it_says_where_everything_is_and_stops_cleanly(start):
    """Ready means healthy; the key and the addresses are printed; SIGTERM leaves no process and exits with 0."""
    runner = await start(OPERATOR_KEY="a-key")
    await runner.says("Ctrl-C stops everything")
    assert f"http://127.0.0.1:{runner.ports.http_port}/api/operator/orders" in runner.output
    assert "x-functions-key: a-key" in runner.output
    assert await healthy(runner)
    children = runner.children()
    assert len(children) == 3
    runner.process.terminate()
    assert await runner.process.wait() == 0
    assert [child for child in children if child.is_running()] == []


async def test_a_host_that_dies_is_started_again(start):
    """SIGKILL of the host: the runner says so and brings it back."""
    runner = await start()
    await runner.says("Ctrl-C stops everything")
    (host,) = [child for child in runner.children() if "local.host" in " ".join(child.cmdline())]
    host.send_signal(signal.SIGKILL)
    await runner.says("host-1 ended unexpectedly; starting it again")
    await runner.says("host is ready")
    await eventually(partial(healthy, runner))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
async def test_nothing_outlives_a_runner_that_is_killed(start):
    """SIGKILL of the runner ends everything that it has started."""
    runner = await start()
    await runner.says("Ctrl-C stops everything")
    children = runner.children()
    runner.process.kill()
    await runner.process.wait()

    async def all_gone():
        return not [child for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]

    await eventually(all_gone)


async def test_every_taken_port_is_named_with_the_variable_that_moves_it(start):
    """The stack does not start beside something else, and says what to do."""
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        numbers = one.getsockname()[1], other.getsockname()[1]
        runner = await start(TABLE_PORT=str(numbers[0]), AMQP_PORT=str(numbers[1]))
        output, _ = await runner.process.communicate()
    assert runner.process.returncode == 1
    assert f"- {numbers[0]}: set TABLE_PORT to another one" in output.decode()
    assert f"- {numbers[1]}: set AMQP_PORT to another one" in output.decode()


async def test_every_wrong_variable_is_named(start):
    """Bad ports and a bad number of hosts come in one message."""
    runner = await start(TABLE_PORT="no", HOSTS="0")
    output, _ = await runner.process.communicate()
    assert runner.process.returncode == 1
    assert "TABLE_PORT=no" in output.decode()
    assert "HOSTS=0" in output.decode()


async def test_a_wrong_app_setting_ends_the_start_with_its_name(start):
    """What the app says about its settings reaches the person who started the stack."""
    runner = await start(LEASE_SECONDS="3", BUCKETS="none")
    output, _ = await runner.process.communicate()
    assert runner.process.returncode == 1
    assert "LEASE_SECONDS" in output.decode()
    assert "BUCKETS" in output.decode()


def test_the_brokers_config_has_every_queue_in_microsofts_format():
    """Config.json is made from infra/queues.json and keeps within the emulator's limits."""
    (namespace,) = config()["UserConfig"]["Namespaces"]
    assert namespace["Name"] == "sbemulatorns"
    assert namespace["Topics"] == []
    assert [queue["Name"] for queue in namespace["Queues"]] == [q["name"] for q in queues()["serviceBusQueues"]]
    assert all(queue["Properties"]["MaxDeliveryCount"] <= 10 for queue in namespace["Queues"])
    json.dumps(config())
