"""What the page is told that draws the system: where each open order stands, and what it costs to look."""

from collections import Counter
from unittest.mock import patch

import pytest

from engine.azure.clock import order_ids
from engine.decisions import lists
from engine.decisions.transitions import HistoryEntry, Transition
from engine.domain.errors import UnavailableError
from engine.domain.work_index import IndexRow, WorkItemKind
from engine.storage.agent_health import AgentHealth
from engine.storage.sweeps import Sweep
from operations.api.live import MOST_SHOWN, Stands, newest
from operations.api.outbox import WorkIndexReading
from testkit.memory import MemoryTable, in_memory
from tests.support.apps import ALONE, app
from tests.support.builders import (
    NOW,
    ORDER_ID,
    orders,
    scheduler,
    seconds,
    some,
    steps,
    supervisor,
    timed_out,
    transition,
    under_way,
)

new_order_id = order_ids(8)


@pytest.fixture
def made():
    """The app on parts in memory."""
    return app(in_memory(clock=lambda: NOW), offers=ALONE)


async def recorded(made, order=None):
    """One more order like this one, or a new one."""
    order = orders.having(order or orders.new(), order_id=new_order_id())
    entry = HistoryEntry(at=NOW, actor="submission/i", events=some("submitted"))
    return await made.engine.store.commit(Transition(before=None, after=order, entry=entry))


async def look(made):
    """What another process says, which has not looked yet."""
    return await app(made.engine.adapters, offers=ALONE).operations.services.live.look()


async def stands(made, order):
    """Where the order stands."""
    [where] = [
        shown.stands for shown in (await look(made)).orders if shown.order_id == order.order_id
    ]
    return where


@pytest.mark.proves("OPR-1")
async def test_an_order_stands_at_whoever_acts_next(made):
    """A scheduler, the agent that was asked, nobody before a time, a person, the operator who holds it."""
    order = await recorded(made)
    assert await stands(made, order) is Stands.SCHEDULER
    order = await made.engine.store.commit(scheduler.claim(order, NOW))
    assert await stands(made, order) is Stands.AGENT
    order = await made.engine.store.commit(supervisor.recover(order, timed_out(order)))
    assert await stands(made, order) is Stands.SCHEDULER
    for at, where in ((NOW + seconds(9), Stands.LATER), (NOW - seconds(9), Stands.SCHEDULER)):
        scheduled = orders.pending(steps=[steps.scheduled(at=at)], updated_at=NOW - seconds(60))
        assert await stands(made, await recorded(made, scheduled)) is where
    assert await stands(made, await recorded(made, orders.in_error())) is Stands.OPERATOR
    assert await stands(made, await recorded(made, orders.on_hold())) is Stands.PARKED
    groups = {group.stands: group.count for group in (await look(made)).groups}
    assert groups == {"scheduler": 2, "later": 1, "operator": 1, "parked": 1}


@pytest.mark.parametrize("older", [WorkItemKind.PENDING, WorkItemKind.RUNNING])
def test_of_an_order_with_two_rows_the_newer_one_counts(older):
    """A change leaves a row as it was if its key stays the same."""
    rows = {kind: [] for kind in WorkItemKind}
    for kind in (WorkItemKind.PENDING, WorkItemKind.RUNNING):
        at = NOW - seconds(1) if kind is older else NOW
        data = lists.summary(orders.new(updated_at=at)) | {"Step": str(kind)}
        rows[kind].append(IndexRow(key=f"{kind}|x", order_id=ORDER_ID, data=data))
    [order] = newest(WorkIndexReading(at=NOW, rows=rows, whole=frozenset(), buckets=1))
    assert order.step != older


@pytest.mark.proves("FLT-12")
@pytest.mark.parametrize(
    ("columns", "where"), [({}, Stands.SCHEDULER), ({"Agents": "payment"}, Stands.AGENT)]
)
async def test_an_order_in_a_status_that_only_a_newer_host_knows_stands_by_its_columns(
    made, columns, where
):
    """While an upgrade goes on, the page shows it with the others."""
    order = orders.new()
    data = lists.summary(order) | {"Situation": "asleep"} | columns
    with patch.object(lists, "summary", return_value=data):
        await made.engine.store.commit(Transition(before=None, after=order, entry=an_end()))
    (seen,) = (await look(made)).orders
    assert (seen.situation, seen.stands) == ("asleep", where)


