"""What operators see of orders in memory."""

import json
import logging
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from unittest.mock import patch

import pytest
from pydantic import ValidationError

from engine.azure.clock import order_ids, order_time
from engine.decisions.operator_actions import BY_NAME
from engine.decisions.transitions import HistoryEntry, OperatorEvent, Transition
from engine.domain.causes import Code
from engine.domain.errors import InvalidError, UnavailableError, UnknownOrderError
from engine.domain.keys import business_key
from engine.domain.states import Running, Skipped, SkipReason
from engine.domain.statuses import Outcome, ProcessState
from engine.http.public_api.rules import RECORDED_WITHIN
from engine.storage.agent_health import AgentHealth, AttemptFault
from engine.storage.tables import Put
from operations.api.alerts import AcknowledgeRequest
from operations.api.bulk import matches
from operations.api.requests import (
    AlertsPage,
    BulkRequest,
    CausesPage,
    FindRequest,
    OperatorRequest,
    OrdersPage,
    Page,
    PoisonPage,
    Search,
    Where,
)
from operations.api.retention import erase
from operations.cli.formatting import order_text
from testkit.memory import in_memory
from tests.support.acting import is_refused
from tests.support.apps import ALONE, app
from tests.support.builders import (
    LONGEST_UPGRADE,
    NOW,
    ORDER_ID,
    PAYLOAD,
    TOLERANCE,
    orders,
    scheduler,
    seconds,
    some,
    steps,
    supervisor,
    timed_out,
)

RESUBMIT = BY_NAME["resubmit"]


def app_at(clock=lambda: NOW):
    """The app on parts in memory, with two agents for payments."""
    return app(in_memory(clock=clock), offers=ALONE | {"payment": ("payment", "payment-backup")})


async def listed(service):
    """In which lists the order stands, and as what."""
    pages = {
        state: await service.list(OrdersPage(state=state))
        for state in (ProcessState.PENDING, ProcessState.PROCESSING)
    }
    return {
        str(state): [str(order.process_state) for order in page.orders]
        for state, page in pages.items()
    }


def slow_to_pay(**details):
    """An order of which a payment may take a minute, beside its stock."""
    order = orders.new(workflow="order", **details)
    payment = steps.with_rules(order.step("payment"), timeout=seconds(60))
    return orders.with_steps(order, payment)


@pytest.mark.proves("OPR-1")
async def test_an_order_is_listed_by_the_state_that_it_is_in_now():
    """It was given back and claimed while another step ran on: the row of that step is older."""
    made = app_at()
    service = made.operations.orders
    order = slow_to_pay()
    entry = HistoryEntry(at=NOW, actor="submission/i", events=some("submitted"))
    order = await made.engine.store.commit(Transition(before=None, after=order, entry=entry))
    assert await listed(service) == {"Pending": ["Pending"], "Processing": []}
    order = await made.engine.store.commit(scheduler.claim(order, NOW))
    assert await listed(service) == {"Pending": [], "Processing": ["Processing"]}
    order = await made.engine.store.commit(supervisor.recover(order, timed_out(order)))
    assert await listed(service) == {"Pending": ["Pending"], "Processing": []}
    order = await made.engine.store.commit(scheduler.claim(order, NOW + seconds(58)))
    assert await listed(service) == {"Pending": [], "Processing": ["Processing"]}


@pytest.mark.proves("OPR-1")
async def test_an_open_order_is_listed_with_its_step_its_try_the_last_answer_and_its_age():
    """As its row in the work index says it, without loading the order."""
    made, order = app_at(), orders.new()
    entry = HistoryEntry(at=NOW, actor="submission/i", events=some("submitted"))
    order = await made.engine.store.commit(Transition(before=None, after=order, entry=entry))
    order = await made.engine.store.commit(scheduler.claim(order, NOW))
    [first] = (await made.operations.orders.list(OrdersPage(state="Processing"))).orders
    assert (first.attempt, first.last_answer) == (1, None)
    order = await made.engine.store.commit(supervisor.recover(order, timed_out(order)))
    order = await made.engine.store.commit(scheduler.claim(order, timed_out(order)))
    [shown] = (await made.operations.orders.list(OrdersPage(state="Processing"))).orders
    [step] = order.in_state(Running)
    assert (shown.step, shown.attempt, shown.threshold) == (step.name, 2, step.rules.threshold)
    assert (shown.last_answer, shown.complete_by) == ("timed out", step.complete_by)
    assert shown.placed_at == order_time(order.order_id)


