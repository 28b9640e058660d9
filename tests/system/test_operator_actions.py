"""Operators put right what failed, over HTTP and by the command line, and cancel orders wherever they are."""

from itertools import product

import pytest

from engine.concurrency import run_all
from engine.domain.causes import Cause, Code
from engine.words.causes import words_of
from functions_alone.tests.support.waiting import eventually
from tests.support.client import DONE, claims_and_recoveries_alternate, events
from tests.support.failing import OPERATIONS, ended, fault, place, standing, steps_of
from tests.support.interfaces import Http, interfaces
from tests.support.scale import in_soak
from tests.support.submitting import new_order_id, submit

UNNEEDED = ("shipment", "capture")
"""The steps whose answers nobody needs: the shipment names the reservation, the capture the authorisation."""


AT_ONCE = 12
LATE = pytest.param("http, late", marks=pytest.mark.soak)
"""Orders that failed since no answer came in time."""


async def failed_at(client, stack, step, mode):
    """An order that waits for an operator because of this step; the cause is mended by now."""
    order_id = new_order_id()
    await fault(client, step, mode, order_id, **({"latencyMs": 800} if mode == "hang" else {}))
    await submit(stack, order_id, workflow=f"{step}-error")
    order = await client.until(order_id, "Error")
    assert order["outcome"] == "failed"
    await fault(client, step, "none", order_id)
    return order_id


@pytest.mark.proves("OPR-3", "OPR-4")
@pytest.mark.parametrize("interface", ["http", *in_soak("command line"), LATE])
async def test_from_every_failed_state_an_operator_gets_the_order_to_its_right_end(
    client, stack, interface
):
    """Each step, refused or timed out for good: resubmitted, skipped or cancelled; the ledgers say what was done."""
    modes = ("hang",) if interface == "http, late" else ("reject",)
    operator = interfaces(client)[interface.partition(",")[0]]
    cases = [(step, mode, way) for step in OPERATIONS for mode in modes for way in WAYS]
    wrong = await run_all(
        (put_right(client, stack, operator, case) for case in cases), at_most=AT_ONCE
    )
    assert [problem for problem in wrong if problem] == []


async def put_right(client, stack, operator, case):
    step, mode, way = case
    order_id = await failed_at(client, stack, step, mode)
    wrong = await WAYS[way](client, operator, order_id, step)
    order = await client.order(order_id)
    if order["history"][-1]["event"] not in (
        "processed",
        "undone",
    ) or not claims_and_recoveries_alternate(order):
        wrong = f"{wrong}, and its history is {events(order)}"
    return wrong and f"{step}, {mode}, {way}: {wrong}"


async def by_resubmit(client, operator, order_id, step):
    if refused := await operator.act("resubmit", order_id):
        return refused
    return await is_done(client, order_id, DONE)


async def by_skip(client, operator, order_id, step):
    before = await client.order(order_id)
    refused = await operator.act("skip", order_id, step=step)
    if step not in UNNEEDED:
        if f"without the answer of {step}" not in refused or await client.order(order_id) != before:
            return f"not refused, or something changed: {refused}"
        return await by_resubmit(client, operator, order_id, step)
    if refused:
        return refused
    wrong = await is_done(
        client, order_id, [action for action in DONE if action != OPERATIONS[step][1]]
    )
    return wrong or (
        "" if steps_of(await client.order(order_id))[step] == "Skipped" else "it is not Skipped"
    )


async def by_cancel(client, operator, order_id, step):
    if refused := await operator.act("cancel", order_id):
        return refused
    order = await undone(client, order_id)
    left = standing(await client.actions(order_id))
    return f"this still stands: {left}" if left or order["outcome"] != "undone" else ""


WAYS = {"resubmit": by_resubmit, "skip": by_skip, "cancel": by_cancel}


async def is_done(client, order_id, actions):
    await client.until(order_id, "Processed")
    done = await client.actions(order_id)
    return "" if done == actions else f"what was done is {done}"


async def undone(client, order_id):
    async def is_undone():
        order = await client.order(order_id)
        return order if order and order["outcome"] == "undone" else None

    is_undone.__name__ = f"{order_id} is undone"
    return await eventually(is_undone)


@pytest.mark.proves("OPR-3", "OPR-4", "UND-4")
@pytest.mark.parametrize("interface", ["http", *in_soak("command line")])
async def test_an_undo_that_failed_is_tried_again_or_was_done_by_hand(client, stack, interface):
    """Resubmitted once it works again; skipped when somebody voided the payment at the bank."""
    operator, ids = interfaces(client)[interface], {}
    for way in ("resubmit", "skip"):
        ids[way] = new_order_id()
        await fault(client, "shipment", "reject", ids[way])
        await fault(client, "payment", "reject", ids[way], action="void")
        await submit(stack, ids[way], workflow="order-undo")
    for way, order_id in ids.items():
        order = await ended(client, order_id)
        assert (order["outcome"], order["actions"]) == ("undo-incomplete", ["resubmit", "skip"])
        stopped = Cause(Code.UNDO_REQUESTED_ALREADY, {"has_stopped": True})
        assert words_of(stopped) in await operator.act("cancel", order_id)
        if way == "resubmit":
            await fault(client, "payment", "none", order_id, action="void")
        assert await operator.act(way, order_id) == ""
        order = await undone(client, order_id)
        by_hand = {"authorise"} if way == "skip" else set()
        assert standing(await client.actions(order_id)) == by_hand
        assert steps_of(order)["payment"] == ("Skipped" if way == "skip" else "Undone")


