"""A matrix of faults, with orders throughout: what is broken heals by itself, nothing accepted is lost or doubled.

Each case has as long as a fresh start took on this machine, and five seconds; longer if the machine has become slower.
"""

import asyncio
import os
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import asynccontextmanager, suppress
from itertools import combinations, permutations
from uuid import uuid4

import aiohttp
import psutil
import pytest

from development.pace import seconds_of_work
from development.servicebus_config import ROOT
from functions_alone.ports import Ports
from functions_alone.tests.support.runner import Runner
from functions_alone.tests.support.waiting import PATIENCE_SECONDS
from tests.support.prerequisites import faketime_library
from tests.support.scale import NIGHTLY

pytestmark = [
    pytest.mark.soak,
    pytest.mark.alone,
    pytest.mark.skipif(not psutil.LINUX, reason="only Linux has these faults"),
]

MORE_SECONDS = 5
STOPPED_SECONDS = 5
SHORT_LIFE_SECONDS = 2
"""What ends earlier is started again after a pause; so a fault waits until all parts are older."""
LONG_SECONDS = SHORT_LIFE_SECONDS + 1
PARTS = ("azurite", "broker", "host", "fork server", "worker")
ORDER = {
    "customer": {"name": "Ada", "email": "ada@example.com"},
    "items": [{"sku": "TEA-SENCHA", "quantity": 2}],
}
EFFECTS = {"inventory": ["reserve"], "payment": ["authorise", "capture"], "shipping": ["ship"]}


class Shop:
    """A running stack and a customer who orders all the time, and tries each order again until it is accepted."""

    def __init__(self, runner):
        self.runner, self.placed = runner, []
        self.http = aiohttp.ClientSession(
            f"http://127.0.0.1:{runner.ports.http_port}",
            timeout=aiohttp.ClientTimeout(total=10),
            headers={"x-functions-key": "local-operator"},
        )
        self.start_seconds, self.start_pace = 0.0, seconds_of_work()

    def fresh_start_and_more(self):
        """Seconds within which all has to be well again."""
        slower = max(1.0, seconds_of_work() / self.start_pace)
        return self.start_seconds * slower + MORE_SECONDS

    async def order_again_and_again(self):
        while True:
            key = str(uuid4())
            while not (order := await self.place(key)):  # noqa: ASYNC110 - it is asked for
                await asyncio.sleep(0.2)
            self.placed.append(order)
            await asyncio.sleep(0.3)

    async def place(self, key):
        with suppress(aiohttp.ClientError, TimeoutError):
            headers = {"Idempotency-Key": key}
            async with self.http.post("/api/orders", json=ORDER, headers=headers) as answer:
                if answer.status == 202:
                    return (await answer.json())["orderId"]
        return None

    async def is_healthy(self):
        with suppress(aiohttp.ClientError, TimeoutError):
            async with self.http.get("/api/health") as answer:
                return answer.status == 200
        return False

    async def heals(self, seconds, killed=()):
        """It has to be healthy after so many seconds, and what was killed is there anew."""
        began = time.monotonic()
        while not (self.has_anew(killed) and await self.is_healthy()):
            took = time.monotonic() - began
            assert took < seconds, f"not healthy after {took:.1f} s:\n{self.runner.output[-2000:]}"
            await asyncio.sleep(0.1)

    def has_anew(self, killed):
        """Whether each part that was killed is another process now."""
        with suppress(psutil.NoSuchProcess, StopIteration, ValueError, IndexError):
            now = {part: self.find(part) for part, _ in killed}
            return all(now[part] != former for part, former in killed)
        return False

    async def states_of(self, orders):
        states = {}
        for order in orders:
            async with self.http.get(f"/api/orders/{order}") as answer:
                states[order] = (await answer.json()).get("processState", answer.status)
        return states

    async def brings_all_to_their_end(self):
        """Every order that was accepted is carried out; one that is lost stays 404."""
        left, end = set(self.placed), time.monotonic() + PATIENCE_SECONDS
        while left:
            with suppress(aiohttp.ClientError, TimeoutError):
                states = await self.states_of(left)
                left = {order for order, state in states.items() if state != "Processed"}
            assert time.monotonic() < end, {order: states[order] for order in left}
            await asyncio.sleep(0.5)

    async def has_done_all_once(self):
        """Nobody orders any more; each service did for each order what it was to do, once."""
        self.customer.cancel()
        await asyncio.wait([self.customer])
        await self.brings_all_to_their_end()
        for service, actions in EFFECTS.items():
            async with self.http.get(f"/simulator/{service}/ledger") as answer:
                effects = (await answer.json())["effects"]
            done = Counter((effect["idempotencyKey"], effect["action"]) for effect in effects)
            assert set(done.values()) == {1}
            ours = [key for key, _ in done if key.partition(":")[0] in set(self.placed)]
            assert len(ours) == len(actions) * len(self.placed)

    def find(self, part):
        """The process that is this part now."""
        if part == "runner":
            return psutil.Process(self.runner.process.pid)
        marks = {"azurite": "azurite.mjs", "broker": "main.mjs"}
        children = self.runner.children()
        if part in marks:
            return next(child for child in children if marks[part] in " ".join(child.cmdline()))
        host = next(child for child in children if "functions_alone.host" in child.cmdline())
        if part == "host":
            return host
        (fork_server,) = host.children()
        return fork_server if part == "fork server" else fork_server.children()[-1]

    async def has_all_parts(self):
        """The parts, once all is well and no end of them would be that of a short life, after which there is a pause."""
        await self.heals(PATIENCE_SECONDS)
        while True:
            with suppress(psutil.NoSuchProcess, StopIteration, ValueError, IndexError):
                parts = {part: self.find(part) for part in ("runner", *PARTS)}
                if (
                    max(process.create_time() for process in parts.values())
                    < time.time() - LONG_SECONDS
                ):
                    return parts
            await asyncio.sleep(0.1)


