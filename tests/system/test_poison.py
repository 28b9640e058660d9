"""Poison messages on the running stack: an operator sees them, puts them back, and they do what they were to do."""

import asyncio
import base64
import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from azure.core.exceptions import ResourceExistsError
from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient
from azure.storage.queue.aio import QueueClient
from client import DONE, events
from submitting import new_order_id
from waiting import eventually

from local.servicebus_config import queues

GRACE = {"operator": "grace", "note": "the cause is mended"}
OTHERS = ("payment-backup-", "status-")
"""Queues that this app does not read: of an agent that is switched off, and of those who submit orders."""
SOURCES = [
    "order-submissions",
    "operator-alerts",
    *(queue["name"] for queue in queues()["serviceBusQueues"] if not queue["name"].startswith(OTHERS)),
]
GIVEN_UP = "it failed too often"
"""What the list says of a message that the functions host moved there: the host gives no reason."""


class Poison:
    """The poison queues: filled as the app or the functions host fills them, emptied as an operator does."""

    def __init__(self, client, storage):
        self._client = client
        self._storage = storage

    async def keep(self, source, text):
        """Put text as it is into the poison queue of `source`; return the id by which it is known there."""
        async with QueueClient.from_connection_string(self._storage, f"{source}-poison") as queue:
            with suppress(ResourceExistsError):
                await queue.create_queue()
            return (await queue.send_message(text)).id

    async def keep_with_reason(self, source, body, **more):
        """Keep a message as the app does."""
        known = {"reason": "r", "receivedAt": "2026-01-31T08:15:00+00:00", "body": json.dumps(body)}
        return await self.keep(source, json.dumps(known | more))

    async def kept(self, source, body=None):
        """The messages of one queue by their ids."""
        status, answer = await self._client.request("GET", "/api/operator/poison")
        assert status == 200
        return {
            each["id"]: each for each in answer["messages"] if each["queue"] == source and body in (None, each["body"])
        }

    async def act(self, action, source, message_id, **options):
        path = f"/api/operator/poison/{source}/{message_id}/{action}"
        return (await self._client.request("POST", path, **({"json": GRACE} | options)))[0]


@pytest.fixture
def poison(client, stack):
    return Poison(client, stack.storage_connection_string)


@pytest.mark.proves("SUB-4", "FLT-6")
async def test_a_submission_that_the_host_gave_up_becomes_an_order(client, poison):
    """It lies there as the host left it, without our envelope; put back, it is processed, and lies there no more."""
    order_id = new_order_id()
    text = json.dumps(
        {
            "schemaVersion": 1,
            "orderId": order_id,
            "placedAt": "2026-01-31T08:15:00Z",
            "customer": {"name": "Ada", "email": "ada@example.com"},
            "items": [{"sku": "TEA-SENCHA", "quantity": 2, "unitPrice": "14.00"}],
        }
    )
    message_id = await poison.keep("order-submissions", text)
    shown = (await poison.kept("order-submissions"))[message_id]
    assert (shown["body"], shown["reason"]) == (text, GIVEN_UP)
    assert datetime.fromisoformat(shown["at"])
    assert await poison.act("redrive", "order-submissions", message_id) == 202
    await client.until(order_id, "Processed")
    assert await client.actions(order_id) == DONE
    assert message_id not in await poison.kept("order-submissions")
    assert await poison.act("redrive", "order-submissions", message_id) == 404


@pytest.mark.proves("SUB-4", "ALR-1")
async def test_an_alert_that_the_host_gave_up_reaches_the_operators(client, poison):
    """In base64, as Event Grid delivered it."""
    order_id = new_order_id()
    event = {
        "specversion": "1.0",
        "id": order_id,
        "source": "s",
        "type": "T",
        "subject": f"orders/{order_id}",
        "time": datetime.now(UTC).isoformat(),  # the newest are listed first
        "data": {},
    }
    message_id = await poison.keep("operator-alerts", base64.b64encode(json.dumps(event).encode()).decode())
    assert await poison.act("redrive", "operator-alerts", message_id) == 202
    await eventually(lambda: client.alerts(order_id))


@pytest.mark.proves("SUB-4", "FLT-6")
async def test_a_request_put_back_is_carried_out(client, poison):
    """The agent calls the service under the key that the request names."""
    order_id = new_order_id()
    request = {
        "schemaVersion": 1,
        "orderId": order_id,
        "step": "payment",
        "action": "do",
        "operation": "authorise",
        "attempt": 1,
        "idempotencyKey": f"{order_id}:payment",
        "issuedAt": datetime.now(UTC).isoformat(),
        "completeBy": (datetime.now(UTC) + timedelta(seconds=30)).isoformat(),
        "content": {"items": [{"sku": "TEA-SENCHA", "quantity": 1}]},
    }
    message_id = await poison.keep_with_reason("payment-requests", request, correlationId=order_id)
    assert await poison.act("redrive", "payment-requests", message_id) == 202

    async def was_called():
        return (await client.ledger(order_id))["effects"]

    (effect,) = await eventually(was_called)
    assert effect["idempotencyKey"] == f"{order_id}:payment"