def overview_on(made):
    """The overview of another process, which has not looked yet."""
    return app(made.engine.adapters).operations.services.overview


@pytest.mark.proves("OPR-1")
async def test_the_overview_counts_every_order_once_and_what_is_not_sent():
    """A pending order of which another step runs on is pending, and not processing besides."""
    made = app_at()
    order = slow_to_pay(reply_to="status-a")
    entry = HistoryEntry(at=NOW, actor="submission/i", events=some("submitted"))
    order = await made.engine.store.commit(Transition(before=None, after=order, entry=entry))
    order = await made.engine.store.commit(scheduler.claim(order, NOW))
    claimed = await overview_on(made).look()
    assert {str(state): count.count for state, count in claimed.open_orders.items()} == counts(
        processing=1
    )
    await made.engine.store.commit(supervisor.recover(order, timed_out(order)))
    given_back = await overview_on(made).look()
    assert {str(state): count.count for state, count in given_back.open_orders.items()} == counts(
        pending=1
    )
    assert given_back.unsent_notices.count > 0
    assert given_back.unconfirmed_events.count == 0


async def test_the_overview_says_how_many_messages_wait_though_a_queue_is_away():
    """And everything else that it says."""
    made = app_at()
    await made.operations.storage_queues["order-submissions"].put("an order")
    with patch.object(
        made.operations.storage_queues["operator-alerts"],
        "waiting",
        side_effect=UnavailableError("away"),
    ):
        seen = await overview_on(made).look()
    assert seen.waiting == {"order-submissions": 1, "operator-alerts": None}


async def test_the_overview_names_the_fields_of_agents_like_everything_else():
    """In camelCase, though it is shown as it is kept."""
    made = app_at()
    await made.engine.agent_health.publish(report_of("payment", open_for=30))
    (agent,) = (await overview_on(made).look()).model_dump(by_alias=True)["agents"]
    assert agent["openUntil"] == NOW + seconds(30)


async def test_a_health_report_keeps_its_names_in_the_overview():
    """Those of version 1, whatever the fields are called."""
    made = app_at()
    fault = AttemptFault(text="404", by_gateway=True, requests=("r",), timed_out_at=(NOW,))
    times = {"paused_until": NOW + seconds(30), "unresponsive_since": NOW}
    report = AgentHealth(agent="payment", instance="1", at=NOW, faults=(fault,), **times)
    await made.engine.agent_health.publish(report)
    overview = (await overview_on(made).look()).model_dump_json(by_alias=True)
    (agent,) = json.loads(overview)["agents"]
    times = [
        agent["pausedUntil"],
        agent["unresponsiveSince"],
        *agent["faults"][0].pop("timedOutAt"),
    ]
    assert [*map(datetime.fromisoformat, times)] == [NOW + seconds(30), NOW, NOW]
    assert agent["faults"] == [{"text": "404", "byGateway": True, "requests": ["r"]}]


def counts(pending=0, processing=0):
    none = {"Waiting": 0, "Error": 0, "Held": 0}
    return {"Pending": pending, "Processing": processing, **none}


def report_of(agent, open_for=None):
    """What an agent said of itself just now."""
    until = NOW + seconds(open_for) if open_for else None
    return AgentHealth(agent=agent, instance="1", at=NOW, open_until=until)