RUNS, FAILED = "as soon as it runs", "after a failure"
POINTS = [
    *product(OPERATIONS, ("slow", "hang", "late", "down", "reject"), (RUNS,)),
    *product(OPERATIONS, ("hang", "late", "down", "reject"), (FAILED,)),
]


@pytest.mark.proves("OPR-4", "UND-1", "UND-2", "SCH-12")
@pytest.mark.soak
async def test_an_order_can_be_cancelled_at_every_point(client, stack):
    """While each step runs, between its tries, and when it has failed: all is taken back, and nobody is called."""
    wrong = await run_all((cancelled_at(client, stack, *case) for case in POINTS), at_most=AT_ONCE)
    assert [problem for problem in wrong if problem] == []


async def cancelled_at(client, stack, step, mode, moment):
    order_id = new_order_id()
    await fault(
        client,
        step,
        mode,
        order_id,
        **({"latencyMs": 1200} if mode in ("slow", "hang", "late") else {}),
    )
    await submit(stack, order_id, workflow=f"{step}-error")

    async def is_there():
        order = await client.order(order_id)
        now = (
            next(candidate for candidate in order["steps"] if candidate["name"] == step)
            if order
            else {"attempts": 0}
        )
        failed = now["attempts"] and (now["failureCount"] or now["state"] == "Failed")
        return failed if moment == FAILED else now["attempts"]

    is_there.__name__ = f"{step} {mode} {moment}"
    await eventually(is_there)
    if refused := await Http(client).act("cancel", order_id):
        return f"{is_there.__name__}: {refused}"
    order = await undone(client, order_id)
    left = standing(await client.actions(order_id))

    async def owes_nothing():
        return await client.work_items_of(order_id) == []  # once its alert is sent

    await eventually(owes_nothing)
    good = not left and claims_and_recoveries_alternate(order)
    return "" if good else f"{is_there.__name__}: {left} stands after {events(order)}"


DONE_BEFORE = {
    "stock": "Completed",
    "payment": "Completed",
    "shipment": "NotStarted",
    "capture": "NotStarted",
}
TIMES = 6
TOO_LATE = 99
"""A version that no order of these reaches: it is processed before."""


@pytest.mark.proves("OPR-4", "UND-1")
@pytest.mark.soak
async def test_a_cancel_at_any_moment_undoes_the_order_or_comes_too_late(client, stack):
    """Nothing in between: what was not refused is undone to the last step, what was refused is processed."""
    versions = [version for version in (*range(1, 7), TOO_LATE) for _ in range(TIMES)]
    ends = await run_all(
        (cancelled_after(client, stack, version) for version in versions), at_most=AT_ONCE
    )
    wrong = [end for end in ends if end[:2] not in (("undone", set()), ("processed", set(DONE)))]
    assert wrong == []
    assert {end[0] for end in ends} == {"undone", "processed"}


async def cancelled_after(client, stack, version):
    order_id = await place(stack, "order")

    async def is_there():
        order = await client.order(order_id)
        return order and (order["version"] >= version or order["processState"] == "Processed")

    await eventually(is_there)
    refused = await Http(client).act("cancel", order_id)
    order = await (client.until(order_id, "Processed") if refused else undone(client, order_id))
    return order["history"][-1]["event"], standing(await client.actions(order_id)), refused


@pytest.mark.proves("OPR-3", "OPR-4")
@pytest.mark.parametrize("interface", ["http", *in_soak("command line")])
async def test_what_makes_no_sense_is_refused_with_the_reason(client, stack, interface):
    """Whatever is processed or undone stays so."""
    done = await place(stack, "order")
    await client.until(done, "Processed")
    gone = await failed_at(client, stack, "capture", "reject")
    operator = interfaces(client)[interface]
    assert await operator.act("cancel", gone) == ""
    await undone(client, gone)
    before = [await client.order(order_id) for order_id in (done, gone)]
    for action in ("resubmit", "skip", "cancel"):
        assert "the order is Processed" in await operator.act(action, done)
        assert "Undone" in await operator.act(action, gone)
    assert [await client.order(order_id) for order_id in (done, gone)] == before


@pytest.mark.proves("OPR-7", "OPR-8")
@pytest.mark.parametrize("interface", ["http", *in_soak("command line")])
async def test_an_order_that_is_held_while_a_step_runs_goes_on_after_its_release(
    client, stack, interface
):
    """The step that runs is answered, and the next one waits; meanwhile the order is listed as held."""
    operator, order_id = interfaces(client)[interface], new_order_id()
    await fault(client, "payment", "down", order_id)
    await submit(stack, order_id, workflow="order")
    await client.until(order_id, "Processing")
    assert await operator.act("hold", order_id) == ""
    await fault(client, "payment", "none", order_id)
    held = await client.until(order_id, "Pending")
    assert (held["situation"], held["heldBy"]) == ("held", "grace")
    assert steps_of(held) == DONE_BEFORE
    _, listed = await client.request("GET", "/api/operator/orders?state=Held&limit=500")
    assert order_id in [found["orderId"] for found in listed["orders"]]
    on_hold = words_of(Cause(Code.ON_HOLD_ALREADY, {"by": "grace"}))
    assert on_hold in await operator.act("hold", order_id)
    assert await operator.act("expedite", order_id) == ""
    assert steps_of(await client.order(order_id)) == DONE_BEFORE
    assert await operator.act("release", order_id) == ""
    order = await client.until(order_id, "Processed")
    assert (order["priority"], order["heldBy"]) == ("high", None)
    assert await client.actions(order_id) == DONE
