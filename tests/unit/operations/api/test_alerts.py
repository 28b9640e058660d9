"""Alerts are closed by themselves once what they tell of is over."""

from dataclasses import replace
from unittest.mock import patch

import pytest

from engine.alerts import events as alerts
from engine.alerts.conditions import Condition, ConditionStatus
from engine.decisions.lists import LISTS
from engine.decisions.operator_actions import BY_NAME
from engine.decisions.transitions import OperatorEvent
from engine.domain import statuses as life
from engine.domain.errors import UnavailableError
from engine.domain.keys import sortable
from engine.domain.messages import OrderReady
from engine.domain.work_index import IndexRow, WorkItemKind
from engine.storage.orders import OrderStore
from operations.api.alerts import is_over
from operations.api.outbox import WorkIndexReading
from operations.api.requests import AlertsPage, OperatorRequest
from tests.support.builders import NOW, ORDER_ID, answer, refusal, seconds
from tests.support.memory_world import World
from tests.support.outbox import pending_events

GRACE = OperatorRequest(operator="grace", note="the bank is back")
SUBJECT = f"orders/{ORDER_ID}"
OTHERS = ("b03-another",)


def event(type_, subject=SUBJECT):
    return OperatorEvent(event_id="e", type=type_, subject=subject, at=NOW, data={})


def pending_of(*ids, since=NOW, bucket="b03", more=False, kinds=tuple(WorkItemKind)):
    rows = [
        IndexRow(key=pending_since(since, order_id), order_id=order_id)
        for order_id in (*OTHERS, *ids)
    ]
    whole = set() if more else {(bucket, kind) for kind in WorkItemKind}
    return WorkIndexReading(
        at=NOW,
        rows=dict.fromkeys(WorkItemKind, ()) | dict.fromkeys(kinds, rows),
        whole=whole,
        buckets=1,
    )


def pending_since(time, order_id):
    return f"!pending|1|payment|{sortable(time)}|{order_id}"


def of_condition(**changes):
    """The event of a condition that lasts."""
    return alerts.stalled(replace(LASTS, **changes))


LASTS = Condition(
    key="agents/payment",
    reason=refusal("why"),
    since=NOW,
    first=NOW,
    last=NOW,
    count=1,
    raised_at=NOW,
)
FAILED = event(life.ORDER_FAILED)
SOON, LATE = event(alerts.ORDER_DUE_SOON), event(alerts.ORDER_LATE)
IN_LISTS = tuple(LISTS.values())
ALERTS = {
    "the order is mended": (FAILED, pending_of(), True),
    "the order still waits for an operator": (FAILED, pending_of(ORDER_ID), False),
    "there are more orders than were read": (FAILED, pending_of(more=True), False),
    "the order is in a bucket that this host does not know": (
        FAILED,
        pending_of(bucket="b00"),
        False,
    ),
    "its subject is no order": (event(life.ORDER_FAILED, "b03"), pending_of(), False),
    "the order was undone": (event(life.ORDER_UNDONE), pending_of(), True),
    "what is owed could not be read": (FAILED, None, False),
    "no deadline is ahead": (SOON, pending_of(kinds=IN_LISTS), True),
    "the deadline is ahead": (SOON, pending_of(ORDER_ID, kinds=[WorkItemKind.DEADLINE]), False),
    "the late order is over": (LATE, pending_of(), True),
    "the late order goes on": (LATE, pending_of(ORDER_ID, kinds=[WorkItemKind.WAITING]), False),
    "a condition lasts": (of_condition(), None, False),
    "a condition has changed": (of_condition(status=ConditionStatus.CHANGED), None, False),
    "a condition has ended": (of_condition(status=ConditionStatus.RESOLVED), None, True),
    "a clock is off": (event(alerts.STALLED, "clocks/i1"), pending_of(), False),
    "a message is kept as poison": (event(alerts.SUBMISSION_REJECTED), pending_of(), False),
    "a notice was given up": (event(alerts.NOTICE_GIVEN_UP), pending_of(), False),
    "a workflow was changed": (
        event(alerts.WORKFLOW_CHANGED, "workflows/order"),
        pending_of(),
        False,
    ),
}


