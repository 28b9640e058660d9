"""Workflows of several steps, and their undo, on the running system: every step failing in every way."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import cycle, product

import pytest

from engine.azure.connect import connect
from engine.azure.settings import Settings
from engine.concurrency import run_all
from engine.decisions.transitions import HistoryEntry, Transition
from engine.domain.causes import Cause, Code
from engine.words.causes import words_of
from functions_alone.tests.support.waiting import eventually
from shop.business import ORDER_1
from tests.support.apps import app
from tests.support.builders import orders, some, steps
from tests.support.client import DONE, claims_and_recoveries_alternate, events
from tests.support.failing import OPERATIONS, UNDOES, ended, fault, place, standing, steps_of
from tests.support.scale import both_sizes
from tests.support.submitting import new_order_id, submit

BEFORE = {
    "stock": {"payment"},
    "payment": {"stock"},
    "shipment": {"stock", "payment"},
    "capture": {"stock", "payment", "shipment"},
}
"""Which steps are done before, or at the same time."""

AFTER_OTHERS = ("shipment", "capture")


@pytest.mark.proves("SCH-10", "SCH-5")
async def test_the_steps_run_in_their_order_and_side_by_side(client, stack):
    """Stock and payment at the same time, then the shipment, then the capture; each once."""
    order_id = await place(stack, "order-error")
    order = await ended(client, order_id)
    assert order["processState"] == "Processed"
    assert set(steps_of(order).values()) == {"Completed"}
    assert await client.actions(order_id) == DONE
    assert [start for entry in order["history"] if (start := begun(entry))] == [
        [("stock", 1), ("payment", 1)],
        [("shipment", 1)],
        [("capture", 1)],
    ]
    assert await client.work_items_of(order_id) == []


WAYS, POLICIES = ("hang", "late", "down", "flaky", "reject"), ("error", "undo")
MATRIX = list(product(OPERATIONS, WAYS, POLICIES))
EVERY_STEP_AND_WAY = [
    (step, way, policy) for (step, policy), way in zip(product(OPERATIONS, POLICIES), cycle(WAYS))
]
"""Under either policy each step fails, and each way to fail occurs."""


THRESHOLD = 2
AT_ONCE = 12

HOW = {
    "hang": {"latencyMs": 800},
    "late": {"latencyMs": 800},
    "flaky": {"failureRate": 0.3},  # a slow machine has time for few tries, and they are to succeed
}


@pytest.mark.proves(
    "SCH-8", "SCH-12", "SUP-3", "UND-1", "UND-2", "UND-5", "AGT-9", "ALR-1", "FLT-1"
)
@both_sizes(cases=(EVERY_STEP_AND_WAY, MATRIX))
async def test_every_step_failing_in_every_way_under_every_policy(client, stack, cases):
    """All cases side by side: each ends as the pattern says, and the ledgers balance."""
    judged = await run_all((judge(client, stack, *case) for case in cases), at_most=AT_ONCE)
    problems = [problem for found in judged for problem in found]
    assert problems == []


async def judge(client, stack, step, mode, on_failure):
    """Return what is wrong with the end of a case."""
    order_id = new_order_id()
    await fault(client, step, mode, order_id, **HOW.get(mode, {}))
    await submit(stack, order_id, workflow=f"{step}-{on_failure}")
    order = await ended(client, order_id)
    actions = await client.actions(order_id)
    steps = steps_of(order)
    wrong = (
        [] if claims_and_recoveries_alternate(order) else ["claims and recoveries do not alternate"]
    )

    def expect(what, holds):
        if not holds:
            wrong.append(what)

    expect("an effect happened twice", max(Counter(actions).values(), default=0) <= 1)
    if (
        mode == "flaky" and order["failureCount"] < THRESHOLD
    ):  # on a slow machine it may be given up like any other
        expect("it is not processed", order["processState"] == "Processed")
        expect("something is missing", actions == DONE)
    elif on_failure == "error":
        expect(
            "it does not wait for an operator",
            (order["processState"], order["outcome"]) == ("Error", "failed"),
        )
        expect("another step is called failed", steps[step] == "Failed")
        done = (
            ("Completed",) if step in AFTER_OTHERS else ("Completed", "NotStarted")
        )  # beside it: if there was room
        expect("a step before is not done", all(steps[name] in done for name in BEFORE[step]))
        expect(
            "a step after was begun",
            all(steps[n] == "NotStarted" for n in steps if n != step and n not in BEFORE[step]),
        )
        expect("something was taken back", not UNDOES.keys() & set(actions))
    else:
        expect("it is not undone", (order["processState"], order["outcome"]) == ("Error", "undone"))
        expect(f"this still stands: {standing(actions)}", not standing(actions))
        undone = ("Undone",) if step in AFTER_OTHERS else ("Undone", "NotStarted")
        expect("a step before is not undone", all(steps[name] in undone for name in BEFORE[step]))
    if order["processState"] == "Error":
        alerts = await eventually(partial(client.alerts, order_id))
        expect("it has not exactly one alert", len(alerts) == 1)
        expect(
            "an operator is called for nothing",
            alerts[0]["actionRequired"] == (order["outcome"] != "undone"),
        )
    return [(step, mode, on_failure, problem, events(order), actions) for problem in wrong]


@pytest.mark.proves("UND-2")
async def test_an_effect_that_comes_after_its_undo_is_refused(client, stack):
    """The payment hangs beyond all deadlines and is undone; the late call takes no effect any more."""
    order_id = new_order_id()
    await fault(client, "payment", "late", order_id, latencyMs=3000)
    await submit(stack, order_id, workflow="payment-undo")
    order = await ended(client, order_id)
    assert order["outcome"] == "undone"
    assert standing(await client.actions(order_id)) == set()


@pytest.mark.proves("UND-4", "UND-5", "OPR-3", "FLT-10")
async def test_an_undo_that_keeps_failing_waits_for_an_operator(client, stack):
    """What could be undone is undone; the alert says what is left; a resubmit lets the undo go on to its end."""
    order_id = new_order_id()
    await fault(client, "shipment", "reject", order_id)
    await fault(client, "stock", "hang", order_id, action="release", latencyMs=800)
    await submit(stack, order_id, workflow="stock-undo")
    order = await ended(client, order_id)
    assert (order["processState"], order["outcome"]) == ("Error", "undo-incomplete")
    assert steps_of(order) == {
        "stock": "Failed",
        "payment": "Undone",
        "shipment": "Undone",
        "capture": "NotStarted",
    }
    (alert,) = await eventually(partial(client.alerts, order_id))
    assert (alert["stillToBeUndone"], alert["actionRequired"]) == (["stock"], True)
    await fault(client, "stock", "none", order_id, action="release")
    assert (await client.resubmit(order_id))[0] == 202

    async def undone():
        order = await client.order(order_id)
        return order["outcome"] == "undone" and order

    order = await eventually(undone)
    assert steps_of(order)["stock"] == "Undone"
    assert standing(await client.actions(order_id)) == set()
    status, refusal = await client.resubmit(order_id)
    assert status == 409
    assert "is Undone" in refusal["detail"]


@pytest.mark.proves("SCH-12")
async def test_two_steps_that_fail_at_once_are_one_failure_of_the_order(client, stack):
    """One is refused while the other hangs: the order waits for both, then it ends, with one alert."""
    for on_failure, outcome in (("error", "failed"), ("undo", "undone")):
        order_id = new_order_id()
        await fault(client, "payment", "reject", order_id)
        await fault(client, "stock", "hang", order_id, latencyMs=800)
        await submit(stack, order_id, workflow=f"stock-{on_failure}")
        order = await ended(client, order_id)
        assert order["outcome"] == outcome
        assert "card declined" in order["reason"]
        assert steps_of(order)["shipment"] == "NotStarted"
        assert len(await eventually(partial(client.alerts, order_id))) == 1


@pytest.mark.proves("SCH-6", "SUP-3")
async def test_of_two_steps_only_the_one_that_expired_is_tried_again(client, stack):
    """The other answers meanwhile, once, and is not asked again."""
    order_id = new_order_id()
    await fault(client, "payment", "hang", order_id, latencyMs=800)
    await submit(stack, order_id, workflow="patient")

    async def payment_failed():
        order = await client.order(order_id)
        return order and order["failureCount"]

    await eventually(payment_failed)
    await fault(client, "payment", "none", order_id)
    order = await client.until(order_id, "Processed")
    attempts = {step["name"]: step["attempts"] for step in order["steps"]}
    assert attempts["stock"] == 1
    assert attempts["payment"] >= 2


@pytest.mark.proves("UND-2")
async def test_an_undo_waits_until_no_call_can_take_effect(client, stack):
    """For a service that does not refuse undone keys, the workflow says how long that is."""
    order_id = new_order_id()
    await fault(client, "payment", "hang", order_id, latencyMs=800)
    await submit(stack, order_id, workflow="settling")
    order = await ended(client, order_id)
    assert order["outcome"] == "undone"
    done, undone = (times(order, isUndo=is_undo) for is_undo in (False, True))
    timeout, late_effect_window = timedelta(seconds=3), timedelta(seconds=2)
    assert min(undone) >= max(done) + timeout + late_effect_window


def begun(entry, **how):
    """The attempts that began with this entry of the history."""
    starts = (event for event in entry["events"] if event["event"] == "step-started")
    return [(start["step"], start["attempt"]) for start in starts if how.items() <= start.items()]


def times(order, **how):
    """When attempts at the payment began."""
    return [
        datetime.fromisoformat(entry["at"])
        for entry in order["history"]
        if begun(entry, step="payment", **how)
    ]


async def test_several_workflows_and_versions_run_side_by_side(client, stack):
    """Orders finish on the workflow they started with: on several, on an old version, and not on one that is gone."""
    ids = {name: await place(stack, name) for name in ("order", "return", "in-sequence")}
    ids["old"] = await recorded_by_an_older_app(stack, version=1)
    gone = await recorded_by_an_older_app(stack, version=0)
    ends = {name: await ended(client, order_id) for name, order_id in ids.items()}
    assert {order["processState"] for order in ends.values()} == {"Processed"}
    assert (ends["order"]["workflowVersion"], ends["old"]["workflowVersion"]) == (2, 1)
    assert await client.actions(ids["order"]) == DONE
    assert await client.actions(ids["old"]) == ["authorise"]
    assert await client.actions(ids["return"]) == ["refund", "release"]
    assert await client.actions(ids["in-sequence"]) == ["authorise", "reserve", "ship"]
    order = await ended(client, gone)
    assert (order["processState"], order["reason"]) == (
        "Error",
        words_of(Cause(Code.WORKFLOW_RETIRED, {"workflow": "order", "version": 0})),
    )


async def recorded_by_an_older_app(stack, version):
    """An order as an earlier deployment recorded it, without its wake-up: the poll has to find it."""
    order_id, now = new_order_id(), datetime.now(UTC)
    before = {"workflow_version": version, "updated_at": now - timedelta(minutes=1)}
    old = orders.on(ORDER_1, order_id=order_id, **before)
    payment = steps.with_rules(old.step("payment"), timeout=timedelta(seconds=2))
    old = orders.with_steps(old, steps.scheduled(payment, at=now))
    entry = HistoryEntry(at=now, actor="submission/old", events=some("submitted"), change_id="old")
    parts = connect(Settings.model_validate(stack.app_environment()))
    await app(parts).engine.store.commit(Transition(before=None, after=old, entry=entry))
    await parts.close()
    return order_id
