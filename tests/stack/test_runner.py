"""`python -m development run`, as a person starts and stops it."""

import asyncio
import contextlib
import json
import os
import signal
from functools import partial

import aiohttp
import psutil
import pytest
from click.testing import CliRunner

from development.__main__ import main, run_until_signal
from development.business import TRIED, named
from functions_alone.ports import Ports
from functions_alone.tests.support.dead_proxy import DEAD_PROXY
from functions_alone.tests.support.runner import alive, environment_of
from functions_alone.tests.support.waiting import eventually, until
from tests.support.scale import in_soak


async def is_healthy(runner):
    url = f"http://127.0.0.1:{runner.ports.http_port}/api/health"
    async with aiohttp.ClientSession() as client, client.get(url) as response:
        assert response.status == 200, await response.text()
        return True


async def answers(runner):
    try:
        return await is_healthy(runner)
    except aiohttp.ClientConnectionError:
        return False


async def test_it_runs_until_ctrl_c(start_runner):
    """(bugs 13) With a dead proxy in its environment it serves, and nothing is left in the end.

    It says where everything is once the app is healthy; a host that dies comes back.
    """
    runner = await start_runner(OPERATOR_KEY="a-key", BUSINESS=TRIED)
    await runner.until_it_says("Ctrl-C stops everything")
    assert f"http://127.0.0.1:{runner.ports.http_port}/api/operator/orders" in runner.output
    assert "x-functions-key: a-key" in runner.output
    assert "shorter than in Azure: LOCAL_QUEUE_LOCK_SECONDS is 30 instead of 600" in runner.output
    await eventually(partial(is_healthy, runner))
    await an_alert_arrives(runner)
    azurite, broker, host = sorted(
        runner.children(), key=lambda child: "functions_alone.host" in child.cmdline()
    )
    before = runner.descendants()
    host.kill()
    await runner.until_it_says("host-1 ended unexpectedly; starting it again (killed by SIGKILL")
    await runner.until_it_says("host is ready")
    await eventually(partial(is_healthy, runner))
    after = runner.children()
    assert {azurite, broker} < set(after)
    assert (len(after), host in after) == (3, False)
    after = runner.descendants()
    runner.process.send_signal(signal.SIGINT)
    assert await runner.until_it_ends() == 0, runner.output
    assert alive([*before, *after]) == []


async def an_alert_arrives(runner):
    """An order that is submitted beside the runner goes through every part: storage, HTTP, AMQP and Event Grid."""
    async with aiohttp.ClientSession(
        f"http://127.0.0.1:{runner.ports.http_port}", headers={"x-functions-key": "a-key"}
    ) as operator:
        faults = "/simulator/payment/faults"
        async with operator.put(faults, json={"mode": "reject"}) as response:
            assert response.status == 200
        command = ["submit", json.dumps(named(TRIED).sample.payload)]
        environment = DEAD_PROXY | environment_of(runner.ports)
        ended = await asyncio.to_thread(CliRunner().invoke, main, command, env=environment)
        assert ended.exit_code == 0, ended.stderr

        async def is_there():
            async with operator.get("/api/operator/alerts") as response:
                alerts = (await response.json())["alerts"]
                assert ended.stdout.strip() in [alert["orderId"] for alert in alerts]
            return True

        await eventually(is_there)


@pytest.mark.soak
async def test_it_runs_and_stops_although_nobody_reads_what_it_says(start_runner):
    """As behind a pager, or after Ctrl-S: it serves, and Ctrl-C is heard."""
    reading, writing = os.pipe()
    fill(writing)
    runner = await start_runner(stdout=writing)
    await eventually(partial(answers, runner))
    processes = [psutil.Process(runner.process.pid), *runner.descendants()]
    runner.process.send_signal(signal.SIGINT)
    await asyncio.to_thread(until, lambda: alive(processes), lambda left: left == [])
    os.close(reading)
    os.close(writing)