@pytest.mark.proves("OPR-2", "AGT-8")
async def test_an_explanation_says_that_circuits_are_open_and_until_when():
    """Nobody claims the order before; then it goes to the agent that is closed for less long."""
    made = app_at()
    service = made.operations.orders
    order = orders.new()
    entry = HistoryEntry(at=NOW, actor="submission/i", events=some("submitted"))
    await made.engine.store.commit(Transition(before=None, after=order, entry=entry))
    await made.engine.agent_health.publish(report_of("payment", open_for=30))
    one_open = await service.explain(order.order_id)
    assert one_open.next_at == NOW
    assert "payment-backup" in one_open.summary
    await made.engine.agent_health.publish(report_of("payment-backup", open_for=20))
    both_open = await service.explain(order.order_id)
    assert both_open.next_at == NOW + seconds(20)
    times = ("2026-01-31 08:15:30 UTC", "2026-01-31 08:15:20 UTC")
    assert [time for time in times if time not in both_open.waiting_for] == []
    assert times[1] in both_open.if_nothing_happens


@pytest.mark.proves("OPR-2", "FLT-12")
async def test_an_explanation_says_that_only_a_newer_version_of_the_app_can_go_on():
    """Nobody else claims the order, until it is given up."""
    made = app_at()
    order = orders.new(workflow_version=9)
    entry = HistoryEntry(at=NOW, actor="submission/i", events=some("submitted"))
    await made.engine.store.commit(Transition(before=None, after=order, entry=entry))
    explanation = await made.operations.orders.explain(order.order_id)
    assert "payment-only version 9" in explanation.waiting_for
    assert explanation.next_at == NOW + LONGEST_UPGRADE + timedelta(microseconds=1)


# Many orders


GRACE = {"operator": "grace", "note": "the provider is back"}
resubmit_all = partial(BulkRequest, action="resubmit", **GRACE)


async def record(made, number, order, bucket="b03"):
    """Let the store hold this order under an id of its own; return it."""
    order = orders.having(order, order_id=f"{bucket}-{number:026d}")
    entry = HistoryEntry(at=NOW, actor="t", events=some("failed"))
    return await made.engine.store.commit(Transition(before=None, after=order, entry=entry))


async def failed(
    made,
    number,
    *,
    ago=60,
    reason="card declined",
    outcome=Outcome.FAILED,
    step="payment",
    workflow="payment-only",
    agent="payment",
):
    """An order of which this step failed so many seconds ago."""
    stuck = steps.failed if outcome is Outcome.FAILED else steps.undo_failed
    order = orders.in_error(
        outcome=outcome,
        steps=[stuck(steps.new(step, capability=agent), reason=reason)],
        workflow=workflow,
        updated_at=NOW - seconds(ago),
    )
    return await record(made, number, order)


SOLD_OUT = {"cause": "refused: sold out"}
WHERE = {
    "cause": (SOLD_OUT, {"reason": "Sold out"}),
    "agent": ({"agent": "backup"}, {"agent": "backup"}),
    "outcome": ({"outcome": Outcome.UNDO_INCOMPLETE}, {"outcome": Outcome.UNDO_INCOMPLETE}),
    "step": ({"step": "stock"}, {"step": "stock"}),
    "workflow": ({"workflow": "order"}, {"workflow": "order"}),
    "since": ({"since": NOW - seconds(30)}, {"ago": 30}),
}


@pytest.mark.proves("OPR-3", "OPR-4")
@pytest.mark.parametrize("what", WHERE)
async def test_a_bulk_action_is_for_orders_that_match_every_condition(what):
    """By the list, and again by the order itself, which may have changed since."""
    made, (conditions, odd) = app_at(), WHERE[what]
    both, where = [await failed(made, 0), await failed(made, 1, **odd)], Where(**conditions)
    page = await made.operations.services.bulk.run(resubmit_all(where=where))
    assert [order.order_id for order in page.matching] == [both[1].order_id]
    assert [matches(order, RESUBMIT, where, NOW) for order in both] == [False, True]


@pytest.mark.proves("OPR-3")
async def test_a_bulk_action_is_for_orders_that_failed_before_a_time_that_is_over():
    """On every machine: no clock can write an order into what was looked through."""
    made = app_at()
    order = await failed(made, 0)
    assert (await made.operations.services.bulk.run(resubmit_all())).until == NOW - TOLERANCE
    assert matches(order, RESUBMIT, Where(), order.updated_at + seconds(1))
    assert not matches(order, RESUBMIT, Where(), order.updated_at)
    assert not matches(orders.pending(order), RESUBMIT, Where(), NOW)


