"""The documented order example on the running system."""

import asyncio
import json
from datetime import datetime
from functools import partial
from uuid import uuid4

import pytest

from functions_alone.tests.support.waiting import eventually
from scheduler.service import WAKE_UP_TIME
from tests.support.client import DONE, claims_and_recoveries_alternate, events
from tests.support.failing import fault
from tests.support.submitting import new_order_id, submit


async def placed_to_fail(client, stack, mode, workflow, **more):
    """An order that meets this fault at its payment."""
    order_id = new_order_id()
    await fault(client, "payment", mode, order_id, **more)
    await submit(stack, order_id, workflow=workflow)
    return order_id


@pytest.mark.proves("SUB-1", "SUB-2", "SCH-5", "AGT-1")
async def test_an_order_is_processed_and_leaves_nothing_to_do(client):
    """Its rows have the documented names; the work index is empty."""
    order_id = await client.place()
    await client.until(order_id, "Processed")
    rows = await client.rows_of(order_id)
    state = rows[f"{order_id}|state"]
    assert state["OrderID"] == order_id
    assert state["ProcessState"] == "Processed"
    assert state["FailureCount"] == 0
    assert "LockedBy" not in state
    assert "CompleteBy" not in state
    assert json.loads(rows[f"{order_id}|order"]["Payload"])["customer"]["name"] == "Ada"
    _, step = json.loads(state["Steps"])[:2]
    assert (step["Name"], step["State"], step["Attempts"]) == ("payment", "Completed", 1)
    assert step["Effect"]["Key"]["Agent"] == "payment"
    assert len([key for key in rows if "|history|" in key]) == state["Version"] == 6
    assert await client.work_items_of(order_id) == []


@pytest.mark.proves("SUB-6")
async def test_a_new_order_is_claimed_before_any_poll_would_take_it(client):
    """By its wake-up: the quickest of five counts, since the machine may be busy with other things."""
    orders = await asyncio.gather(*(client.place() for _ in range(5)))
    waits = []
    for order_id in orders:
        order = await client.until(order_id, "Processed")
        at = {entry["event"]: datetime.fromisoformat(entry["at"]) for entry in order["history"]}
        waits.append(at["claimed"] - at["submitted"])
    assert min(waits) < WAKE_UP_TIME


async def test_the_customer_follows_the_order_without_seeing_internals(client):
    """The public status shows state and steps; an unknown order is 404 with a hint to ask again."""
    order_id = await client.place()
    await client.until(order_id, "Processed")
    status, view = await client.request("GET", f"/api/orders/{order_id}", key=False)
    assert status == 200
    assert set(view) == {
        "orderId",
        "processState",
        "placedAt",
        "updatedAt",
        "direction",
        "steps",
    }
    assert view["steps"] == [
        {"name": name, "state": "Completed"} for name in ("stock", "payment", "shipment", "capture")
    ]
    async with client.http.get(
        f"{client.url}/api/orders/b00-00000000000000000000000000"
    ) as response:
        assert (response.status, response.headers["Retry-After"]) == (404, "1")


@pytest.mark.proves("SUP-2", "SUP-3", "SCH-2", "SCH-7", "AGT-3", "AGT-4", "FLT-1", "FLT-4")
@pytest.mark.parametrize("mode", ["hang", "late"])
async def test_an_order_comes_back_by_itself_when_the_payment_hangs(client, stack, mode):
    """Processing until complete-by, Pending with one failure, claimed again, processed once the fault is off."""
    order_id = await placed_to_fail(client, stack, mode, "patient")
    first = await client.until(order_id, "Processing")
    assert first["lockedBy"]

    async def tried_again():
        order = await client.order(order_id)
        assert order["processState"] == "Processing", events(order)
        assert order["failureCount"] > first["failureCount"], events(order)
        return order

    recovered = await eventually(tried_again)
    assert recovered["completeBy"] > first["completeBy"]
    await fault(client, "payment", "none", order_id)
    order = await client.until(order_id, "Processed")
    turns = [event for event in events(order) if event not in {"step-completed", "unfinished"}]
    assert turns[:4] == ["submitted", "claimed", "recovered", "claimed"]
    assert claims_and_recoveries_alternate(order)
    assert await client.actions(order_id) == DONE
    assert (await client.ledger(order_id))["calls"] > 2


