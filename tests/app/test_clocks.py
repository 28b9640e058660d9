"""What a process with a clock that is off still does, and how it knows (FLT-9)."""

import logging
from dataclasses import replace

import pytest
from ulid import ULID

from engine.decisions.transitions import HistoryEntry, Transition
from engine.domain.causes import Code
from engine.domain.clocks import DECISIVE, ClockSample, SkewDetector, least_skew
from engine.domain.errors import UnavailableError
from engine.domain.keys import buckets
from engine.domain.messages import OrderReady
from engine.domain.orders import Hold, OrderAggregate, Processed, Processing
from engine.domain.states import Completed
from engine.domain.statuses import Outcome
from engine.storage.clock_guard import TELL_AGAIN_SECONDS
from tests.support.builders import (
    NOW,
    TOLERANCE,
    answer_to,
    orders,
    refusal,
    seconds,
    some,
    transition,
)
from tests.support.clocks import Host
from tests.support.outbox import pending_events
from tests.support.scheduling import Scheduling, only

FAR = 70.0
SHORT = 0.1


def answer(ahead=0.0, *, at=0.0, waits=0.0, took=None, set_by=0.0):
    """The answer to a clock that is `ahead`: written after it `waits`, received a moment later.

    Meanwhile that clock is set by so many seconds.
    """
    sent = NOW + seconds(at)
    took = waits + SHORT if took is None else took
    written = (sent + seconds(waits)).replace(microsecond=0)
    received = sent + seconds(ahead + took + set_by)
    return ClockSample(
        date=written, sent=sent + seconds(ahead), received=received, took=seconds(took)
    )


PROVE = {
    "the clock is right": (answer(), 0),
    "at the end of a second": (answer(at=0.999), 0),
    "the clock is ahead, within the tolerance": (answer(1.0, at=0.999), 0),
    "it may be whole seconds": (answer(2.0), 0),
    "ahead by more than whole seconds explain": (answer(2.001), 1.001),
    "far ahead": (answer(FAR), FAR - 1),
    "behind, within the tolerance": (answer(-1.0), 0),
    "behind by more than the answer took": (answer(-1.2), -1.1),
    "far behind": (answer(-FAR), -FAR + SHORT),
    "a slow answer": (answer(waits=60.0), 0),
    "a slow answer to a clock that is ahead": (answer(FAR, waits=60.0), FAR - 61),
    "the process paused before it looked at the clock again": (answer(took=60.0), 0),
    "the clock was set forward meanwhile": (answer(FAR, set_by=-FAR), None),
    "the clock was set back meanwhile": (answer(-FAR, set_by=FAR), None),
    "the machine stood still meanwhile": (answer(set_by=60.0), None),
}


@pytest.mark.proves("FLT-9")
@pytest.mark.parametrize("what", PROVE)
def test_what_an_answer_proves(what):
    """It is the least that the clock can be off, despite pauses, slow answers and whole seconds."""
    given, by = PROVE[what]
    assert least_skew(given, TOLERANCE) == (None if by is None else seconds(by))


SEQUENCES = {
    "too few answers": ([FAR] * (DECISIVE - 1), False),
    "enough answers": ([FAR] * DECISIVE, True),
    "one liar among honest answers": ([0, 0, FAR, 0, 0], False),
    "several liars among honest answers": ([FAR, FAR, 0] * 5, False),
    "several liars that contradict each other": ([FAR, -FAR] * 5, False),
    "answers that prove nothing do not interrupt": ([FAR, None, FAR, None, FAR], True),
    "one honest answer to a clock that is off": ([FAR] * DECISIVE + [0, FAR], True),
    "too few answers that agree again": ([FAR] * DECISIVE + [0] * (DECISIVE - 1), True),
    "the clock was set right": ([FAR] * DECISIVE + [0] * DECISIVE, False),
}


@pytest.mark.proves("FLT-9")
@pytest.mark.parametrize("what", SEQUENCES)
def test_several_answers_in_sequence_decide(what):
    """That the clock is off, and that it is right again."""
    sequence, off = SEQUENCES[what]
    detector = SkewDetector(TOLERANCE)
    for ahead in sequence:
        detector.saw(answer(FAR, set_by=-FAR) if ahead is None else answer(ahead))
    assert (detector.skew is not None) is off


@pytest.mark.proves("FLT-9")
def test_a_skew_is_one_until_it_is_over():
    """It bears the store's time of the first answer that showed it; the other way is another."""
    detector = SkewDetector(TOLERANCE)
    began = []
    for at, ahead in enumerate([0, *[FAR] * 4, 0, *[FAR] * 3, *[-FAR] * 3]):
        detector.saw(answer(ahead, at=at))
        began.append(detector.skew and detector.skew.since)
    first, second = NOW + seconds(1), NOW + seconds(9)
    assert began == [*[None] * 3, *[first] * 8, second]


@pytest.fixture
def world():
    return Scheduling(only("payment", seconds(60)))