@pytest.mark.proves("OPR-3")
async def test_a_bulk_action_goes_through_all_orders_once():
    """Page by page, to the end and no further."""
    made = app_at()
    ids = [(await failed(made, number, ago=60 - number)).order_id for number in range(3)]
    done, pages, continuation = [], 0, None
    while pages == 0 or continuation:
        request = resubmit_all(
            until=NOW - TOLERANCE, dry_run=False, limit=1, continuation=continuation
        )
        page = await made.operations.services.bulk.run(request)
        done, pages, continuation = [*done, *page.done], pages + 1, page.continuation
    assert (done, pages) == (ids, len(ids))


@pytest.mark.proves("OPR-3")
async def test_an_order_that_is_gone_holds_up_no_bulk_action():
    """It was removed meanwhile: the others are acted on, and it is named."""
    made = app_at()
    gone, there = [(await failed(made, number)).order_id for number in range(2)]
    rows = made.engine.store.table.partitions["b03"]
    for key in [key for key in rows if key.startswith(gone)]:
        del rows[key]
    page = await made.operations.services.bulk.run(
        resubmit_all(until=NOW - TOLERANCE, dry_run=False)
    )
    assert (page.done, page.changed, page.refused) == ([there], [gone], [])


@pytest.mark.proves("OPR-3")
async def test_an_order_on_which_nobody_can_act_holds_up_no_bulk_action():
    """The others are acted on, and it is named; a store that is away is no fault of the order."""
    made = app_at()
    odd, good = [(await failed(made, number)).order_id for number in range(2)]
    commit = made.engine.store.commit
    for fault in (InvalidError(["it cannot be written"]), UnavailableError("away")):

        async def refused(change, fault=fault):
            if change.after.order_id == odd:
                raise fault
            return await commit(change)

        request = resubmit_all(until=NOW - TOLERANCE, dry_run=False)
        with (
            patch.object(made.engine.store, "commit", refused),
            patch.object(made.engine.store, "committed", not_committed),
        ):
            if isinstance(fault, InvalidError):
                page = await made.operations.services.bulk.run(request)
                assert (page.done, [refusal.order_id for refusal in page.refused]) == (
                    [good],
                    [odd],
                )
            else:
                with pytest.raises(ExceptionGroup):
                    await made.operations.services.bulk.run(request)


async def not_committed(_):
    return False


@pytest.mark.proves("OPR-4")
async def test_a_bulk_skip_skips_the_step_that_is_named():
    """Also where another has failed too."""
    made = app_at()
    stock, payment, shipment, capture = orders.new(workflow="order").steps
    made_of = [
        steps.completed(stock),
        steps.completed(payment),
        steps.failed(shipment),
        steps.failed(capture),
    ]
    lost = orders.in_error(steps=made_of, workflow="order", updated_at=NOW - seconds(60))
    order = await record(made, 0, lost)
    request = BulkRequest(
        action="skip", where=Where(step="shipment"), until=NOW - TOLERANCE, dry_run=False, **GRACE
    )
    page = await made.operations.services.bulk.run(request)
    assert page.done == page.still_waiting == [order.order_id]  # it has not failed again
    skipped = (await made.engine.store.load(order.order_id)).step("shipment")
    assert skipped.state == Skipped(SkipReason.OPERATOR)


@pytest.mark.proves("OPR-1")
async def test_every_open_order_is_on_one_page():
    """Of all buckets, wherever a page ends."""
    made = app_at()
    places = [(0, "b00"), (1, "b03"), (2, "b00"), (3, "b05")]
    ids = [(await record(made, number, orders.new(), bucket)).order_id for number, bucket in places]
    seen, pages, continuation = [], 0, None
    while pages == 0 or continuation:
        page = await made.operations.orders.list(
            OrdersPage(state="Pending", limit=2, continuation=continuation)
        )
        seen, pages, continuation = (
            [*seen, *(order.order_id for order in page.orders)],
            pages + 1,
            page.continuation,
        )
    assert (sorted(seen), pages) == (sorted(ids), 2)


