"""Holding an agent until a time, and releasing it."""

from datetime import timedelta, timezone

import pytest
from pydantic import ValidationError

from engine.domain.causes import Code
from engine.domain.errors import InvalidError, RefusedError, UnknownAgentError
from engine.domain.keys import buckets
from engine.domain.orders import Processed
from engine.http.responses import problem_of
from engine.storage.agent_health import (
    KEPT,
    OPERATOR,
    PROBE_REQUESTS,
    AgentHealth,
    has_reported,
)
from engine.storage.sweeps import Sweep
from operations.api.agents import LONGEST_PAUSE
from operations.api.requests import OperatorRequest, PauseRequest
from scheduler.admission.health import HEALTH_MAX_AGE
from tests.support.acting import is_refused
from tests.support.apps import ALONE
from tests.support.builders import answer_to, seconds
from tests.support.outbox import pending_events
from tests.support.scheduling import Scheduling

GRACE = {"operator": "grace", "note": "bank maintenance"}
RELEASE = OperatorRequest(**GRACE)
HOUR = timedelta(hours=1)
INDIA = timezone(timedelta(hours=5.5))
OFFERS = ALONE | {"payment": ("payment", "payment-backup")}


class Held(Scheduling):
    """Schedulers, and the desk at which an operator holds agents."""

    def __init__(self, **more):
        super().__init__(**more)
        self.there = self.app()
        self.desk = self.there.operations.services.agents

    async def hold(self, agent="payment", lasts=HOUR, **who):
        """As somebody elsewhere asks: what is shown and kept is in UTC."""
        until = (self.now + lasts).astimezone(INDIA)
        return await self.desk.pause(agent, PauseRequest(**GRACE | who, until=until))

    async def release(self, agent="payment"):
        return await self.desk.resume(agent, RELEASE)

    async def recorded(self, count=1, workflow="payment"):
        return [await self.record(workflow, since=self.now) for _ in range(count)]

    async def watched(self):
        """What the stall detector tells operators of, and how long it says that an order waits."""
        await self.there.engine.sweeps.record(Sweep(at=self.now, instance="v1", recovered=0))
        longest = await self.there.operations.stall_detector.check()
        events = await pending_events(self.store, *buckets(self.buckets))
        return longest, [(event.subject, event.data["reason"]) for event in events]


@pytest.fixture
def world():
    return Held()


@pytest.mark.proves("OPR-9")
async def test_a_held_agent_is_sent_nothing_until_the_time_and_nothing_is_charged(world):
    """Not by whoever looks; then the orders go on by themselves, as they were."""
    one, other = world.instance("one"), world.instance("other")
    waiting = await world.recorded(3)
    await world.hold()
    for instance in (one, other):
        await instance.poll()
    world.now += HOUR - seconds(1)
    await one.poll()
    assert world.requests() == []
    world.now += seconds(1)
    await one.poll()
    assert {request.order_id for request in world.requests()} == set(waiting)
    orders = [await world.load(order_id) for order_id in waiting]
    assert {order.failures for order in orders} == {0}
    assert {order.version for order in orders} == {2}


@pytest.mark.proves("OPR-9")
async def test_only_the_held_agent_is_left_alone():
    """Orders that need another go on; those that another agent can serve go there."""
    world = Held(offers=OFFERS)
    one = world.instance("one")
    await world.hold()
    await world.recorded(workflow="payment")
    await world.recorded(workflow="shipping")
    await one.poll()
    assert [len(world.requests(name)) for name in ("payment", "payment-backup", "shipping")] == [
        0,
        1,
        1,
    ]


@pytest.mark.proves("OPR-9", "SCH-10")
async def test_what_is_under_way_at_an_agent_that_is_held_is_answered(world):
    """Its reply is recorded, and the order is done."""
    one = world.instance("one")
    (order_id,) = await world.recorded()
    await one.poll()
    (request,) = world.requests()
    await world.hold()
    await one.receive(answer_to(request, result={}), "payment")
    assert (await world.load(order_id)).state == Processed()


@pytest.mark.proves("OPR-9")
@pytest.mark.parametrize("idle", [seconds(2), 2 * HEALTH_MAX_AGE], ids=["at work", "idle for long"])
async def test_a_release_before_the_time_is_heeded_by_all(world, idle):
    """Also by a process that has not looked for a while, and believed in the hold."""
    one = world.instance("one")
    (order_id,) = await world.recorded()
    await world.hold(lasts=5 * HOUR)
    await one.poll()
    await world.release()
    world.now += idle
    await one.poll()
    assert [request.order_id for request in world.requests()] == [order_id]


