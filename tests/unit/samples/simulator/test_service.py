"""The simulated services on a ledger in memory, at a time that the tests set."""

import asyncio

import pytest

from engine.domain.errors import UnavailableError
from samples.simulator.ledger import Ledger
from samples.simulator.service import FAULT_CACHE_SECONDS
from testkit.memory import of_columns
from tests.support.builders import seconds
from tests.support.simulated_world import World


class WatchedLedger(Ledger):
    """Counts how often the faults were read; fails while it is told to."""

    def __init__(self):
        super().__init__(of_columns())
        self.readings = 0
        self.away = False

    async def faults(self, service):
        self.readings += 1
        for _ in range(5):
            await asyncio.sleep(0)
        if self.away:
            raise UnavailableError
        return await super().faults(service)


@pytest.fixture
def watched():
    """A world that counts what is read."""
    return World(WatchedLedger())


@pytest.mark.parametrize(
    ("service", "do", "undo"),
    [
        ("payment", "authorise", "void"),
        ("payment", "capture", "refund"),
        ("inventory", "reserve", "release"),
        ("shipping", "ship", "cancel"),
    ],
)
async def test_what_comes_after_its_undo_is_refused(world, service, do, undo):
    """The undo may come first: then the late call finds itself undone (UND-2)."""
    assert (await world.call(undo, service=service)).status == 200
    assert (await world.call(undo, service=service)).status == 200
    late = await world.call(do, service=service)
    assert late.status == 410
    assert "undone" in late.reason
    assert await world.effects(service=service) == (3, [undo])


@pytest.mark.parametrize(
    ("mode", "chance", "status", "effects"),
    [
        ("down", 0, 503, []),
        ("reject", 0, 422, []),
        ("hang", 0, 504, []),
        ("slow", 0, 200, ["authorise"]),
        ("late", 0, 504, ["authorise"]),
        ("flaky", 0.1, 503, []),
        ("flaky", 0.4, 502, ["authorise"]),
        ("flaky", 0.6, 200, ["authorise"]),
    ],
)
@pytest.mark.proves("FLT-1")
async def test_every_fault_does_what_it_says(world, mode, chance, status, effects):
    """Answer and effect are two things; the call is counted either way, and once lifted all is well."""
    world.chance = chance
    await world.fault(mode, failureRate=0.5)
    assert (await world.call()).status == status
    assert await world.effects() == (1, effects)
    await world.fault("none")
    assert (await world.call()).status == 200
    assert await world.effects() == (2, ["authorise"])


async def test_a_token_is_refused_for_the_first_call_of_every_key(world):
    """The same key works the second time, another one is refused first; nothing happens before."""
    await world.fault("unauthorized")
    keys = ("o1:payment", "o1:payment", "o1:capture", "o2:payment", "o1:capture")
    statuses = [(await world.call(key=key)).status for key in keys]
    assert statuses == [401, 200, 401, 401, 200]
    assert await world.effects() == (5, ["authorise"] * 2)


@pytest.mark.parametrize(("mode", "effects"), [("hang", []), ("late", []), ("slow", ["authorise"])])
async def test_what_happens_happens_before_the_answer_is_held_back(world, mode, effects):
    """A call is counted, and its effect there unless it is late, while the caller waits; other calls go on."""
    await world.fault(mode, latencyMs=3000, match={"orderId": "o1"})
    held, waiting = asyncio.Event(), asyncio.Event()

    async def wait(delay):
        if delay:
            assert delay == 3
            waiting.set()
            await held.wait()

    world.host.sleep = wait
    call = asyncio.create_task(world.call())
    await waiting.wait()
    assert await world.effects("o1") == (1, effects)
    assert (await world.call(key="o2:payment")).status == 200
    assert not call.done()
    held.set()
    assert (await call).status == (200 if mode == "slow" else 504)


async def test_a_caller_who_gave_up_changes_nothing(world):
    """A handler that is cancelled while it holds an answer back has counted its call and done its effect."""
    await world.fault("slow")
    waiting = asyncio.Event()

    async def wait(_):
        waiting.set()
        await asyncio.Event().wait()

    world.host.sleep = wait
    call = asyncio.create_task(world.call())
    await waiting.wait()
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    assert await world.effects() == (1, ["authorise"])


async def test_a_fault_is_in_force_on_every_host_when_its_put_has_answered(watched):
    """The put waits for as long as another host may go by what it has read."""
    other = watched.another_host()
    assert await other.faults("payment") == {"faults": []}
    began = watched.now
    await watched.fault("down")
    assert watched.now - began >= seconds(FAULT_CACHE_SECONDS)
    assert [fault["mode"] for fault in (await other.faults("payment"))["faults"]] == ["down"]


async def test_calls_share_what_was_read_of_the_faults(watched):
    """One reading is enough for everybody until it is too old."""
    await watched.call()
    watched.now += seconds(FAULT_CACHE_SECONDS * 0.9)
    await watched.call()
    assert watched.ledger.readings == 1
    watched.let_caches_lapse()
    await watched.call()
    assert watched.ledger.readings == 2


async def test_those_that_call_at_the_same_time_read_the_faults_once(watched):
    """However many they are, and also those that come while they are read."""

    async def call(number):
        for _ in range(number):
            await asyncio.sleep(0)
        await watched.call(key=f"o{number}:payment")

    await asyncio.gather(*map(call, range(20)))
    assert watched.ledger.readings == 1


async def test_a_clock_that_is_set_back_does_not_keep_old_faults(watched):
    """What was read at a time that is yet to come is not trusted."""
    await watched.call()
    watched.now -= seconds(3600)
    await watched.call()
    assert watched.ledger.readings == 2


async def test_a_reading_that_failed_is_not_kept(watched):
    """Who waited for it hears of the outage; the next call reads again."""
    watched.ledger.away = True
    with pytest.raises(UnavailableError):
        await watched.call()
    watched.ledger.away = False
    assert (await watched.call()).status == 200