@pytest.mark.proves("SUB-4", "SCH-6")
async def test_a_reply_put_back_is_known_by_what_it_names(client, poison):
    """It reaches the order that it answers, whose history says that it came too late."""
    order_id = await client.place()
    await client.until(order_id, "Processed")
    correlation = f"{order_id}:payment:1:do"
    named = {"orderId": order_id, "step": "payment", "attempt": 1, "action": "do"}
    named["completeBy"] = (datetime.now(UTC) + timedelta(seconds=30)).isoformat()
    message_id = await poison.keep_with_reason(
        "payment-responses", named | {"outcome": "failed", "reason": "no"}, correlationId=correlation
    )
    assert await poison.act("redrive", "payment-responses", message_id) == 202

    async def was_refused():
        return "reply-refused" in events(await client.order(order_id))

    await eventually(was_refused)
    assert (await client.order(order_id))["processState"] == "Processed"


@pytest.mark.proves("SUB-4", "FLT-6")
async def test_every_source_has_its_poison_put_back_and_dropped(client, poison):
    """Whatever queue it came from: put back it is tried again, and kept anew with a reason; dropped it is gone."""

    async def there_and_back(source):
        body = f"neither here nor there: {source}"
        first = await poison.keep(source, body)
        assert (await poison.kept(source, body))[first]["reason"] == GIVEN_UP
        assert await poison.act("redrive", source, first) == 202

        async def kept_anew():
            return [each for each in (await poison.kept(source, body)).values() if each["id"] != first]

        (again,) = await eventually(kept_anew)
        assert again["reason"] not in ("", GIVEN_UP)
        assert await poison.act("drop", source, again["id"]) == 202
        assert await poison.kept(source, body) == {}

    await asyncio.gather(*map(there_and_back, SOURCES))


async def test_nothing_of_it_works_without_key_or_reason(client, poison):
    """And what is unknown is unknown."""
    message_id = await poison.keep("order-submissions", "stays")
    assert (await client.request("GET", "/api/operator/poison", key=False))[0] == 401
    for action in ("redrive", "drop"):
        assert await poison.act(action, "order-submissions", message_id, key=False) == 401
        for body in ({}, {"operator": "grace"}, GRACE | {"more": 1}, GRACE | {"note": ""}):
            assert await poison.act(action, "order-submissions", message_id, json=body) == 400
        for source, unknown in (("order-submissions", "nothing"), ("status-x", message_id), ("leases", message_id)):
            assert await poison.act(action, source, unknown) == 404
    assert message_id in await poison.kept("order-submissions")
    assert await poison.act("drop", "order-submissions", message_id) == 202


@pytest.mark.proves("SUB-4")
async def test_two_operators_at_once_put_a_message_back_once(poison):
    """One of them is told that there is no such message any more; a third who drops another is not held up."""
    body = "wanted by two"
    message_id, other = [await poison.keep("order-submissions", text) for text in (body, "wanted by one")]
    answers = await asyncio.gather(
        *(poison.act("redrive", "order-submissions", message_id) for _ in range(2)),
        poison.act("drop", "order-submissions", other),
    )
    assert sorted(answers[:2]) == [202, 404]
    assert answers[2] == 202

    async def kept_anew():
        return await poison.kept("order-submissions", body)

    (again,) = await eventually(kept_anew)
    assert await poison.act("drop", "order-submissions", again) == 202


@pytest.mark.proves("SUB-4", "FLT-6")
async def test_bytes_that_are_no_text_are_shown_and_dropped(poison, stack):
    """Put back they would not be the same message; so that is refused. Long ones hold nothing up either."""
    bodies = {b"\xff\x00here": "\\xff\x00here", b"\x00" * 100_000: "\x00" * 4000}
    async with (
        ServiceBusClient.from_connection_string(stack.app_environment()["ServiceBus"]) as bus,
        bus.get_queue_sender("payment-responses") as sender,
    ):
        for body in bodies:
            await sender.send_messages(ServiceBusMessage(body))

    async def all_kept():
        kept = {each["body"]: each for each in (await poison.kept("payment-responses")).values()}
        return kept if kept.keys() >= set(bodies.values()) else None

    kept = await eventually(all_kept)
    no_text, long = (kept[shown]["id"] for shown in bodies.values())
    assert await poison.act("redrive", "payment-responses", no_text) == 409
    assert no_text in await poison.kept("payment-responses")
    for message_id in (no_text, long):
        assert await poison.act("drop", "payment-responses", message_id) == 202
