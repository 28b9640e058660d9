"""Whatever comes in, over HTTP or over the queues: a clear error, nothing lost, and everybody else goes on."""

import asyncio
import io
import json
from datetime import UTC, datetime, timedelta
from functools import partial
from urllib.parse import quote

import pytest
from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient
from azure.storage.queue.aio import QueueClient

from engine.domain.causes import Cause, Code
from engine.domain.encodings import readable
from engine.words.catalogue import text
from engine.words.causes import words_of
from functions_alone.tests.support.waiting import eventually
from tests.support.client import events
from tests.support.failing import fault
from tests.support.submitting import new_order_id
from tests.support.submitting import submit as submit_orders

GOOD = {
    "customer": {"name": "Ada", "email": "ada@example.com"},
    "items": [{"sku": "TEA-SENCHA", "quantity": 1}],
}
HOSTILE = [
    "\x00",
    "a\u202eb",
    "'; DROP TABLE orders; --",
    "<script>alert(1)</script>",
    "../../etc/passwd",
    "b00|state",
    "\U0001f375" * 300,
    "x" * 10_000,
    "%00",
    "{{7*7}}",
    " ",
    "A\x85",
    "A\ufffe",
    "A\uffff",
]


def order(**changes):
    return json.dumps(GOOD | changes)


def item(**changes):
    return order(items=[GOOD["items"][0] | changes])


BAD_BODIES = {
    "nothing": ("", ["body"]),
    "no json": ("{", ["body"]),
    "not utf-8": (b"\xff\xfe{}", ["body"]),
    "a list": ("[]", ["body"]),
    "null": ("null", ["body"]),
    "all is missing": ("{}", ["customer", "items"]),
    "wrong types": (order(customer=7, items="x"), ["customer", "items"]),
    "a priority, which is the operators'": (order(priority="high"), ["priority"]),
    "unknown fields": (order(admin=True, replyTo="status-x"), ["admin", "replyTo"]),
    "an unknown field within": (item(unitPrice="0.01"), ["items.0.unitPrice"]),
    "no items": (order(items=[]), ["items"]),
    "too many items": (order(items=GOOD["items"] * 51), ["items"]),
    "an unknown product": (item(sku="NO-SUCH-TEA"), ["items.0.sku"]),
    "quantity zero": (item(quantity=0), ["items.0.quantity"]),
    "quantity negative": (item(quantity=-1), ["items.0.quantity"]),
    "quantity huge": (item(quantity=10**30), ["items.0.quantity"]),
    "quantity a fraction": (item(quantity=0.5), ["items.0.quantity"]),
    "quantity a text": (item(quantity="1"), ["items.0.quantity"]),
    "quantity true": (item(quantity=True), ["items.0.quantity"]),
    "not a number": (item().replace('"quantity": 1', '"quantity": NaN'), ["items.0.quantity"]),
    "no e-mail": (order(customer={"name": "Ada", "email": "ada"}), ["customer.email"]),
    "a name that nobody sees": (
        order(customer={"name": " \u200b", "email": "a@b"}),
        ["customer.name"],
    ),
    "two faults": (order(customer={"name": ""}), ["customer.name", "customer.email"]),
    "a lone surrogate": (
        '{"customer": {"name": "\\ud800", "email": "a@b"}, "items": []}',
        ["body"],
    ),
    "a megabyte": (order(customer={"name": "x" * 2**20, "email": "a@b"}), ["body"]),
    "deeply nested": ("[" * 100_000, ["body"]),
    "a deeply nested field": (
        order(x=0).replace('"x": 0', f'"x": {"[" * 5000}{"]" * 5000}'),
        ["body"],
    ),
}


@pytest.mark.parametrize("label", BAD_BODIES)
async def test_a_bad_order_is_answered_with_all_its_faults(client, label):
    """400 with problem details that name the place of each fault."""
    body, places = BAD_BODIES[label]
    data = io.BytesIO(body if isinstance(body, bytes) else body.encode())
    async with client.http.post(f"{client.url}/api/orders", data=data) as response:
        assert response.status == 400
        assert response.content_type == "application/problem+json"
        problem = await response.json(content_type=None)
    assert sorted(fault.partition(":")[0] for fault in problem["faults"]) == sorted(places), problem
    assert len(json.dumps(problem)) < 20_000


