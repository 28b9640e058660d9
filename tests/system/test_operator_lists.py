"""What operators find: orders and alerts in pages, by id and by cause, and how the system is doing."""

import asyncio
import json
from functools import partial

import pytest

from engine.words.catalogue import text
from functions_alone.tests.support.waiting import eventually
from tests.support.failing import fault, steps_of
from tests.support.interfaces import CommandLine
from tests.support.submitting import new_order_id, submit

GRACE = {"operator": "grace", "note": "I call the bank"}
MANY, PAGE = 11, 5


@pytest.fixture(scope="module")
async def failed(client, stack):
    """Orders that wait for an operator, all for the same reason, and their alerts."""
    ids = [new_order_id() for _ in range(MANY)]
    await asyncio.gather(*(fault(client, "payment", "reject", order_id) for order_id in ids))
    await submit(stack, *ids, workflow="order")
    for order_id in ids:
        await client.until(order_id, "Error")
        await eventually(partial(client.alerts, order_id))
    return ids


async def pages(client, path, items):
    """Every page of a list."""
    found, continuation = [], ""
    while continuation is not None:
        more = f"&continuation={continuation}" if continuation else ""
        status, page = await client.request(
            "GET", f"{path}{'&' if '?' in path else '?'}limit={PAGE}{more}"
        )
        assert status == 200, page
        assert len(page[items]) <= PAGE
        found.append(page[items])
        continuation = page["continuation"]
    return found


@pytest.mark.proves("OPR-1")
async def test_orders_are_listed_by_pages_the_longest_waiting_first(client, failed):
    """Each once, with what failed and why; the command line shows the same."""
    listed = [
        order
        for page in await pages(client, "/api/operator/orders?state=Error", "orders")
        for order in page
    ]
    assert [order["updatedAt"] for order in listed] == sorted(
        order["updatedAt"] for order in listed
    )
    ids = [order["orderId"] for order in listed]
    assert len(set(ids)) == len(ids)
    assert set(failed) <= set(ids)
    (one,) = [order for order in listed if order["orderId"] == failed[0]]
    assert (one["failedSteps"], one["outcome"], one["reason"]) == (
        ["payment"],
        "failed",
        "card declined",
    )
    code, out, _ = await CommandLine(client).run("list", "--limit", str(PAGE), "--all", "--json")
    assert code == 0
    assert {order["orderId"] for order in json.loads(out)["orders"]} >= set(failed)
    _, out, _ = await CommandLine(client).run("list", "--workflow", "nobody-has-it", "--json")
    assert json.loads(out)["orders"] == []


@pytest.mark.proves("OPR-1", "UND-5")
async def test_an_order_that_was_undone_completely_waits_for_nobody_and_is_not_listed(
    client, failed
):
    """It is found by its id, also by the beginning of it."""
    order_id = failed[-1]
    assert (await client.request("POST", f"/api/operator/orders/{order_id}/cancel", json=GRACE))[
        0
    ] == 202

    async def is_undone():
        order = await client.order(order_id)
        assert order["outcome"] == "undone", order["history"]
        return order

    await eventually(is_undone)
    listed = [
        order
        for page in await pages(client, "/api/operator/orders?state=Error", "orders")
        for order in page
    ]
    assert order_id not in {order["orderId"] for order in listed}
    status, found = await client.request("GET", f"/api/operator/search?id={order_id[:16]}")
    assert status == 200
    assert order_id in {order["orderId"] for order in found["orders"]}
    code, out, _ = await CommandLine(client).run("search", order_id)
    assert (code, "Error  undone" in out) == (0, True)
    assert (await client.request("GET", "/api/operator/search?id=7"))[0] == 400