@pytest.mark.proves("OPR-1")
async def test_only_orders_whose_ids_begin_so_are_found():
    """And not the one that comes next."""
    made = app_at()
    order = await record(made, 5, orders.new())
    assert [
        found.order_id for found in (await made.operations.orders.search(Search(id="b03-0"))).orders
    ] == [order.order_id]
    assert (await made.operations.orders.search(Search(id=f"b03-{4:026d}"))).orders == []


@pytest.mark.proves("OPR-1")
async def test_the_overview_says_where_it_did_not_count_to_the_end():
    """One bucket with too many is enough; all that stands before or behind them is counted."""
    made = app_at()
    await failed(made, 0)
    for number in range(1, 5):
        await record(made, number, orders.new())
    await made.engine.store.commit(scheduler.claim(await record(made, 5, orders.new()), NOW))
    with patch("operations.api.outbox.MAX_COUNTED", 2):
        counted = (await overview_on(made).look()).open_orders
    assert {str(state): (count.count, count.at_least) for state, count in counted.items()} == {
        "Error": (1, False),
        "Waiting": (0, False),
        "Held": (0, False),
        "Pending": (2, True),
        "Processing": (1, False),
    }


# Alerts, and what nobody could read


@pytest.mark.proves("ALR-1", "FLT-6")
async def test_alerts_that_nobody_can_read_hide_none_behind_them():
    """However many stand before them."""
    made = app_at()
    desk = made.operations.services.alerts
    for number in range(3):
        await made.operations.alert_log.record(
            OperatorEvent(
                event_id=f"e{number}", type="T", subject="s", at=NOW - seconds(number), data={}
            )
        )
        await made.operations.alert_log._table.submit(
            "alerts", [Put(f"0|garbage {number}", {"SchemaVersion": 99})]
        )
    first = await desk.list(Page(limit=2))
    last = await desk.list(Page(limit=2, continuation=first.continuation))
    assert [alert.id for alert in (*first.alerts, *last.alerts)] == ["e0", "e1", "e2"]
    assert last.continuation is None


@pytest.mark.proves("ALR-1")
async def test_alerts_are_shown_newest_first_and_grouped_by_their_cause():
    """What an event says of itself takes nothing of ours away; each alert is acknowledged once."""
    made = app_at()
    desk = made.operations.services.alerts
    for number, (reason, ago) in enumerate(
        [("card declined", 60), ("sold out", 50), ("card declined again", 40)]
    ):
        cause = f"refused: {reason.removesuffix(' again')}"
        data = {"step": "payment", "reason": reason, "cause": cause, "id": "not ours"}
        event = OperatorEvent(
            event_id=f"e{number}", type="T", subject="s", at=NOW - seconds(ago), data=data
        )
        await made.operations.alert_log.record(event)
    page = await desk.list(Page(limit=2))
    rest = await desk.list(Page(limit=2, continuation=page.continuation))
    assert [alert.id for alert in (*page.alerts, *rest.alerts)] == ["e2", "e1", "e0"]
    assert rest.continuation is None
    newest, oldest = page.alerts[0].key, rest.alerts[0].key
    known = await desk.acknowledge(
        AcknowledgeRequest(alerts=(newest, newest, "no-such-alert"), **GRACE)
    )
    assert (known.acknowledged, known.unknown) == ([newest], ["no-such-alert"])
    cause, other = (await desk.causes()).causes
    assert (cause.cause, cause.reason) == ("refused: card declined", "card declined again")
    assert (cause.count, cause.open, other.count) == (2, 2, 1)
    assert cause.first == NOW - seconds(60)
    assert cause.last == NOW - seconds(40)
    assert cause.unacknowledged == [oldest]


