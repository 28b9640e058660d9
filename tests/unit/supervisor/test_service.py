"""Who sweeps, for how long, and what a sweep finds (SUP-2, SUP-5)."""

import logging
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from unittest.mock import AsyncMock, patch

import pytest

from engine.decisions.transitions import HistoryEntry, Transition
from engine.domain.errors import UnavailableError
from engine.domain.messages import OrderReady
from engine.domain.statuses import ProcessState
from engine.storage.agent_health import LONGEST_PROBE_PAUSE, AgentHealth, AttemptFault
from testkit.memory import MemoryLease
from tests.support.away import away
from tests.support.builders import (
    NOW,
    ORDER_ID,
    TIMEOUT,
    TOLERANCE,
    orders,
    seconds,
    some,
    supervisor,
)
from tests.support.memory_world import World

LEASE = timedelta(seconds=30)
PAGE = 10


@pytest.fixture
def world():
    with patch("supervisor.service.PAGE", PAGE):
        yield World()


async def overdue(world, count, *buckets):
    """Let begun payments of so many orders in each bucket time out; return their ids."""
    entry = HistoryEntry(at=NOW, actor="t", events=some("claimed"))
    ids = [f"{bucket}-{number:026d}" for bucket in buckets or ["b03"] for number in range(count)]
    for order_id in ids:
        order = orders.processing(order_id=order_id)
        await world.store.commit(Transition(before=None, after=order, entry=entry))
    await time_is_up(world, *ids)
    return ids


async def time_is_up(world, *order_ids):
    """Let the time of what was just asked pass; the agent says that it began these orders."""
    begun = tuple(f"{order_id}:payment:1:do" for order_id in order_ids)
    world.now += TIMEOUT + TOLERANCE + seconds(0.001)
    await world.app.engine.agent_health.publish(
        AgentHealth(
            agent="payment",
            instance="p1",
            at=world.now,
            begun=begun,
            faults=(AttemptFault(text="", requests=begun),),
        )
    )


async def recovered(world, ids):
    """Those of the orders whose failure was counted, once."""
    counts = {order_id: (await world.store.load(order_id)).failures for order_id in ids}
    assert set(counts.values()) <= {0, 1}
    return [order_id for order_id in ids if counts[order_id]]


@pytest.mark.proves("SUP-2", "SUP-5")
async def test_only_the_elected_supervisor_sweeps_until_its_lease_lapses(world):
    """The second supervisor waits while the first holds the lease, and takes over after it."""
    lease = MemoryLease()
    first, second = world.supervised_by("v1", lease), world.supervised_by("v2", lease)
    await world.submitted()
    await world.scheduler.on_order_ready(OrderReady(order_id=ORDER_ID))
    assert await first.sweep() == 0
    await time_is_up(world, ORDER_ID)
    assert await second.sweep() == 0
    assert (await world.order()).failures == 0
    world.now += LEASE
    assert await second.sweep() == 1
    assert await first.sweep() == 0
    assert (await world.order()).failures == 1


@pytest.mark.proves("SUP-5")
async def test_a_supervisor_that_is_not_elected_does_not_even_say_that_it_has_swept(world, caplog):
    """Else the stall detector and the alert on sweeps would not notice that no supervisor sweeps."""
    caplog.set_level(logging.INFO)
    lease = MemoryLease()
    await world.supervised_by("v1", lease).sweep()
    world.now += seconds(1)
    await world.supervised_by("v2", lease).sweep()
    last = await world.app.engine.sweeps.last()
    assert (last.instance, last.at) == ("v1", NOW)
    assert [record.message for record in caplog.records] == ["supervisor.swept"]


@pytest.mark.proves("SUP-5", "FLT-5")
async def test_a_sweep_ends_where_the_lease_was_lost(world, caplog):
    """The next leader goes on after the page read before, and says that it came to the end."""
    caplog.set_level(logging.INFO, logger="supervisor")
    ids = await overdue(world, PAGE + 5)
    first, second = (
        world.supervised_by(name, lease) for lease in [MemoryLease()] for name in ("v1", "v2")
    )
    work_items = world.store.work_items

    async def slowly(*query):
        page = await work_items(*query)
        if page:
            world.now += LEASE
        return page

    world.store.work_items = slowly
    assert await first.sweep() == PAGE
    assert await recovered(world, ids) == ids[:PAGE]
    assert caplog.records == []
    world.store.work_items = work_items
    assert await second.sweep() == 5
    assert [record.message for record in caplog.records] == ["supervisor.swept"]
    assert await recovered(world, ids) == ids