@pytest.mark.proves("ALR-1")
async def test_alerts_are_grouped_by_cause_and_acknowledged(client, failed):
    """Of many with one cause all at once; whoever comes second changes nothing, and is told what is unknown."""
    alerts = [
        alert for page in await pages(client, "/api/operator/alerts", "alerts") for alert in page
    ]
    assert [alert["at"] for alert in alerts] == sorted(
        (alert["at"] for alert in alerts), reverse=True
    )
    assert {alert["subject"].removeprefix("orders/") for alert in alerts} >= set(failed)
    _, answer = await client.request("GET", "/api/operator/alerts/causes")
    declined = {"cause": "refused: card declined", "reason": "card declined"}
    wanted = {"type": "OrderProcessing.OrderFailed", "step": "payment", **declined}
    (cause,) = [candidate for candidate in answer["causes"] if wanted.items() <= candidate.items()]
    assert cause["count"] >= MANY
    ours = cause["unacknowledged"]
    status, done = await client.request(
        "POST", "/api/operator/alerts/acknowledge", json=GRACE | {"alerts": [*ours, "no-such-key"]}
    )
    assert (status, sorted(done["acknowledged"]), done["unknown"]) == (
        200,
        sorted(ours),
        ["no-such-key"],
    )
    code, _, err = await CommandLine(client).run(
        "acknowledge", ours[0], "gone", "-m", "me too", "--operator", "alan"
    )
    assert (code, text("cli.unknown", keys="gone") in err) == (1, True)
    (first,) = [alert for alert in await client.alerts(failed[0]) if alert["key"] in ours]
    assert (first["acknowledged"]["by"], first["acknowledged"]["note"]) == (
        "grace",
        "I call the bank",
    )
    assert not set(ours) & await unacknowledged(client)
    code, _, err = await CommandLine(client).run(
        "acknowledge", "--cause", "there is no such cause", "-m", "again"
    )
    assert (code, text("cli.no-alert") in err) == (1, True)


@pytest.mark.proves("ALR-1", "OPR-3")
async def test_an_alert_is_closed_once_its_order_is_mended(client, stack):
    """Nobody has acknowledged it; whoever asks for causes is not told to, and the command line says the same."""
    order_id = new_order_id()
    await fault(client, "shipment", "reject", order_id)
    await submit(stack, order_id, workflow="shipment-error")
    (alert,) = await eventually(partial(client.alerts, order_id))
    assert (alert["closed"], alert["key"] in await unacknowledged(client)) == (False, True)
    await fault(client, "shipment", "none", order_id)
    await client.resubmit(order_id)
    await client.until(order_id, "Processed")
    (alert,) = await client.alerts(order_id)
    assert (alert["closed"], alert["key"] in await unacknowledged(client)) == (True, False)
    _, out, _ = await CommandLine(client).run("alerts", "--limit", "500")
    (line,) = [line for line in out.splitlines() if f"orders/{order_id}" in line]
    assert "  closed  OrderProcessing.OrderFailed  " in line


async def unacknowledged(client):
    _, answer = await client.request("GET", "/api/operator/alerts/causes")
    return {key for cause in answer["causes"] for key in cause["unacknowledged"]}


async def test_the_overview_says_what_is_open_and_who_leads(client, failed):
    """Counts of what waits, the last sweep with the supervisor that leads, the agents that work."""
    await client.until(await client.place(), "Processed")

    async def swept():
        _, answer = await client.request("GET", "/api/operator/overview")
        assert answer["lastSweep"], answer
        assert answer["agents"], answer
        return answer

    answer = await eventually(swept)
    assert answer["openOrders"]["Error"]["count"] >= len(failed) - 1
    assert not answer["openOrders"]["Error"]["atLeast"]
    assert answer["lastSweep"]["recovered"] >= 0
    assert answer["lastSweep"]["instance"]
    assert {"payment", "inventory", "shipping"} >= {agent["agent"] for agent in answer["agents"]}


@pytest.mark.proves("OPR-2")
async def test_an_order_explains_itself_while_things_happen_to_it(client, stack):
    """The agent that is waited for, and until when; then the operator; then nobody."""
    order_id = new_order_id()
    await fault(client, "payment", "hang", order_id, latencyMs=800)
    await submit(stack, order_id, workflow="payment-short")

    async def explained(actor):
        status, explanation = await client.request(
            "GET", f"/api/operator/orders/{order_id}/explain"
        )
        assert status == 200, explanation
        assert explanation["nextActor"] == actor, explanation
        return explanation

    waits = await eventually(lambda: explained("agent"))
    order = await client.order(order_id)
    assert "payment" in waits["waitingFor"]
    assert (
        waits["nextAt"] <= order["steps"][0]["completeBy"]
        or order["steps"][0]["completeBy"] is None
    )
    assert "payment" in waits["ifNothingHappens"]
    called = await eventually(lambda: explained("operator"))
    assert called["nextAt"] is None
    offered = ("resubmit", "skip", "settle", "cancel")
    assert [action for action in offered if action not in called["waitingFor"]] == []
    await fault(client, "payment", "none", order_id)
    await client.resubmit(order_id)
    order = await client.until(order_id, "Processed")
    assert steps_of(order) == {"payment": "Completed"}
    over = await explained(None)
    assert (over["waitingFor"], over["nextAt"]) == (None, None)