def fill(pipe):
    """From now on whoever writes waits."""
    os.set_blocking(pipe, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(pipe, b"x")
    os.set_blocking(pipe, True)


def has_all(found):
    """Azurite, the broker, and of the host three processes: itself, its fork server and a worker."""
    return len(found) == 5


@pytest.mark.skipif(not psutil.LINUX, reason="only Linux tells a child of its parent's death")
async def test_nothing_but_the_data_outlives_a_runner_that_is_killed(start_runner):
    """Azurite and the broker get SIGTERM, not SIGKILL, so that they write what they hold."""
    runner = await start_runner()
    await runner.until_it_says("functions host(s)")
    children = await asyncio.to_thread(until, runner.descendants, has_all)
    runner.process.kill()
    await asyncio.to_thread(until, lambda: alive(children), lambda left: left == [])
    assert list((runner.data / "broker").iterdir())


@pytest.mark.skipif(not psutil.LINUX, reason="only Linux tells a child of its parent's death")
@pytest.mark.soak
@pytest.mark.alone  # each start has a minute, with a backlog of up to 120 orders
@pytest.mark.parametrize("what", ["runner", "everything"])
async def test_no_order_is_lost_when_what_runs_is_killed(start_runner, what):
    """The kill comes right after the last order is recorded; the next runner has it, and brings it to its end.

    Azurite and the broker write what came in last when the runner is gone; killed with it, they have written it.
    """
    placed = []
    for _ in range(8):
        runner = await start_runner(FAILURE_THRESHOLD="1000")
        await runner.until_it_says("Ctrl-C stops everything")
        listening, children = asyncio.create_task(runner.listen()), runner.children()
        async with aiohttp.ClientSession(f"http://127.0.0.1:{runner.ports.http_port}") as shop:
            placed += await asyncio.gather(*(place(shop) for _ in range(15)))
        kill(runner, what)
        await asyncio.to_thread(until, lambda: alive(children), lambda left: left == [])  # noqa: B023 - awaited here
        await listening
    runner = await start_runner(FAILURE_THRESHOLD="1000")
    await runner.until_it_says("Ctrl-C stops everything")
    listening = asyncio.create_task(runner.listen())
    async with aiohttp.ClientSession(f"http://127.0.0.1:{runner.ports.http_port}") as shop:
        for order_id in placed:
            await eventually(partial(is_processed, shop, order_id))
    listening.cancel()


def kill(runner, what):
    """A runner that stands still starts nothing again before it is killed itself."""
    runner.process.send_signal(signal.SIGSTOP)
    for process in runner.descendants() if what == "everything" else []:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    runner.process.kill()


async def place(shop):
    """Place an order, and return its id once it is recorded."""
    body = {
        "customer": {"name": "Ada", "email": "ada@example.com"},
        "items": [{"sku": "TEA-SENCHA", "quantity": 2}],
    }
    async with shop.post("/api/orders", json=body) as response:
        assert response.status == 202, await response.text()
        order_id = (await response.json())["orderId"]
    await eventually(partial(state_of, shop, order_id))
    return order_id


async def state_of(shop, order_id):
    async with shop.get(f"/api/orders/{order_id}") as response:
        return (await response.json())["processState"] if response.status == 200 else None


async def is_processed(shop, order_id):
    state = await state_of(shop, order_id)
    assert state == "Processed", (order_id, state)
    return True


@pytest.fixture
def on_free_ports(monkeypatch, tmp_path):
    """What `run` finds in the environment."""
    for name, port in environment_of(Ports.free()).items():
        monkeypatch.setenv(name, port)
    monkeypatch.setenv("DATA_DIR", str(tmp_path))


@pytest.fixture
async def signals():
    """The signals are pytest's own again after the test."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        asyncio.get_running_loop().remove_signal_handler(number)
        signal.signal(number, handler)


@pytest.mark.usefixtures("on_free_ports", "signals")
@pytest.mark.parametrize(
    "moment", ["waiting for Azurite", *in_soak("broker is ready"), "functions host(s)"]
)
async def test_it_can_be_stopped_while_it_starts(moment):
    """Whoever changes their mind need not wait; no process is left."""
    lines = []

    def show(line):
        lines.append(line)
        if moment in line:
            signal.raise_signal(signal.SIGINT)

    before = set(psutil.Process().children())
    await run_until_signal(show)
    assert "[stack] stopping: the hosts finish what they are doing, then the rest ends" in lines
    assert lines[-1] == "[stack] stopped"
    assert "Ready after" not in "".join(lines)
    assert set(psutil.Process().children()) == before