@pytest.mark.proves("OPR-9", "WRK-2")
async def test_after_a_hold_an_agent_gets_a_few_requests_first(world):
    """Its service has just come back."""
    one = world.instance("one")
    await world.recorded(PROBE_REQUESTS + 5)
    await world.hold()
    await one.poll()
    world.now += HOUR
    await one.poll()
    assert len(world.requests()) == PROBE_REQUESTS


@pytest.mark.proves("OPR-9")
async def test_a_hold_is_a_row_that_vanishes_by_itself(world):
    """It says who holds the agent and why, and is no report of an instance."""
    held = await world.hold()
    (row,) = await world.agent_health.since(world.now)
    assert (held.agent, held.by, held.because) == ("payment", "grace", "bank maintenance")
    assert (row.paused_by, row.paused_because, row.operator_pause_until) == (
        held.by,
        held.because,
        held.until,
    )
    assert not row.is_report
    assert not has_reported([row], "payment", world.now)
    assert await world.agent_health.since(world.now + HOUR + seconds(1)) == []


@pytest.mark.proves("OPR-9")
async def test_a_release_ends_every_hold_of_the_agent(world):
    """Two operators may have held it in the same moment; and nobody else's row is touched."""
    for lasts in (1, 2):
        twice = AgentHealth(
            agent="payment",
            instance=OPERATOR,
            at=world.now,
            paused_until=world.now + lasts * HOUR,
            paused_by="grace",
        )
        await world.agent_health.publish(twice)
    await world.tell("payment", paused_until=world.now + HOUR)
    await world.hold("shipping")
    await world.release()
    rows = await world.agent_health.since(world.now + seconds(60))
    assert [(row.agent, row.paused_by) for row in rows] == [
        ("payment", None),
        ("shipping", "grace"),
    ]


@pytest.mark.proves("OPR-9")
async def test_a_longer_hold_takes_the_place_of_a_shorter_one_without_a_gap(world):
    """A shorter one is refused, and says who holds the agent: nobody ends another's hold unawares."""
    await world.hold()
    await world.hold(lasts=2 * HOUR, operator="ada")
    with is_refused(Code.AGENT_PAUSED_ALREADY, by="ada"):
        await world.hold(lasts=HOUR)
    (row,) = await world.agent_health.since(world.now)
    assert (row.paused_by, row.operator_pause_until) == ("ada", world.now + 2 * HOUR)


@pytest.mark.parametrize(
    ("lasts", "fault"),
    [
        (timedelta(), "not-to-come"),
        (-seconds(1), "not-to-come"),
        (LONGEST_PAUSE + seconds(1), "not-within-days"),
    ],
)
async def test_a_hold_has_an_end_that_is_to_come_and_not_too_far_away(world, lasts, fault):
    """Nothing is written otherwise."""
    with pytest.raises(InvalidError, match=fault):
        await world.hold(lasts=lasts)
    assert await world.agent_health.since(world.now) == []


def test_a_hold_without_an_end_is_refused():
    """A hold that is forgotten would stop an agent for ever."""
    with pytest.raises(ValidationError, match="until"):
        PauseRequest(**GRACE)


async def test_what_cannot_be_held_or_released_is_refused(world):
    """An agent that the app does not have is 404, one that nobody holds is refused."""
    for act in (world.hold, world.release):
        with pytest.raises(UnknownAgentError) as unknown:
            await act("fax")
        assert problem_of(unknown.value).status_code == 404
    with pytest.raises(RefusedError):
        await world.release()
    await world.hold()
    await world.release()
    with pytest.raises(RefusedError):
        await world.release()


async def test_who_held_and_released_an_agent_is_logged_without_the_note(world, caplog):
    """The note is free text."""
    caplog.set_level("INFO", "operations.api.agents")
    await world.hold()
    await world.release()
    lines = [(line.message, line.agent, line.operator) for line in caplog.records]
    assert lines == [
        ("operators.agent_paused", "payment", "grace"),
        ("operators.agent_resumed", "payment", "grace"),
    ]
    assert not any("maintenance" in str(vars(line)) for line in caplog.records)


@pytest.mark.proves("OPR-9", "OPR-2")
async def test_an_explanation_says_who_holds_the_agent_why_and_until_when(world):
    """And that the order is claimed then; after a release, nothing of it."""
    (order_id,) = await world.recorded()
    await world.hold()
    explanation = await world.there.operations.orders.explain(order_id)
    facts = ("grace", "2026-01-31 09:15:00 UTC", "bank maintenance")
    assert [fact for fact in facts if fact not in explanation.waiting_for] == []
    assert explanation.next_at == world.now + HOUR
    await world.release()
    explanation = await world.there.operations.orders.explain(order_id)
    assert "grace" not in explanation.summary
    assert explanation.next_at == world.now


