"""One action on many orders, with a kill in the middle."""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from engine.azure.connect import connect
from engine.azure.settings import Settings
from engine.concurrency import run_all
from engine.decisions.transitions import HistoryEntry, Transition
from engine.domain.causes import Cause, Code
from engine.words.catalogue import text
from engine.words.causes import words_of
from functions_alone.tests.support.waiting import eventually
from tests.support.apps import app
from tests.support.builders import orders, some, steps
from tests.support.client import KILLED, PATIENT, events
from tests.support.inspection import states_of, unfinished
from tests.support.interfaces import CommandLine
from tests.support.scale import NIGHTLY
from tests.support.stacks import APP, running
from tests.support.submitting import new_order_id

REASON = "card declined"
"""What the simulated service says too, so that an order that fails again looks like one that was not touched."""
CAUSE = f"refused: {REASON}"
SIGNED = ("--operator", "grace", "-m", "the provider is back")


@pytest.fixture(scope="module")
async def breakable(tmp_path_factory):
    """A stack whose host may be killed."""
    async with running(tmp_path_factory.mktemp("stack"), app=APP, settings=PATIENT | KILLED) as (
        stack,
        client,
    ):
        yield stack, client


async def in_error(stack, count, reason=REASON, **more):
    """Record orders whose payment failed a minute ago."""
    parts = connect(Settings.model_validate(stack.app_environment()))
    store, since = app(parts).engine.store, datetime.now(UTC) - timedelta(minutes=1)
    ids = [new_order_id() for _ in range(count)]
    await run_all(
        (store.commit(failed(order_id, reason, since, **more)) for order_id in ids), at_most=200
    )
    await parts.close()
    return ids


def failed(order_id, reason, since, *, is_needed=False):
    lost = [steps.failed(reason=reason)]
    if is_needed:
        lost += [steps.new("capture", after=("payment",), uses=("payment",))]
    order = orders.in_error(steps=lost, order_id=order_id, updated_at=since)
    entry = HistoryEntry(at=since, actor="scheduler/s", events=some("failed"), change_id=order_id)
    return Transition(before=None, after=order, entry=entry)


async def histories(client, ids):
    """What happened to each order, by its id."""
    orders = await run_all((client.order(order_id) for order_id in ids), at_most=16)
    return {order["orderId"]: events(order) for order in orders}


@pytest.mark.proves("OPR-3", "OPR-6")
@pytest.mark.soak
@pytest.mark.parametrize("many", [1000 if NIGHTLY else 300])
async def test_a_bulk_resubmit_that_is_killed_finishes_when_it_is_repeated_and_touches_no_order_twice(
    breakable, many
):
    """Command and host are killed in the middle; some orders fail again, and are left to their new alert."""
    stack, client = breakable
    ids = await in_error(stack, many)
    others = await in_error(stack, 5, reason="the provider is down")
    again = set(ids[::100])
    await run_all(
        client.request(
            "PUT",
            "/simulator/payment/faults",
            json={"mode": "reject", "match": {"orderId": order_id}},
        )
        for order_id in again
    )
    operator = CommandLine(client)
    code, out, err = await operator.run(
        "bulk", "resubmit", "--step", "payment", "--cause", CAUSE, "--json", *SIGNED
    )
    assert code == 0, err
    plan = json.loads(out)
    assert ({order["orderId"] for order in plan["matching"]}, plan["done"]) == (set(ids), [])

    go = (
        "bulk",
        "resubmit",
        "--step",
        "payment",
        "--cause",
        CAUSE,
        "--until",
        plan["until"],
        "--go",
        *SIGNED,
    )
    command = await operator.start(*go)
    await command.stderr.readline()  # the first page of three is done, the second one under way
    command.kill()
    await stack.kill_host()
    await command.wait()
    await stack.start_host()
    states = await states_of(client, ids)
    left = sum(row["ProcessState"] == "Error" and row["Version"] == 1 for row in states.values())
    assert 0 < left < many

    code, out, err = await operator.run(*go, "--json")
    assert code == 0, err
    summary = json.loads(out)
    assert (len(summary["done"]), summary["refused"]) == (left, [])

    async def all_ended():
        left = await unfinished(client, ids)
        all_ended.__name__ = f"all orders have ended, but {len(left)} have not"
        return not left

    await eventually(all_ended)
    ends = Counter(row["ProcessState"] for row in (await states_of(client, ids)).values())
    assert ends == {"Processed": many - len(again), "Error": len(again)}
    code, out, err = await operator.run(*go)
    assert code == 0, err
    assert "0 done" in out
    touched = await histories(client, [*ids, *others])
    assert {order_id for order_id in ids if touched[order_id].count("resubmitted") != 1} == set()
    assert [touched[order_id] for order_id in others] == [["failed"]] * len(others)


async def test_a_bulk_action_says_why_it_left_orders_alone(stack, client):
    """Skipping a payment whose answer is needed; and cancelling all that is left."""
    reason = "the provider went out of business"
    ids = await in_error(stack, 3, reason)
    needed = await in_error(stack, 2, reason, is_needed=True)
    operator = CommandLine(client)
    cause = f"refused: {reason}"
    options = ("--cause", cause, "--until", (datetime.now(UTC) - timedelta(seconds=30)).isoformat())
    code, out, _ = await operator.run("bulk", "skip", *options, "--go", *SIGNED)
    assert code == 1  # it was refused for some
    why = Cause(Code.RESULT_NEEDED, {"needed": {"payment": ["capture"]}})
    assert f"{needed[0]}: {words_of(why)}" in out
    assert "3 done, 2 refused, 0 changed" in out
    code, out, _ = await operator.run("bulk", "cancel", *options, "--go", *SIGNED)
    assert "2 done, 0 refused, 0 changed" in out
    for order_id in ids:
        order = await client.until(order_id, "Processed")
        assert order["steps"][0]["state"] == "Skipped"


async def test_a_bulk_action_may_not_reach_into_the_present(client):
    """An order that fails again after it was touched would be meant once more."""
    body = {"action": "resubmit", "operator": "grace", "note": "n", "dryRun": False}
    status, answer = await client.request("POST", "/api/operator/bulk", json=body)
    assert (status, text("fault.until-missing") in answer["faults"][0]) == (400, True)
    body["until"] = (datetime.now(UTC) + timedelta(minutes=1)).isoformat()
    status, answer = await client.request("POST", "/api/operator/bulk", json=body)
    expected, *_ = text("fault.not-over", latest="|").split("|")
    assert (status, f"until: {expected}" in answer["faults"][0]) == (400, True)