@pytest.mark.proves("ALR-1", "SUP-7")
@pytest.mark.parametrize("what", ALERTS)
def test_an_alert_is_closed_when_it_is_certain_that_nobody_is_needed(what):
    """And not before."""
    alert, pending, over = ALERTS[what]
    assert is_over(alert, pending) is over


@pytest.fixture
def world():
    return World()


async def fails(world, attempt):
    """The payment is declined, and the operators are told."""
    await world.scheduler.on_order_ready(OrderReady(order_id=ORDER_ID))
    due = (await world.order()).derived.complete_by
    declined = answer(outcome="failed", attempt=attempt, complete_by=due, detail="card declined")
    await world.scheduler.receive(declined, "payment")
    for event in await pending_events(world.store, "b03"):
        await world.alert_log.record(event)


async def open_alerts(world):
    """Of each alert, newest first, whether it is open; and what causes say of them."""
    desk = world.app.operations.services.alerts
    listed = (await desk.list(AlertsPage())).alerts
    (cause,) = (await desk.causes()).causes
    assert (cause.count, cause.open, len(cause.unacknowledged)) == (
        len(listed),
        *[sum(not alert.closed for alert in listed)] * 2,
    )
    return [not alert.closed for alert in listed]


@pytest.mark.proves("ALR-1")
async def test_an_alert_of_an_order_is_open_while_the_order_waits_for_an_operator(world):
    """Nobody has to acknowledge it; if the order fails again, there is another alert."""
    await world.submitted()
    await fails(world, attempt=1)
    assert await open_alerts(world) == [True]
    await world.app.operations.orders.act(BY_NAME["resubmit"], ORDER_ID, GRACE)
    assert await open_alerts(world) == [False]
    world.now += seconds(60)
    await fails(world, attempt=2)
    assert await open_alerts(world) == [True, True]


@pytest.mark.proves("ALR-1")
async def test_what_was_read_before_the_alert_came_closes_none(world):
    """The overview was read just before the order failed: it says nothing of that alert."""
    await world.submitted()
    await world.app.operations.services.overview.look()
    await fails(world, attempt=1)
    world.now += seconds(1)
    assert await open_alerts(world) == [True]


@pytest.mark.proves("ALR-1")
async def test_a_clock_that_was_put_back_hides_nothing(world):
    """What was read before is not taken for what is read later."""
    await world.submitted()
    world.now += seconds(300)
    await world.app.operations.services.overview.look()
    world.now -= seconds(300)
    await fails(world, attempt=1)
    assert await open_alerts(world) == [True]
    assert (await world.app.operations.services.overview.look()).open_orders["Error"].count == 1


def away(bucket):
    """Let a bucket be away, as seen by whoever reads a work index."""

    async def work_items(store, partition, *about):
        if partition == bucket:
            raise UnavailableError("away")
        return await read(store, partition, *about)

    read = OrderStore.work_items
    return patch.object(OrderStore, "work_items", work_items)


@pytest.mark.proves("ALR-1")
async def test_a_bucket_that_is_away_leaves_its_own_alerts_open(world):
    """Alerts of other buckets are listed and closed; the overview says it did not count all."""
    await world.submitted()
    await fails(world, attempt=1)
    await world.app.operations.orders.act(BY_NAME["resubmit"], ORDER_ID, GRACE)
    with away("b03"):
        assert await open_alerts(world) == [True]
        overview = await world.app.operations.services.overview.look()
    assert overview.open_orders["Pending"].at_least
    with away("b00"):
        assert await open_alerts(world) == [False]


async def test_the_overview_shares_what_was_read_for_the_alerts(world):
    """Which are asked for right before it: an open console costs no more for it."""
    await world.submitted()
    await fails(world, attempt=1)
    await world.app.operations.services.alerts.causes()
    world.now += seconds(1)
    with patch.object(OrderStore, "work_items", side_effect=AssertionError("read again")):
        overview = await world.app.operations.services.overview.look()
    assert overview.open_orders["Error"].count == 1