@pytest.mark.proves("FLT-12")
@pytest.mark.parametrize("name", ["b03-1", "b03-1:payment:first:do", "b03-1:payment:1:do:again"])
async def test_an_id_of_another_form_is_passed_over(made, name):
    """The page shows what the row says besides."""
    await made.engine.agent_health.publish(report_of("host-1-7-a", begun=(name,)))
    assert [instance.name for instance in (await look(made)).instances] == ["host-1-7-a"]


async def test_a_request_is_in_the_hands_of_the_instance_that_began_the_last_attempt(made):
    """One that no instance has begun is on its queue."""
    order = await made.engine.store.commit(scheduler.claim(await recorded(made), NOW))
    [shown] = (await look(made)).orders
    assert [(request.agent, request.instance) for request in shown.requests] == [("payment", None)]
    [first] = under_way(order)
    await made.engine.agent_health.publish(report_of("host-1-7-a", begun=(first,), at=NOW))
    second = first.replace(":1:", ":2:")
    await made.engine.agent_health.publish(
        report_of("host-2-7-b", begun=(second,), at=NOW - seconds(1))
    )
    seen = await look(made)
    assert seen.orders[0].requests[0].instance == "host-2-7-b"
    assert [(instance.name, instance.agents) for instance in seen.instances] == [
        ("host-1-7-a", ["payment"]),
        ("host-2-7-b", ["payment"]),
    ]


def report_of(instance, **more):
    return AgentHealth(agent="payment", instance=instance, **({"at": NOW} | more))


async def breaker_of_payment(made):
    return next(breaker for breaker in (await look(made)).breakers if breaker.agent == "payment")


async def test_a_breaker_is_open_if_no_instance_calls_and_tries_once_its_time_is_over(made):
    """One that has worked since is closed."""
    assert (await breaker_of_payment(made)).open_until is None
    await made.engine.agent_health.publish(open_ := report_of("i1", open_until=NOW + seconds(5)))
    is_open = await breaker_of_payment(made)
    assert (is_open.open_until, is_open.tries_since) == (NOW + seconds(5), None)
    await made.engine.agent_health.publish(
        over := report_of("i1", open_until=NOW - seconds(1)), open_
    )
    tries = await breaker_of_payment(made)
    assert (tries.open_until, tries.tries_since) == (None, NOW - seconds(1))
    await made.engine.agent_health.publish(report_of("i1"), over)
    assert (await breaker_of_payment(made)).tries_since is None


async def test_of_too_many_orders_only_numbers_are_shown(made):
    """As many as a page can draw are told one by one."""
    for _ in range(MOST_SHOWN):
        await recorded(made)
    assert len((await look(made)).orders) == MOST_SHOWN
    await recorded(made)
    seen = await look(made)
    assert seen.orders is None
    assert [group.count for group in seen.groups] == [MOST_SHOWN + 1]


async def test_a_queue_that_is_away_leaves_the_rest_to_be_seen(made):
    """Its length is not known then."""
    await made.engine.sweeps.record(Sweep(at=NOW, instance="host-1-7-a", recovered=3))
    queue = made.operations.storage_queues["order-submissions"]
    with patch.object(queue, "waiting", side_effect=UnavailableError("away")):
        seen = await look(made)
    assert (seen.submissions, seen.last_sweep.recovered) == (None, 3)


async def operations(view, made):
    """How many operations on tables a look takes in a process that has not looked yet."""
    counted = Counter()

    def counting(name, real):
        async def counted_call(self, *arguments, **more):
            counted[name] += 1
            return await real(self, *arguments, **more)

        return counted_call

    names = ("rows", "get", "submit", "submit_separately")
    spies = {name: counting(name, getattr(MemoryTable, name)) for name in names}
    with patch.multiple(MemoryTable, **spies):
        await getattr(app(made.engine.adapters, offers=ALONE).operations.services, view).look()
    return counted


async def test_a_look_reads_the_work_index_once_and_costs_no_more_than_the_overview(made):
    """One query for each bucket, the health of the agents, and the last sweep; nothing is written."""
    for _ in range(10):
        order = await recorded(made)
        failed = orders.in_error(order)
        await made.engine.store.commit(transition(order, failed, entry=an_end()))
    cost = await operations("live", made)
    assert cost == {"rows": len(made.engine.store.buckets) + 1, "get": 1}
    assert cost.total() <= (await operations("overview", made)).total()


def an_end():
    return HistoryEntry(at=NOW, actor="scheduler/i", events=some("failed"))