@pytest.mark.proves("SUP-3", "ALR-1", "OPR-1", "OPR-3", "OPR-6", "SCH-9")
async def test_a_lasting_fault_ends_in_error_with_one_alert_and_an_operator_resubmits(
    client, stack
):
    """At the threshold the order is Error, one alert came through Event Grid, and a resubmit brings it to its end."""
    order_id = await placed_to_fail(client, stack, "hang", "payment-error")
    order = await client.until(order_id, "Error", failures=2)
    assert order["lockedBy"] is None
    assert order["outcome"] == "failed"

    async def alerted():
        return await client.alerts(order_id)

    (alert,) = await eventually(alerted)
    assert alert["type"] == "OrderProcessing.OrderFailed"
    assert (alert["step"], alert["failureCount"], alert["actionRequired"]) == ("payment", 2, True)
    _, listed = await client.request("GET", "/api/operator/orders?state=Error&limit=500")
    assert order_id in [entry["orderId"] for entry in listed["orders"]]

    await fault(client, "payment", "none", order_id)
    assert (await client.resubmit(order_id))[0] == 202
    order = await client.until(order_id, "Processed")
    assert (order["failureCount"], order["outcome"], order["reason"]) == (0, None, None)
    (resubmitted,) = [entry for entry in order["history"] if entry["event"] == "resubmitted"]
    assert (resubmitted["actor"], resubmitted["detail"]) == (
        "operator/grace",
        "the provider is back",
    )
    assert claims_and_recoveries_alternate(order)
    assert await client.actions(order_id) == DONE
    assert len(await client.alerts(order_id)) == 1
    status, refusal = await client.resubmit(order_id)
    assert status == 409
    assert "Processed" in refusal["detail"]


@pytest.mark.proves("AGT-2")
async def test_a_flaky_service_is_tried_again_within_one_attempt(client, stack):
    """Transient faults are the agent's to retry: the order needs no recovery."""
    orders = [
        await placed_to_fail(client, stack, "flaky", "order", failureRate=1) for _ in range(3)
    ]
    for order_id in orders:
        await eventually(partial(tried_again, client, order_id))
        await fault(client, "payment", "none", order_id)
        order = await client.until(order_id, "Processed")
        assert order["failureCount"] == 0
        assert await client.actions(order_id) == DONE


async def tried_again(client, order_id):
    """Whether the payment service was called more than once for the order."""
    return (await client.ledger(order_id))["calls"] > 1


async def test_an_idempotency_key_stands_for_one_purchase(client):
    """Same key and content: the same order; same key and other content: 409."""
    purchase = {
        "customer": {"name": "Ada", "email": "a@example.com"},
        "items": [{"sku": "TEA-SENCHA", "quantity": 1}],
    }
    headers = {"Idempotency-Key": str(uuid4())}
    first = await client.request("POST", "/api/orders", key=False, json=purchase, headers=headers)
    again = await client.request("POST", "/api/orders", key=False, json=purchase, headers=headers)
    assert first == again
    assert first[0] == 202
    other = purchase | {"items": [{"sku": "TEA-SENCHA", "quantity": 2}]}
    status, _ = await client.request("POST", "/api/orders", key=False, json=other, headers=headers)
    assert status == 409


async def test_who_has_the_key_places_an_order_before_others(client):
    """Anybody else is told that there is no such field, or no such call."""
    purchase = {
        "customer": {"name": "Ada", "email": "a@example.com"},
        "items": [{"sku": "TEA-SENCHA", "quantity": 1}],
    }
    urgent = purchase | {"priority": "high"}
    status, answer = await client.request("POST", "/api/operator/orders", json=urgent)
    assert status == 202
    assert (await client.until(answer["orderId"], "Processed"))["priority"] == "high"
    refused = [
        await client.request("POST", f"/api/{path}", key=False, json=urgent) for path in PLACES
    ]
    assert [status for status, _ in refused] == [400, 401]


PLACES = ("orders", "operator/orders")


async def test_whoever_follows_an_order_never_hears_that_there_is_none(client):
    """From the moment it is accepted; what has not changed is not sent again."""
    order_id = await client.place()
    status, first = await client.request("GET", f"/api/orders/{order_id}", key=False)
    assert (status, first["orderId"]) == (200, order_id)
    await client.until(order_id, "Processed")
    async with client.http.get(f"{client.url}/api/orders/{order_id}") as answer:
        tag = answer.headers["ETag"]
    async with client.http.get(
        f"{client.url}/api/orders/{order_id}", headers={"If-None-Match": tag}
    ) as again:
        assert (again.status, await again.read()) == (304, b"")