@asynccontextmanager
async def running(data, **variables):
    ports = Ports.free()
    moved = {name.upper(): str(getattr(ports, name)) for name in Ports.__dataclass_fields__}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "development", "run"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=os.environ
        | moved
        | {"DATA_DIR": str(data), "FAILURE_THRESHOLD": "1000"}
        | {"LOCAL_SHORT_LIFE_SECONDS": str(SHORT_LIFE_SECONDS)}
        | variables,
        cwd=ROOT,
    )
    began = time.monotonic()
    shop = Shop(Runner(process, ports, data))
    await shop.runner.until_it_says("Ctrl-C stops everything")
    shop.start_seconds = time.monotonic() - began
    listening = asyncio.create_task(shop.runner.listen())
    shop.customer = asyncio.create_task(shop.order_again_and_again())
    try:
        yield shop
        await shop.has_done_all_once()
    finally:
        shop.customer.cancel()
        listening.cancel()
        await shop.http.close()
        process.send_signal(signal.SIGTERM)
        await process.communicate()


@pytest.fixture(scope="module")
async def shop(request, tmp_path_factory):
    """With one worker process, and with one for each function; at the end each order was carried out once."""
    data = tmp_path_factory.mktemp("matrix")
    async with running(data, LOCAL_FUNCTION_PROCESSES=request.param) as shop:
        yield shop


KILLED, STOPPED = signal.SIGKILL, signal.SIGSTOP
ALONE = [[(part, number)] for number in (KILLED, STOPPED) for part in PARTS]
KILLED_BOTH = [[(one, KILLED), (other, KILLED)] for one, other in combinations(PARTS, 2)]
STOPPED_AND_KILLED = [[(one, STOPPED), (other, KILLED)] for one, other in permutations(PARTS, 2)]
RUNNER_STOPPED = [[("runner", STOPPED), (part, KILLED)] for part in PARTS]
FORKS = [[(one, KILLED), (other, KILLED)] for one, other in permutations(("fork server", "worker"))]
ONE_OF_EVERY_KIND = ("azurite", "host")
"""A part that keeps data, and one that keeps none."""
USUAL = [
    *ALONE,
    *KILLED_BOTH,
    [("runner", STOPPED)],
    *(faults for faults in RUNNER_STOPPED if faults[1][0] in ONE_OF_EVERY_KIND),
    *(faults for faults in FORKS if faults not in KILLED_BOTH),
]
REST = [faults for faults in (*RUNNER_STOPPED, *STOPPED_AND_KILLED) if faults not in USUAL]
EVERY = USUAL + (REST if NIGHTLY else [])


def name_of(faults):
    return " and ".join(f"{part} {number.name}" for part, number in faults)


@pytest.mark.parametrize(
    ("shop", "faults"),
    [
        *(pytest.param("one", faults, id=name_of(faults)) for faults in EVERY),
        *(pytest.param("each", faults, id=f"each: {name_of(faults)}") for faults in FORKS),
    ],
    indirect=["shop"],
    scope="module",
)
async def test_what_is_killed_or_stopped_heals(shop, faults):
    """What is stopped goes on after a while, if it is still there."""
    parts = await shop.has_all_parts()
    for part, number in faults:
        with suppress(psutil.NoSuchProcess):
            parts[part].send_signal(number)
    if stopped := [parts[part] for part, number in faults if number == STOPPED]:
        await asyncio.sleep(STOPPED_SECONDS)
    for process in stopped:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGCONT)
    killed = [(part, parts[part]) for part, number in faults if number == KILLED]
    await shop.heals(shop.fresh_start_and_more(), killed)


@pytest.mark.parametrize("shop", ["one"], indirect=True, scope="module")
@pytest.mark.parametrize("part", ["azurite", "broker", "host"])
async def test_descriptors_that_run_out_come_back(shop, part):
    """For a while nothing can be opened, and connections are refused."""
    process = (await shop.has_all_parts())[part]
    usual = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (process.num_fds(), usual[1]))
    await asyncio.sleep(STOPPED_SECONDS)
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, usual)
    await shop.heals(shop.fresh_start_and_more())


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own, where that may be made."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", str(folder)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)  # noqa: S607 - wherever it is


async def test_a_disk_that_is_full_for_a_while_costs_no_order(small_disk):
    """All parts go on, or are started again until there is room."""
    async with running(small_disk) as shop:
        await asyncio.sleep(STOPPED_SECONDS)
        filler = small_disk / "filler"
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
        await asyncio.sleep(2 * STOPPED_SECONDS)
        filler.unlink()
        await shop.heals(shop.fresh_start_and_more())


JUMP_SECONDS = 60


async def test_a_clock_that_jumps_forward_and_back_costs_no_order(tmp_path):
    """That of the machine, for all parts at once; what runs between two looks at it does not jump."""
    ahead = tmp_path / "ahead"
    ahead.write_text("+0")
    moved = {
        "LD_PRELOAD": str(faketime_library()),
        "FAKETIME_TIMESTAMP_FILE": str(ahead),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    async with running(tmp_path / "data", **moved) as shop:
        for offset in (JUMP_SECONDS, 0):
            before = len(shop.placed)
            while len(shop.placed) < before + 5:  # noqa: ASYNC110 - the customer goes on
                await asyncio.sleep(0.1)
            ahead.write_text(f"+{offset}")
            await shop.heals(shop.fresh_start_and_more())