@pytest.mark.proves("SUP-5", "FLT-5")
async def test_a_supervisor_that_has_lost_the_lease_before_it_begins_recovers_nothing(world):
    """The answer to its request took longer than the lease."""
    ids = await overdue(world, 1)
    late = world.supervised_by("v1")
    acquire = late.leadership.acquire

    async def slowly():
        elected = await acquire()
        world.now += LEASE
        return elected

    late.leadership.acquire = slowly
    await late.sweep()
    assert await recovered(world, ids) == []


@pytest.mark.proves("SUP-2")
async def test_a_sweep_finds_what_is_overdue_however_many_pages_that_are(world):
    """And nothing that is not."""
    ids = await overdue(world, 2 * PAGE + 1)
    await world.submitted()
    await world.scheduler.on_order_ready(OrderReady(order_id=ORDER_ID))
    assert await world.supervisor.sweep() == 2 * PAGE + 1
    assert await recovered(world, [*ids, ORDER_ID]) == ids
    assert (await world.app.engine.sweeps.last()).recovered == 2 * PAGE + 1


OUTAGES = {
    "looking": ("work_items", lambda bucket, *_: bucket),
    "recovering": ("commit", lambda change: change.after.order_id),
}


@pytest.mark.proves("FLT-7", "SUP-7")
@pytest.mark.parametrize("what", OUTAGES)
async def test_a_sweep_that_could_not_see_to_every_bucket_is_none(world, caplog, what):
    """Other buckets are seen to, the sweep is not done, and no order is called broken."""
    caplog.set_level(logging.INFO, logger="supervisor")
    ids = await overdue(world, 2, "b03", "b05")
    name, place_of = OUTAGES[what]
    reached = getattr(world.store, name)

    async def with_one_bucket_away(*arguments):
        if place_of(*arguments).startswith("b03"):
            raise UnavailableError
        return await reached(*arguments)

    setattr(world.store, name, with_one_bucket_away)
    with pytest.raises(ExceptionGroup) as caught:
        await world.supervisor.sweep()
    assert caught.value.split(UnavailableError)[1] is None
    assert await recovered(world, ids) == ids[2:]
    assert await world.app.engine.sweeps.last() is None
    assert caplog.records == []
    setattr(world.store, name, reached)
    assert await world.supervisor.sweep() == 2
    assert await recovered(world, ids) == ids
    assert (await world.app.engine.sweeps.last()).recovered == 2
    assert [record.message for record in caplog.records] == ["supervisor.swept"]


@pytest.mark.proves("SUP-2", "FLT-9")
async def test_a_sweep_looks_at_nothing_whose_reply_may_still_count(world):
    """Until the tolerance has passed too; nor does it say that it recovered anything."""
    await world.submitted()
    await world.scheduler.on_order_ready(OrderReady(order_id=ORDER_ID))
    world.now += TIMEOUT + TOLERANCE / 2
    assert await world.supervisor.sweep() == 0


@pytest.mark.proves("SUP-4", "FLT-5")
async def test_two_sweeps_of_one_time_out_count_it_once(world):
    """Both believe that they lead: the conditional write lets one count the failure."""
    await world.submitted()
    await world.scheduler.on_order_ready(OrderReady(order_id=ORDER_ID))
    world.now += TIMEOUT + TOLERANCE + seconds(0.001)
    loaded = await world.order()
    first, second = supervisor.recover(loaded, world.now), supervisor.recover(loaded, world.now)
    assert await world.unit_of_work.commit(first) is True
    assert await world.unit_of_work.commit(second) is False
    assert (await world.order()).failures == 1


@pytest.mark.proves("SUP-6")
def test_the_supervisor_knows_no_workflow():
    """Importing the supervisor imports no workflow: the rules it needs stand in the steps."""
    known = "any(name.startswith(('engine.declarations.workflow', 'shop')) for name in sys.modules)"
    code = f"import supervisor.triggers, sys; sys.exit({known})"
    root = Path(__file__).parents[3]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0


# What agents said of themselves


async def claimed(world):
    """An order that was claimed just now."""
    order = await world.submitted()
    await world.scheduler.on_order_ready(OrderReady(order_id=ORDER_ID))
    return order


async def reports(world):
    """What everybody can read of the agents."""
    return await world.app.engine.agent_health.since(NOW - timedelta(days=1))


async def silences(world):
    """Since when agents have been asked in vain, as it was told."""
    return [
        (report.agent, report.unresponsive_since)
        for report in await reports(world)
        if report.unresponsive_since
    ]