@pytest.fixture
def host(world):
    return Host(world)


@pytest.mark.proves("FLT-9")
async def test_the_time_of_the_store_is_read_unless_it_has_answered_lately(world, host):
    """Who does nothing else would not hear that its clock is right again; once is enough."""
    assert await host.skew() is None
    assert host.requests == DECISIVE
    world.now += seconds(5)
    await host.skew()
    assert host.requests == DECISIVE
    world.now += seconds(0.001)
    await host.skew()
    assert host.requests == DECISIVE + 1
    host.ahead = -FAR
    world.now += seconds(6)
    assert (await host.skew()).by < seconds(-FAR + 1)
    assert host.requests == 2 * DECISIVE + 1


@pytest.mark.proves("FLT-9", "FLT-7")
async def test_answers_that_do_not_say_the_time_prove_nothing(host):
    """Nor does a store that is away."""
    host.ahead = FAR
    for _ in range(DECISIVE):
        host.request(date=False)
    assert await host.skew() is None

    async def away():
        raise UnavailableError

    assert await Host(host.world, FAR).check.skew(away) is None


async def work(world, app, sweeper, rounds):
    """The app claims and hears its agent after five seconds; meanwhile the other one sweeps."""
    under_way = []
    for number in range(rounds):
        world.now += seconds(1)
        await app.engine.scheduler.poll()
        under_way += [(world.now + seconds(5), request) for request in world.requests()]
        for due, request in under_way:
            if due == world.now:
                await app.engine.scheduler.receive(answer_to(request, result={}), "payment")
        if number % 2 == 0:
            await sweeper.engine.supervisor.sweep()


@pytest.mark.proves("FLT-9", "SUP-2")
@pytest.mark.parametrize("ahead", [0, FAR])
async def test_a_leader_whose_clock_is_ahead_ends_no_order(world, ahead):
    """To its clock all is overdue that runs: the steps have 60 seconds, and are done in five."""
    app = world.app(instance_id="one")
    world.parts, there = Host(world, ahead).parts, world.parts
    leader = world.app(instance_id="leader")
    world.parts = there
    ids = [await world.record(bucket=f"b{number % 8:02d}") for number in range(20)]
    await work(world, app, leader, rounds=60)
    orders = [await world.load(order_id) for order_id in ids]
    assert [order.state for order in orders] == [Processed()] * 20
    assert [order.failures for order in orders] == [0] * 20


@pytest.fixture
def app(world, host):
    """An instance on that host."""
    world.parts = host.parts
    return world.app(instance_id="v1")


@pytest.mark.proves("FLT-9", "SCH-1", "SCH-2")
@pytest.mark.parametrize("ahead", [FAR, -FAR])
async def test_who_has_a_clock_that_is_off_claims_nothing_until_it_is_right(
    world, host, app, ahead
):
    """Neither what it finds nor what it is woken for; then it goes on by itself."""
    host.ahead = ahead
    order_id = await world.record(since=world.now - seconds(100))
    await app.engine.scheduler.poll()
    await app.engine.scheduler.on_order_ready(OrderReady(order_id=order_id))
    assert await world.pending([order_id])
    host.ahead = 0
    world.now += seconds(6)
    await app.engine.scheduler.poll()
    assert await world.pending([order_id]) == []


@pytest.mark.proves("FLT-9", "SCH-5")
@pytest.mark.parametrize("ahead", [FAR, -FAR])
async def test_who_has_a_clock_that_is_off_goes_on_taking_replies(world, host, app, ahead):
    """But claims nothing beside them: that is left to others."""
    first = await world.record()
    world.now += seconds(3)
    await app.engine.scheduler.poll()
    second = await world.record(since=world.now - seconds(100))
    host.ahead = ahead
    world.now += seconds(6)
    assert await host.skew()
    await app.engine.scheduler.on_order_ready(OrderReady(order_id=second))
    [request] = world.requests()
    await app.engine.scheduler.receive(answer_to(request, result={}), "payment")
    assert (await world.load(first)).state == Processed()
    assert await world.pending([second])


@pytest.mark.proves("FLT-9", "SCH-5")
async def test_who_has_a_clock_that_is_ahead_takes_the_reply_to_an_order_that_nobody_has(
    world, host, app
):
    """The order was given back, and is due at no time of its own; the step that runs is."""
    order_id = await world.record()
    world.now += seconds(3)
    await app.engine.scheduler.poll()
    order = await world.load(order_id)
    entry = HistoryEntry(at=world.now, actor="t", events=some("recovered"))
    await world.store.commit(transition(order, order.requeue(), entry))
    host.ahead = FAR
    world.now += seconds(6)
    [request] = world.requests()
    await app.engine.scheduler.receive(answer_to(request, result={}), "payment")
    assert (await world.load(order_id)).step("payment").state == Completed()