async def test_an_order_in_chunks_is_answered_411(client):
    """Azure's host hands over none of it: the caller learns why, and the connection goes on."""

    async def chunks():
        yield order().encode()

    for data, status in ((chunks(), 411), (order(), 202)):
        async with client.http.post(f"{client.url}/api/orders", data=data) as response:
            assert ("Transfer-Encoding" in response.request_info.headers) == (status == 411)
            assert response.status == status
            assert ("Content-Length" in await response.text()) == (status == 411)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_hostile_text_does_no_harm_in_any_field(client, text):
    """It is refused, or comes to rest as mere text: in bodies, headers, paths and queries."""
    bodies = [
        order(customer={"name": text, "email": "a@b"}),
        order(customer={"name": "Ada", "email": f"{text}@b"}),
        order(priority=text),
        item(sku=text),
        order(**{text: 1}),
    ]
    for body in bodies:
        async with client.http.post(f"{client.url}/api/orders", data=body) as response:
            assert response.status in (202, 400)
    for path in (
        "/api/orders/{}",
        "/api/operator/orders/{}",
        "/api/operator/poison/{}/x/drop",
        "/simulator/{}/ledger",
    ):
        async with client.http.get(
            client.url + path.format(quoted(text)), headers=client.key
        ) as response:
            assert response.status in (400, 404, 414), path
    for name in ("state", "limit", "continuation"):
        query = f"/api/operator/orders?{name}={quoted(text)}"
        async with client.http.get(client.url + query, headers=client.key) as response:
            assert response.status in (200, 400, 414), name
    body = {"operator": text, "note": text}
    status, _ = await client.request(
        "POST", "/api/operator/orders/b00-01JCX4T9Q8ZK7M2N5P6R3S1V0W/resubmit", json=body
    )
    assert status in (400, 404)


@pytest.mark.proves("SUB-4")
@pytest.mark.parametrize("field", ["name", "email"])
async def test_a_character_that_no_queue_can_hold_stops_no_order(client, field):
    """It is the customer's fault, by name; the orders after it are recorded."""
    customer = GOOD["customer"] | {field: "a\uffff@b"}
    for ensure_ascii in (True, False):
        body = json.dumps(GOOD | {"customer": customer}, ensure_ascii=ensure_ascii).encode()
        async with client.http.post(f"{client.url}/api/orders", data=body) as response:
            assert response.status == 400
            assert f"customer.{field}" in (await response.json(content_type=None))["faults"][0]
    for order_id in [await client.place() for _ in range(3)]:
        await client.until(order_id, "Processed")


def quoted(text: str) -> str:
    return quote(text, safe="")