@pytest.mark.proves("ALR-1")
async def test_causes_of_a_page_say_that_there_are_older_alerts():
    """Each alert is on one page, so that an action on a cause reaches all of them (bugs2 53)."""
    made = app_at()
    desk, log = made.operations.services.alerts, made.operations.alert_log
    for number in range(5):
        data = {"reason": "an older fault" if number == 0 else "customer: Field required"}
        at = NOW + seconds(number)
        await log.record(
            OperatorEvent(event_id=f"e{number}", type="T", subject="s", at=at, data=data)
        )
    counts, continuation = [], None
    with patch("operations.api.alerts.MAX_GROUPED", 2):
        while not counts or continuation:
            page = await desk.causes(CausesPage(continuation=continuation))
            counts.append({cause.reason: cause.count for cause in page.causes})
            continuation = page.continuation
    same = {"customer: Field required": 2}
    assert counts == [same, same, {"an older fault": 1}]


@pytest.mark.proves("ALR-1")
async def test_an_alert_that_somebody_else_has_taken_is_not_told_as_ones_own():
    """A repeat of one's own is (bugs2 53)."""
    made = app_at()
    desk, log = made.operations.services.alerts, made.operations.alert_log
    await log.record(OperatorEvent(event_id="e", type="T", subject="s", at=NOW, data={}))
    (alert,) = await log.newest(10)
    ada = AcknowledgeRequest(alerts=(alert.key,), operator="ada", note="I look")
    for _ in range(2):
        known = await desk.acknowledge(ada)
        assert (known.acknowledged, known.by_others) == ([alert.key], [])
    known = await desk.acknowledge(AcknowledgeRequest(alerts=(alert.key,), **GRACE))
    assert (known.acknowledged, known.by_others) == ([], [alert.key])


FILTERS = {
    "cause": (SOLD_OUT, {"reason": "Sold out"}),
    "agent": ({"agent": "backup"}, {"agent": "backup"}),
    "step": ({"step": "stock"}, {"step": "stock"}),
    "text of the reason": ({"text": "SOLD"}, {"reason": "all sold out"}),
}


@pytest.mark.proves("OPR-1")
@pytest.mark.parametrize("what", FILTERS)
async def test_a_list_shows_the_orders_that_match_every_filter(what):
    """However far behind others they stand, and page by page."""
    made, (query, odd) = app_at(), FILTERS[what]
    for number in range(5):
        await failed(made, number)
    matching = [(await failed(made, number, **odd)).order_id for number in range(5, 8)]
    seen, pages, continuation = [], 0, None
    with patch("operations.api.service.MAX_LOOKED_AT", 2):
        while pages == 0 or continuation:
            page = await made.operations.orders.list(
                OrdersPage(limit=2, continuation=continuation, **query)
            )
            assert len(page.orders) <= 2
            seen, pages, continuation = (
                [*seen, *(order.order_id for order in page.orders)],
                pages + 1,
                page.continuation,
            )
    assert seen == matching


@pytest.mark.proves("OPR-1")
async def test_a_list_shows_the_orders_of_one_workflow_and_with_one_id():
    made = app_at()
    orders = [await failed(made, number) for number in range(2)]
    service = made.operations.orders
    found = await service.list(OrdersPage(text=orders[1].order_id.lower()))
    assert [order.order_id for order in found.orders] == [orders[1].order_id]
    of_workflow = {
        name: len((await service.list(OrdersPage(workflow=name))).orders)
        for name in ("payment-only", "tea")
    }
    assert of_workflow == {"payment-only": 2, "tea": 0}


@pytest.mark.parametrize("continuation", ["x", "!zzz", "b00-1"])
async def test_no_page_begins_where_none_ended(continuation):
    """A continuation that no page has said is a fault of the caller, and not an empty page."""
    made = app_at()
    with pytest.raises(InvalidError, match="continuation"):
        await made.operations.orders.list(OrdersPage(continuation=continuation))
    with pytest.raises(InvalidError, match="continuation"):
        await made.operations.services.retention.find(
            FindRequest(email="a@b", continuation=f"z{continuation}", **GRACE)
        )
    for page in (AlertsPage, PoisonPage):
        with pytest.raises(ValidationError, match="continuation"):
            page(continuation=continuation)


