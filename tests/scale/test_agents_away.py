"""Agents that are dead, closed or partly broken: what it costs, whom, and who is told."""

from collections import Counter

import pytest

from engine.decisions.transitions import HistoryEntry
from engine.domain.attempts import NotAttemptedReason
from engine.domain.errors import QueueRefusedError
from engine.domain.statuses import ProcessState
from engine.storage.agent_health import PROBE_REQUESTS
from tests.support.builders import answer_to, orders, seconds, some, steps, transition
from tests.support.scale import both_sizes, in_soak
from tests.support.scheduling import Scheduling, Working, only

STEP = seconds(60)
PAYMENT = ("payment", "payment-backup")
BESIDE = {"payment": PAYMENT, "inventory": ("inventory",), "shipping": ("shipping",)}


async def recorded(world, count):
    return [await world.record(bucket=f"b{number % 8:02d}") for number in range(count)]


async def states(world, order_ids):
    return Counter([(await world.load(order_id)).process_state for order_id in order_ids])


async def failures(world, order_ids):
    return sum([(await world.load(order_id)).failures for order_id in order_ids])


async def for_minutes(world, app, minutes, between):
    """Poll and sweep every ten seconds, and let the test do what happens in between."""
    for _ in range(int(minutes * 6)):
        world.now += seconds(10)
        await app.engine.scheduler.poll()
        await between()
        await app.engine.supervisor.sweep()


@pytest.mark.proves("WRK-1", "AGT-10")
@pytest.mark.parametrize("count", [20, *in_soak(60)])
async def test_an_order_of_a_dead_agent_goes_to_the_idle_backup(count):
    """Nobody takes the first agent's queue: few orders try it twice, and all are processed."""
    world = Scheduling(offers=BESIDE)
    app, backup, requests = (
        world.app(),
        Working("payment-backup", in_flight=50, takes=seconds(0.25)),
        Counter(),
    )
    orders = await recorded(world, count)
    for _ in range(60):
        world.now += seconds(1)
        requests.update(request.order_id for request in world.requests("payment"))
        for request in await backup.go_on(world):
            await app.engine.scheduler.receive(answer_to(request, result={}), "payment-backup")
        await app.engine.scheduler.poll()
        await app.engine.supervisor.sweep()
    assert await states(world, orders) == {ProcessState.PROCESSED: count}
    assert requests.total() - len(requests) <= PROBE_REQUESTS
    assert len(requests) <= count / 2


@pytest.mark.proves("AGT-3", "WRK-1")
async def test_what_may_have_been_done_stays_with_services_that_share_its_key():
    """A dead agent's order may have been called for; another provider would do it a second time."""
    world = Scheduling(offers=BESIDE)
    app = world.app()
    app.engine.scheduler_rules.providers["payment-backup"] = "another"
    (order_id,) = await recorded(world, 1)
    await for_minutes(world, app, 3, lambda: _nothing(world))
    assert {step.agent for step in (await world.load(order_id)).steps} == {"payment"}
    assert world.requests("payment-backup") == []


async def _nothing(world):
    del world


@pytest.mark.proves("SUP-3", "SUP-7", "AGT-10")
@pytest.mark.parametrize(
    ("count", "minutes"), [(20, 4), pytest.param(200, 25, marks=pytest.mark.soak)]
)
async def test_no_attempt_is_charged_that_no_agent_began(count, minutes):
    """Nobody takes the only agent's queue: nothing fails, few try, and it is told once."""
    world = Scheduling(only("payment", STEP), most=2000)
    # The bound of the wait is what `tests/app/test_silent_agents.py` is about.
    app, requests = world.app(pending_alert_seconds=120, max_silence_seconds=3600), []

    async def dies():
        requests.append(len(world.requests()))
        world.parts.bus.sent.clear()
        await app.operations.stall_detector.check()
        await app.operations.relay.relay()

    orders = await recorded(world, count)
    await for_minutes(world, app, minutes, dies)
    assert await failures(world, orders) == 0
    assert (await states(world, orders))[ProcessState.ERROR] == 0
    assert max(requests[18:]) <= PROBE_REQUESTS
    events = [event for event in world.parts.events.published if event.subject == "agents/payment"]
    assert len(events) == 1
    assert world.parts.events.published == events
    answers = Working("payment", in_flight=100, takes=seconds(0.25))

    async def works():
        for request in await answers.go_on(world):
            await app.engine.scheduler.receive(answer_to(request, result={}), "payment")

    for _ in range(40):
        world.now += seconds(5)
        await app.engine.supervisor.sweep()
        await app.engine.scheduler.poll()
        for _ in range(4):
            world.now += seconds(0.25)
            await works()
    assert await states(world, orders) == {ProcessState.PROCESSED: count}