@pytest.mark.proves("OPR-9", "OPR-2")
async def test_an_explanation_tells_of_the_hold_of_one_of_several_agents():
    """The order waits for room at the other."""
    world = Held(offers=OFFERS)
    (order_id,) = await world.recorded()
    await world.hold()
    world.now += seconds(60)
    explanation = await world.there.operations.orders.explain(order_id)
    assert [
        name for name in ("grace", "payment-backup") if name not in explanation.waiting_for
    ] == []


@pytest.mark.proves("OPR-9", "OPR-2", "AGT-8")
async def test_an_explanation_names_the_hold_of_one_agent_and_the_open_circuit_of_the_other():
    """Each with its own time; the order goes on at the earlier one."""
    world = Held(offers=OFFERS)
    (order_id,) = await world.recorded()
    await world.hold()
    opens = world.now + seconds(90)
    health = AgentHealth(agent="payment-backup", instance="a", at=world.now, open_until=opens)
    await world.there.engine.agent_health.publish(health)
    explanation = await world.there.operations.orders.explain(order_id)
    facts = ("grace", "2026-01-31 09:15:00 UTC", "payment-backup", "2026-01-31 08:16:30 UTC")
    assert [fact for fact in facts if fact not in explanation.waiting_for] == []
    assert explanation.next_at == opens


@pytest.mark.proves("OPR-9", "OPR-2")
async def test_a_hold_that_was_ended_is_no_word_of_the_agent(world):
    """The row is there for a moment; no instance has spoken."""
    (order_id,) = await world.recorded()
    world.now += seconds(60)
    await world.hold()
    await world.release()
    explanation = await world.there.operations.orders.explain(order_id)
    assert "grace" not in explanation.waiting_for


async def test_the_overview_lists_the_held_agents_beside_the_reports(world):
    """And the names of all agents, so that one that has had no work can be held."""
    await world.tell("shipping")
    await world.hold()
    seen = await world.there.operations.services.overview.look()
    assert [(agent.agent, agent.by) for agent in seen.paused_agents] == [("payment", "grace")]
    assert [agent.agent for agent in seen.agents] == ["shipping"]
    assert seen.agent_names == ["payment", "inventory", "shipping"]
    await world.release()
    seen = await world.there.operations.services.overview.look()
    assert seen.paused_agents == []
    assert [agent.agent for agent in seen.agents] == ["shipping"]


# The watch


@pytest.mark.proves("OPR-9", "SUP-7")
@pytest.mark.parametrize("released", [False, True], ids=["the time is over", "released"])
async def test_an_order_that_waits_for_a_held_agent_is_no_alert_before_it_could_go_on(
    world, released
):
    """A time that an operator chose is no delay: the order waits since then, and told if too long."""
    await world.recorded()
    await world.hold(lasts=3 * HOUR)
    world.now += 2 * HOUR
    assert await world.watched() == (timedelta(), [])
    if released:
        await world.release()
    else:
        world.now += HOUR
    longest = seconds(world.there.engine.settings.pending_alert_seconds)
    world.now += longest
    assert await world.watched() == (longest, [])
    world.now += seconds(1)
    waited, alerts = await world.watched()
    assert waited == longest + seconds(1) < KEPT
    assert len(alerts) == 1


@pytest.mark.proves("OPR-9", "SUP-7")
async def test_an_order_that_another_agent_could_serve_is_an_alert():
    """The hold is not what keeps it."""
    world = Held(offers=OFFERS)
    await world.recorded()
    await world.hold(lasts=3 * HOUR)
    world.now += 2 * HOUR
    waited, alerts = await world.watched()
    assert (waited, len(alerts)) == (2 * HOUR, 1)


@pytest.mark.proves("OPR-9", "SUP-7")
async def test_of_an_agent_that_is_held_and_one_that_is_silent_the_silent_one_has_an_alert():
    """The orders that wait for either are not told one by one."""
    world = Held(offers=OFFERS)
    await world.recorded(3)
    await world.hold(lasts=3 * HOUR)
    world.now += HOUR
    await world.tell("payment-backup", "supervisor", unresponsive_since=world.now - HOUR)
    _, alerts = await world.watched()
    assert [about for about, _ in alerts] == ["agents/payment-backup"]


@pytest.mark.proves("OPR-9", "SUP-7")
async def test_a_hold_of_more_than_a_day_has_one_alert(world):
    """It may have been forgotten."""
    await world.hold(lasts=timedelta(days=20))
    world.now += timedelta(days=1)
    assert await world.watched() == (timedelta(), [])
    for _ in range(2):
        world.now += seconds(1)
        _, alerts = await world.watched()
        assert [about for about, _ in alerts] == ["agents/payment"]