@pytest.mark.proves("OPR-1")
async def test_an_order_with_exactly_this_key_comes_first():
    """Engine 29c: a longer key with a `|` in it counted as exactly this one."""
    made, names = app_at(), ["A|0", "A|b0", "A"]
    ids = dict(zip(names, (f"b00-{number:026d}" for number in range(3)), strict=True))
    for name, order_id in ids.items():
        order = orders.new(order_id=order_id)
        submitted = replace(order.submitted, key_rows=(business_key(name, order_id),))
        entry = HistoryEntry(at=NOW, actor="submission/i", events=some("submitted"))
        order = replace(order, submitted=submitted)
        await made.engine.store.commit(Transition(before=None, after=order, entry=entry))
    page = await made.operations.orders.list(OrdersPage(key="A", limit=1))
    assert page.orders[0].order_id == ids["A"]
    assert page.continuation is not None


async def test_pending_work_is_read_once_in_two_seconds():
    """What it says tells when it was so."""
    now = [NOW]
    made = app_at(lambda: now[0])
    overview = overview_on(made)
    first = await overview.look()
    await record(made, 0, orders.new())
    now[0] = NOW + seconds(1.9)
    assert await overview.look() == first
    now[0] = NOW + seconds(2)
    later = await overview.look()
    assert (first.at, later.at) == (NOW, NOW + seconds(2))
    assert [shown.open_orders["Pending"].count for shown in (first, later)] == [0, 1]


@pytest.mark.proves("OPR-1", "OPR-2", "SUB-8")
async def test_an_order_is_known_to_operators_before_it_is_recorded():
    """Page, explanation and words for it; nothing of it is asked of a store that has no row."""
    order_id = order_ids(1)()
    service = app_at(lambda: order_time(order_id) + seconds(1)).operations.orders
    seen, explanation = await service.inspect(order_id), await service.explain(order_id)
    assert (seen.order_id, seen.process_state, seen.steps) == (order_id, "Accepted", [])
    assert (seen.placed_at, seen.history, seen.actions) == (order_time(order_id), [], [])
    assert (await service.vocabulary()).orders[seen.situation].word == "Accepted"
    assert (explanation.next_actor, explanation.next_at) == ("submission", None)
    assert explanation.summary
    assert order_text(seen.model_dump(mode="json", by_alias=True))


@pytest.mark.proves("OPR-1")
async def test_an_order_is_shown_with_its_history_up_to_its_version():
    """Between the two reads it may change: each of its events is there, and no later one."""
    made = app_at()
    await recorded(made)
    reads = {name: getattr(made.engine.store, name) for name in ("load", "history")}

    def held_after(read):
        async def reading(*wanted):
            found = await read(*wanted)
            for name, real in reads.items():
                setattr(made.engine.store, name, real)
            await made.operations.orders.act(BY_NAME["hold"], ORDER_ID, OperatorRequest(**GRACE))
            return found

        return reading

    for name, read in reads.items():
        setattr(made.engine.store, name, held_after(read))
    shown = await made.operations.orders.inspect(ORDER_ID)
    assert len(shown.history) == shown.version == 1


async def test_an_action_on_an_order_that_is_not_recorded_yet_is_refused_for_now():
    """It is no order that nobody knows."""
    order_id = order_ids(1)()
    service = app_at(lambda: order_time(order_id)).operations.orders
    request = OperatorRequest(operator="grace", note="a mistake")
    with is_refused(Code.NOT_RECORDED_YET):
        await service.act(BY_NAME["cancel"], order_id, request)


async def test_an_order_is_known_for_as_long_as_azure_may_hide_its_submission():
    """Ten minutes, after the instance that was recording it was ended (functions-host 10373)."""
    order_id = order_ids(1)()
    hidden = timedelta(minutes=10, seconds=30)
    service = app_at(lambda: order_time(order_id) + hidden).operations.orders
    assert (await service.inspect(order_id)).process_state == "Accepted"