@pytest.mark.proves("FLT-8")
async def test_a_queue_that_refuses_charges_nobody():
    """It was switched off for maintenance, or is full: nobody was asked, ever."""
    world = Scheduling(only("payment", STEP))
    app, orders = world.app(), await recorded(world, 30)

    async def refuses(messages):
        if any(message.queue == "payment-requests" for message in messages):
            raise QueueRefusedError

    world.parts.bus.send = refuses
    await for_minutes(world, app, 4, lambda: _nothing(world))
    assert await failures(world, orders) == 0


@pytest.mark.proves("SUP-7", "AGT-8")
@both_sizes(hours=(1, 4))
async def test_an_order_that_waits_on_an_open_circuit_for_hours_has_one_early_alert(hours):
    """Its age is that of its wait; its history grows with the circuit's tries, not with looks."""
    world = Scheduling()
    app, tries = world.app(pending_alert_seconds=900), []
    (order_id,) = await recorded(world, 1)
    ready_since = (await world.load(order_id)).derived.ready_since

    async def turned_away():
        for request in world.requests("payment"):
            tries.append(request)
            refused = answer_to(
                request,
                "notAttempted",
                detail="open",
                retry_after=60.0,
                reason=NotAttemptedReason.CIRCUIT_OPEN,
                instance="a",
            )
            await app.engine.scheduler.receive(refused, "payment")
        await app.operations.stall_detector.check()
        await app.operations.relay.relay()

    await for_minutes(world, app, hours * 60, turned_away)
    assert (await world.load(order_id)).derived.ready_since == ready_since
    (event,) = world.parts.events.published
    assert event.data["since"] == ready_since.isoformat()
    assert len(tries) <= hours * 60
    assert len(await world.store.history(order_id)) == 1 + 2 * len(tries)


@pytest.mark.proves("WRK-1", "AGT-8")
async def test_a_broken_instance_beside_a_healthy_one_costs_at_most_twice_the_time():
    """It answers at once that its circuit is open, so it gets every other message."""
    assert await _time_of(100, is_broken=True) <= 2 * await _time_of(100, is_broken=False)


async def _time_of(count, *, is_broken):
    world = Scheduling(only("payment", STEP))
    app, agent = world.app(), Working("payment", in_flight=10, takes=seconds(0.25))
    orders, began, taken = await recorded(world, count), world.now, 0
    while (await states(world, orders))[ProcessState.PROCESSED] < count:
        world.now += seconds(0.25)
        for request in world.requests("payment"):
            taken += 1
            if is_broken and taken % 2:
                await world.tell("payment", "broken", open_until=world.now + seconds(30))
                no = answer_to(
                    request,
                    "notAttempted",
                    detail="open",
                    retry_after=30.0,
                    reason=NotAttemptedReason.CIRCUIT_OPEN,
                    instance="broken",
                )
                await app.engine.scheduler.receive(no, "payment")
            else:
                agent.queue.append(request)
        for request in await agent.go_on(world):
            await app.engine.scheduler.receive(answer_to(request, result={}), "payment")
        await app.engine.scheduler.poll()
    return world.now - began


@pytest.mark.proves("WRK-1", "SCH-11")
async def test_orders_that_may_go_to_none_of_the_agents_with_capacity_are_in_nobody_s_way():
    """They wait for the provider that may have done them; others go to another one meanwhile."""
    world = Scheduling(offers=BESIDE)
    app, backup = world.app(), Working("payment-backup", in_flight=50, takes=seconds(0.25))
    its_own = app.engine.scheduler_rules.providers["payment"]
    app.engine.scheduler_rules.providers["payment-backup"] = "another"
    tied = await recorded(world, 60)
    for order_id in tied:
        order = await world.load(order_id)
        tried = steps.in_doubt(order.step("payment"), provider=its_own)
        entry = HistoryEntry(at=world.now, actor="t", events=some("requeued"))
        await world.store.commit(transition(order, orders.with_steps(order, tried), entry))
    world.parts.bus.sent.clear()
    await world.tell("payment", open_until=world.now + seconds(3600))
    world.now += seconds(10)
    fresh = await recorded(world, 20)
    for _ in range(60):
        world.now += seconds(1)
        await app.engine.scheduler.poll()
        for request in await backup.go_on(world):
            await app.engine.scheduler.receive(answer_to(request, result={}), "payment-backup")
    assert await states(world, fresh) == {ProcessState.PROCESSED: 20}
    assert await states(world, tied) == {ProcessState.PENDING: 60}