KEYS = {
    "long": "x" * 5000,
    "short": "4711",
    "space": "a b" * 9,
    "not ascii": "ключ" * 9,
    "quote": "'; --" * 9,
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
async def test_any_idempotency_key_is_a_key_or_a_fault(client, key):
    """The same key stands for the same order, whatever it looks like."""
    answers = [
        await client.request(
            "POST", "/api/orders", key=False, json=GOOD, headers={"Idempotency-Key": key}
        )
        for _ in range(2)
    ]
    assert {status for status, _ in answers} in ({202}, {400})
    assert answers[0] == answers[1]


def submission(**changes):
    message = {
        "schemaVersion": 1,
        "orderId": "b00-01JCX4T9Q8ZK7M2N5P6R3S1V0W",
        "placedAt": "2026-01-31T08:15:00Z",
        "customer": GOOD["customer"],
        "items": [{"sku": "TEA-SENCHA", "quantity": 1, "unitPrice": "14.00"}],
    }
    return json.dumps(message | changes)


BAD_SUBMISSIONS = {
    "no json": ("}{ no json", "Invalid JSON"),
    "base64": ("eyJzY2hlbWFWZXJzaW9uIjoxfQ==", "orderId: Field required"),
    "unknown schema": (submission(schemaVersion=2), "schemaVersion: Input should be 1"),
    "foreign order id": (
        submission(orderId="../b00|state"),
        "orderId: String should match pattern",
    ),
    "foreign bucket": (
        submission(orderId="b99-01JCX4T9Q8ZK7M2N5P6R3S1V0W"),
        text("fault.unknown-bucket", buckets=""),
    ),
    "unknown product": (
        submission(items=[{"sku": "X", "quantity": 1, "unitPrice": "1.00"}]),
        "no product X",
    ),
    "unknown workflow": (submission(workflow="other"), "there is no workflow other"),
    "foreign reply queue": (
        submission(replyTo="scheduler-requests"),
        "only queues whose names begin with status-",
    ),
    "unknown field": (submission(admin=True), "admin: Extra inputs are not permitted"),
}

NOBODY = "b00-01JCX4T9Q8ZK7M2N5P6R3S1V0W"
"""An order that nobody has placed."""


def reply(order_id, **changes):
    """A payment agent's answer."""
    named = {"orderId": order_id, "step": "payment", "attempt": 1, "action": "do"}
    content = {
        "outcome": "completed",
        "completeBy": (datetime.now(UTC) + timedelta(minutes=5)).isoformat(),
    }
    return json.dumps({"schemaVersion": 2, **named, **content, **changes})


BAD_MESSAGES = {
    "wake-up: no json": ("scheduler-requests", "no json", None, "Invalid JSON"),
    "wake-up: unknown schema": (
        "scheduler-requests",
        '{"schemaVersion":0,"orderId":"x"}',
        None,
        "schemaVersion",
    ),
    "request: garbage": ("payment-requests", "[1,2]", None, "body: "),
    "reply: to nothing": (
        "payment-responses",
        '{"outcome":"completed"}',
        f"{NOBODY}:payment:1:do",
        "orderId: Field req",
    ),
    "reply: odd id": ("payment-responses", reply(NOBODY), "a:b:c:d", "correlation id"),
    "reply: other id": (
        "payment-responses",
        reply(NOBODY, attempt=2),
        f"{NOBODY}:payment:1:do",
        "correlation id",
    ),
    "reply: unknown outcome": (
        "payment-responses",
        reply(NOBODY, outcome="not one"),
        f"{NOBODY}:payment:1:do",
        "outcome",
    ),
}


@pytest.mark.proves("SUB-3", "SUB-4", "FLT-6")
async def test_bad_messages_are_kept_with_their_reasons_and_hold_nothing_up(client, stack):
    """Each is kept apart, and nothing else is; all orders around them are processed, and none is overwritten."""
    _, answer = await client.request("GET", "/api/operator/poison")
    earlier = {
        (message["queue"], message["body"]): message["reason"] for message in answer["messages"]
    }
    before = [await client.place() for _ in range(3)]
    recorded = await client.until(before[0], "Processed")
    contradicting = submission(
        orderId=before[0], customer={"name": "Mallory", "email": "m@example.com"}
    )
    submissions = dict(BAD_SUBMISSIONS.values()) | {contradicting: "with different content"}
    await submit(stack, submissions)
    await send(
        stack, [(queue, body, correlation) for queue, body, correlation, _ in BAD_MESSAGES.values()]
    )
    harmless = [
        ("scheduler-requests", json.dumps({"orderId": NOBODY, "later": "{"}), None),
        ("payment-responses", reply(NOBODY), f"{NOBODY}:payment:1:do"),
        ("payment-responses", reply(NOBODY), None),
        (
            "payment-responses",
            reply(before[0], attempt=99, later="x"),
            f"{before[0]}:payment:99:do",
        ),
        (
            "payment-responses",
            reply(before[0], step="nothing", action="undo"),
            f"{before[0]}:nothing:1:undo",
        ),
    ]
    await send(stack, harmless)
    after = [await client.place() for _ in range(3)]
    shown = {readable(body.encode()): reason for body, reason in submissions.items()}
    wanted = {("order-submissions", body): reason for body, reason in shown.items()}
    wanted |= {(queue, body): reason for queue, body, _, reason in BAD_MESSAGES.values()}

    async def kept_now():
        _, answer = await client.request("GET", "/api/operator/poison")
        return {
            (message["queue"], message["body"]): message["reason"] for message in answer["messages"]
        }

    async def all_are_kept():
        kept = await kept_now()
        assert kept.keys() >= wanted.keys(), wanted.keys() - kept.keys()
        return kept

    kept = await eventually(all_are_kept)
    for place, reason in wanted.items():
        assert reason in kept[place], place
    for order_id in [*before, *after]:
        await client.until(order_id, "Processed")
    assert (
        kept.keys() - earlier.keys() == (await kept_now()).keys() - earlier.keys() == wanted.keys()
    )
    order = await client.order(before[0])
    assert order["payload"] == recorded["payload"]
    assert "submission-refused" in events(order)
    await eventually(partial(alerts_of_refusals, client, len(submissions)))


@pytest.mark.proves("FLT-12")
async def test_what_a_newer_version_sent_comes_again_before_it_is_kept(client, stack):
    """It was put on its queue anew, as it was, until its time was over."""
    sent = datetime.now(UTC)
    submitted = submission(orderId=new_order_id(), placedAt=sent.isoformat(), priority="urgent")
    replied = reply(NOBODY, outcome="partly", completeBy=(sent + timedelta(seconds=4)).isoformat())
    await submit(stack, [submitted])
    await send(stack, [("payment-responses", replied, None)])

    async def both_are_kept():
        _, answer = await client.request("GET", "/api/operator/poison")
        kept = {message["body"]: message for message in answer["messages"]}
        assert kept.keys() >= {submitted, replied}
        return kept[submitted], kept[replied]

    kept = await eventually(both_are_kept)
    assert ["priority" in kept[0]["reason"], "outcome" in kept[1]["reason"]] == [True, True]
    arrived = [datetime.fromisoformat(message["at"]) for message in kept]
    assert [at - sent >= timedelta(seconds=1) for at in arrived] == [True, True]


@pytest.mark.proves("SCH-6", "FLT-6")
async def test_a_stranger_among_replies_costs_no_order_its_own_answer(client, stack):
    """It has no id, so Azure's host shows it the next one's: each order gets its own answer, and it is kept apart."""
    attempts = await under_way(client, stack, 3)
    orders = list(attempts)
    stranger = json.dumps({"outcome": "failed", "reason": f"a stranger beside {orders[0]}"})
    replies = [
        (
            reply(order_id, attempt=attempt, result={"reference": f"of {order_id}"}),
            f"{order_id}:payment:{attempt}:do",
        )
        for order_id, attempt in attempts.items()
    ]
    await send_as_batch(stack, "payment-responses", [(stranger, None), *replies])
    for order_id in orders:
        order = await client.until(order_id, "Processed")
        (step,) = order["steps"]
        assert step["result"] == {"reference": f"of {order_id}"}
    _, answer = await client.request("GET", "/api/operator/poison")
    (reason,) = [message["reason"] for message in answer["messages"] if message["body"] == stranger]
    assert "orderId: Field required" in reason


@pytest.mark.proves("SCH-6")
async def test_a_reply_over_the_queue_of_another_agent_changes_nothing(client, stack):
    """Who may send to one agent's queue speaks for no other: the step runs on until its own agent answers."""
    ((order_id, attempt),) = (await under_way(client, stack, 1)).items()
    correlation = f"{order_id}:payment:{attempt}:do"
    await send(stack, [("shipping-responses", reply(order_id, attempt=attempt), correlation)])

    async def was_refused():
        order = await client.order(order_id)
        return order if "reply-refused" in events(order) else None

    order = await eventually(was_refused)
    assert [step["state"] for step in order["steps"]] == ["Running"]
    facts = {"step": "payment", "attempt": attempt, "agent": "shipping", "expected": "payment"}
    assert words_of(Cause(Code.REPLY_FROM_OTHER_AGENT, facts)) in order["history"][-1]["detail"]
    await send(stack, [("payment-responses", reply(order_id, attempt=attempt), correlation)])
    await client.until(order_id, "Processed")


async def under_way(client, stack, count):
    """Return orders whose payment hangs, each with the number of its attempt."""
    orders = [new_order_id() for _ in range(count)]
    for order_id in orders:
        await fault(client, "payment", "hang", order_id)
    await submit_orders(stack, *orders, workflow="payment-only")
    return {
        order_id: await eventually(partial(attempt_under_way, client, order_id))
        for order_id in orders
    }


async def attempt_under_way(client, order_id):
    """Return the number of the payment's attempt once it has begun."""
    order = await client.order(order_id)
    (step,) = order["steps"] if order else [{"state": None}]
    return step["attempts"] if step["state"] == "Running" else None


async def alerts_of_refusals(client, count):
    """Whether an alert has come for each."""
    _, answer = await client.request("GET", "/api/operator/alerts")
    alerts = [
        alert for alert in answer["alerts"] if alert["type"] == "OrderProcessing.SubmissionRejected"
    ]
    assert len(alerts) >= count, alerts
    return alerts


async def submit(stack, bodies):
    async with QueueClient.from_connection_string(
        stack.storage_connection_string, "order-submissions"
    ) as queue:
        await asyncio.gather(*map(queue.send_message, bodies))


async def send(stack, messages):
    async with ServiceBusClient.from_connection_string(
        stack.app_environment()["ServiceBus"]
    ) as bus:
        for name, body, correlation in messages:
            async with bus.get_queue_sender(name) as sender:
                await sender.send_messages(ServiceBusMessage(body, correlation_id=correlation))


async def send_as_batch(stack, name, messages):
    async with (
        ServiceBusClient.from_connection_string(stack.app_environment()["ServiceBus"]) as bus,
        bus.get_queue_sender(name) as sender,
    ):
        await sender.send_messages(
            [
                ServiceBusMessage(body, correlation_id=correlation_id)
                for body, correlation_id in messages
            ]
        )