@pytest.mark.parametrize(("head", "known"), [(-3, True), (0, True), (3, False), (None, False)])
async def test_an_order_is_known_for_as_long_as_submission_stands_still(head, known):
    """The queue's head was put there so many hours after the order; what is behind it may be the order."""
    order_id = order_ids(1)()
    there = app_at(lambda: order_time(order_id) + timedelta(days=3))
    if head is not None:
        queue = there.operations.storage_queues["order-submissions"]
        queue.head_since = order_time(order_id) + timedelta(hours=head)
    inspection = there.operations.orders.inspect(order_id)
    if known:
        assert (await inspection).process_state == "Accepted"
    else:
        with pytest.raises(UnknownOrderError):
            await inspection


@pytest.mark.proves("OPR-1")
async def test_an_order_that_is_not_recorded_in_time_is_unknown_to_operators():
    """Its message was refused, or nobody has sent it."""
    order_id = order_ids(1)()
    service = app_at(lambda: order_time(order_id) + RECORDED_WITHIN * 2).operations.orders
    for ask in (service.inspect, service.explain):
        with pytest.raises(UnknownOrderError):
            await ask(order_id)


REQUEST = OperatorRequest(operator="grace", note="to call the customer")


async def recorded(made, order=None):
    entry = HistoryEntry(at=NOW, actor="submission/i", events=some("submitted"))
    return await made.engine.store.commit(
        Transition(before=None, after=order or orders.new(), entry=entry)
    )


@pytest.mark.proves("OPR-1")
async def test_personal_data_is_hidden_until_an_operator_asks_and_the_history_says_who_looked(
    caplog,
):
    """Of one order; neither its page, nor its history, nor the log holds it."""
    made, caplog.level = app_at(), logging.INFO
    order = await recorded(made)
    shown = await made.operations.orders.inspect(ORDER_ID)
    assert shown.payload["customer"] == {"name": "hidden", "email": "hidden"}
    assert shown.payload["items"] == order.submitted.payload["items"]
    assert (shown.hides, shown.erased) == (True, False)
    revealed = await made.operations.orders.reveal(ORDER_ID, REQUEST)
    assert revealed.payload == order.submitted.payload
    after = await made.operations.orders.inspect(ORDER_ID)
    looked = after.history[-1]
    assert (looked.actor, looked.event, looked.detail) == (
        "operator/grace",
        "revealed",
        "to call the customer",
    )
    assert (after.payload, after.version) == (shown.payload, shown.version)
    assert "ada@example.com" not in f"{after}{caplog.text}"


@pytest.mark.proves("OPR-1")
async def test_who_looks_is_written_down_before_anything_is_shown():
    """With the store away nothing is shown."""
    made = app_at()
    await recorded(made)

    async def away(_):
        raise UnavailableError

    with patch.object(made.engine.store, "note", away), pytest.raises(UnavailableError):
        await made.operations.orders.reveal(ORDER_ID, REQUEST)


async def test_only_what_is_erased_is_called_erased():
    """There is nothing left to show."""
    made = app_at()
    order = await recorded(made)
    await made.engine.store.commit(erase(order, REQUEST, PAYLOAD, NOW))
    shown = await made.operations.orders.inspect(ORDER_ID)
    assert shown.payload["customer"] == {"name": "erased", "email": "erased"}
    assert (shown.hides, shown.erased) == (False, True)
    with is_refused(Code.NO_PERSONAL_DATA):
        await made.operations.orders.reveal(ORDER_ID, REQUEST)


async def test_of_an_order_that_is_not_recorded_yet_nothing_is_shown():
    """It is on its way."""
    order_id = order_ids(4)()
    made = app_at(lambda: order_time(order_id))
    with is_refused(Code.NOT_RECORDED_YET):
        await made.operations.orders.reveal(order_id, REQUEST)
    with pytest.raises(UnknownOrderError):
        await app_at(lambda: order_time(order_id) + RECORDED_WITHIN * 2).operations.orders.reveal(
            order_id, REQUEST
        )