STOPPED = {
    "releases": (
        lambda order: order.put_on_hold(Hold("grace", "a note", NOW)),
        OrderAggregate.release,
    ),
    "resubmits": (
        lambda order: order.end(Outcome.FAILED, refusal("declined")),
        OrderAggregate.resume,
    ),
}


@pytest.mark.proves("FLT-9", "SCH-1")
@pytest.mark.parametrize("does", ["records", *STOPPED])
async def test_others_claim_what_a_process_with_a_clock_that_is_ahead_has_changed(world, does):
    """The order waits since a time to come, and its wake-up has found no room (engine 24)."""
    ahead = NOW + seconds(3 * 3600)
    order_id = await world.record(since=ahead if does == "records" else NOW)
    if does in STOPPED:
        for time, act in zip((NOW, ahead), STOPPED[does], strict=True):
            order = await world.load(order_id)
            entry = HistoryEntry(at=time, actor="t", events=some("noted"))
            await world.store.commit(transition(order, act(order), entry))
    assert (await world.load(order_id)).derived.ready_since == ahead
    world.now += seconds(3)
    await world.app(instance_id="right").engine.scheduler.poll()
    order = await world.load(order_id)
    assert order.state == Processing("right")
    assert order.derived.ready_since <= world.now + TOLERANCE


@pytest.mark.proves("FLT-9", "SUP-5")
async def test_who_has_a_clock_that_is_off_leaves_the_lease_to_others(host, app):
    """And does not say that it has swept."""
    host.ahead = FAR
    assert await app.engine.supervisor.sweep() == 0
    assert app.engine.supervisor.leadership.lease.holder is None
    assert await app.engine.sweeps.last() is None


@pytest.mark.proves("FLT-9", "ALR-1")
async def test_operators_get_one_alert_of_every_time_that_a_clock_is_off(world, host, app, caplog):
    """By an alert; and the log says it each minute, which an alert rule counts."""
    for ahead in (FAR, 0, -FAR):
        host.ahead = ahead
        for _ in range(int(TELL_AGAIN_SECONDS) // 10):
            world.now += seconds(10)
            await app.engine.supervisor.sweep()
    events = await pending_events(app.engine.store, *buckets(8))
    reasons = [event.data["reason"] for event in events]
    assert {event.subject for event in events} == {"clocks/v1"}
    assert {(reason["code"], reason["facts"]["seconds"]) for reason in reasons} == {
        (Code.CLOCK_AHEAD, 69),
        (Code.CLOCK_BEHIND, 70),
    }
    assert sorted(event.at for event in events) == [NOW + seconds(10), NOW + seconds(130)]
    lines = [line for line in caplog.records if line.name == "engine.storage.clock_guard"]
    assert [(line.levelname, line.message) for line in lines] == [
        ("ERROR", "clock.off"),
        ("WARNING", "clock.right_again"),
        ("ERROR", "clock.off"),
    ]


@pytest.mark.proves("FLT-9")
async def test_the_log_says_again_that_a_clock_is_off(host, app, caplog):
    """It comes each minute while it lasts, so that the alert rule does not take it for over."""
    caplog.set_level(logging.ERROR)
    host.ahead, now = FAR, [0.0]
    guard = replace(app.engine.clock_guard, monotonic=lambda: now[0])
    for now[0] in (0.0, 1.0, TELL_AGAIN_SECONDS, TELL_AGAIN_SECONDS + 1):
        assert not await guard.agrees()
    assert [line.message for line in caplog.records] == ["clock.off"] * 2
    assert len(await pending_events(app.engine.store, *buckets(8))) == 1


@pytest.mark.proves("FLT-9", "FLT-7")
async def test_an_alert_of_a_clock_that_could_not_be_recorded_comes_later(host, app, monkeypatch):
    """The store was away for a moment."""
    host.ahead = FAR
    with monkeypatch.context() as patched:
        patched.setattr(app.engine.store, "announce", _away)
        with pytest.raises(UnavailableError):
            await app.engine.clock_guard.agrees()
    assert not await app.engine.clock_guard.agrees()
    assert len(await pending_events(app.engine.store, *buckets(8))) == 1


async def _away(*_):
    raise UnavailableError


@pytest.mark.proves("FLT-9")
async def test_who_has_a_clock_that_is_far_ahead_removes_nothing(world, host):
    """To its clock all is older than it has to be kept."""
    world.parts = host.parts
    app, order_id = world.app(retention_days=30), f"b03-{ULID.from_datetime(NOW)!s}"
    ended = world.made(to=orders.processed, updated_at=NOW, order_id=order_id)
    entry = HistoryEntry(at=NOW, actor="t", events=some("processed"))
    await world.store.commit(Transition(before=None, after=ended, entry=entry))
    host.ahead = 31 * 86_400.0
    assert await app.operations.services.retention.sweep() == 0
    world.now += seconds(host.ahead)
    host.ahead = 0
    assert await app.operations.services.retention.sweep() == 1