@pytest.mark.proves("SUP-3", "FLT-2")
@pytest.mark.parametrize("later", [UnavailableError, []], ids=["for long", "for a moment"])
async def test_while_reports_of_agents_cannot_be_read_no_attempt_is_charged(world, caplog, later):
    """Orders are given back, the sweep counts, and no agent is called silent for that."""
    await claimed(world)
    await time_is_up(world)
    with patch.object(
        world.app.engine.agent_health, "since", AsyncMock(side_effect=[UnavailableError, later])
    ):
        assert await world.supervisor.sweep() == 1
    order = await world.order()
    assert (order.process_state, order.failures) == (ProcessState.PENDING, 0)
    assert await silences(world) == []
    assert "supervisor.health_away" in [record.message for record in caplog.records]
    assert (await world.app.engine.sweeps.last()).recovered == 1


@pytest.mark.proves("SUP-3", "AGT-10")
async def test_that_an_agent_is_silent_is_one_alert_for_the_agent(world):
    """Not for each order, bucket or page; and since the first of them was asked."""
    ids = await unheard(world, PAGE + 1, "b03", "b05")
    world.now += seconds(30)
    health = world.app.engine.agent_health
    with patch.object(health, "publish", AsyncMock(wraps=health.publish)) as publish:
        await world.supervisor.sweep()
    assert publish.call_count == 1
    assert await recovered(world, ids) == []
    assert [(await world.store.load(order_id)).process_state for order_id in ids] == [
        ProcessState.PENDING
    ] * len(ids)
    assert await silences(world) == [("payment", NOW)]


async def unheard(world, count, *buckets):
    """Orders whose time is up, at an agent that nobody has heard of."""
    ids = await overdue(world, count, *buckets)
    for report in await reports(world):
        await world.app.engine.agent_health.remove(report)
    return ids


@pytest.mark.proves("SUP-10")
async def test_a_silent_agent_is_recorded_before_its_orders_are_given_back(world):
    """The wake-ups of the orders would lead to the next requests otherwise."""
    await unheard(world, 3, "b03", "b05")
    world.now += seconds(30)
    known = []

    async def send(messages):
        known.append(await silences(world))

    with patch.object(world.app.engine.adapters.bus, "send", send):
        await world.supervisor.sweep()
    assert known == [[("payment", NOW)]] * 6


@pytest.mark.proves("SUP-3", "AGT-10")
async def test_an_agent_is_silent_since_its_first_request(world):
    """However often it is asked again, what was said before is replaced, by whoever says it."""
    first, second = (
        world.supervised_by(name, lease) for lease in [MemoryLease()] for name in ("v1", "v2")
    )
    await claimed(world)
    for supervised_by in (first, first, second):
        world.now += LEASE
        await supervised_by.sweep()
        assert await silences(world) == [("payment", NOW)]
        world.now += LONGEST_PROBE_PAUSE
        await world.scheduler.on_order_ready(OrderReady(order_id=ORDER_ID))
        assert (await world.order()).process_state is ProcessState.PROCESSING
    assert (await world.order()).failures == 0


@pytest.mark.proves("SUP-3", "AGT-10")
async def test_an_agent_that_is_behind_is_not_called_silent(world):
    """It began what was asked before, and speaks: nothing is charged, and nothing is told."""
    await claimed(world)
    await time_is_up(world)
    await world.supervisor.sweep()
    order = await world.order()
    assert (order.process_state, order.failures) == (ProcessState.PENDING, 0)
    assert await silences(world) == []


@pytest.mark.proves("SUP-3", "FLT-7")
async def test_a_sweep_counts_although_silence_cannot_be_reported(world):
    """The next one tells it."""
    await claimed(world)
    world.now += LEASE
    with patch.object(world.app.engine.agent_health, "publish", away):
        assert await world.supervisor.sweep() == 1
    assert (await world.app.engine.sweeps.last()).recovered == 1


@pytest.mark.proves("SUP-3", "FLT-7")
async def test_silence_is_reported_although_a_bucket_is_away(world):
    """What the others show is known."""
    await unheard(world, 1, "b03", "b05")
    work_items = world.store.work_items

    async def of_others(bucket, *query):
        return await (away() if bucket == "b05" else work_items(bucket, *query))

    with patch.object(world.store, "work_items", of_others), pytest.raises(ExceptionGroup):
        await world.supervisor.sweep()
    assert await silences(world) == [("payment", NOW)]
