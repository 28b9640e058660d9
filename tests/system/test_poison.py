"""Poison messages on the running stack: an operator sees them, puts them back, and they do what they were to do."""

import asyncio
import base64
import json
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import uuid4

import pytest
from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient

from engine.azure.connections import Connections
from engine.azure.settings import Settings
from engine.azure.tables.transactions import TableTransactions
from engine.domain.messages import bus_queues
from engine.storage.poison import Arrival, PoisonStore, id_of
from engine.words.causes import words_of
from functions_alone.tests.support.waiting import eventually
from operations.api.triggers import given_up
from shop.business import SHOP
from tests.support.builders import refusal
from tests.support.client import DONE, events
from tests.support.giving_up import DESCRIPTION, give_up
from tests.support.inspection import poisoned
from tests.support.submitting import new_order_id

GRACE = {"operator": "grace", "note": "the cause is mended"}
SOURCES = [
    "order-submissions",
    "operator-alerts",
    *bus_queues([agent.name for agent in SHOP.agents if not agent.optional]),
]
"""Queues that this app reads: not those of an agent that is switched off."""


class Poison:
    """The poison messages: kept as the app keeps them, settled as an operator does."""

    def __init__(self, client, store):
        self._client = client
        self._store = store

    async def keep(self, source, body, correlation_id=None):
        """Keep a message of this queue; return its id."""
        text = body if isinstance(body, str) else json.dumps(body)
        arrival = Arrival(at=datetime.now(UTC), number=str(uuid4()))
        await self._store.put(source, text.encode(), refusal("r"), arrival, correlation_id)
        return id_of(source, text.encode(), arrival)

    async def kept(self, source, body=None):
        """The messages of one queue by their ids."""
        status, answer = await self._client.request("GET", "/api/operator/poison?limit=500")
        assert status == 200
        return {
            message["id"]: message
            for message in answer["messages"]
            if message["queue"] == source and body in (None, message["body"])
        }

    async def kept_anew(self, source, body, *but):
        """The message of this body that comes to be kept, and is none of these."""

        async def found():
            return [
                letter
                for letter in (await self.kept(source, body)).values()
                if letter["id"] not in but
            ]

        (message,) = await eventually(found)
        return message

    async def act(self, action, source, message_id, **options):
        path = f"/api/operator/poison/{source}/{message_id}/{action}"
        return (await self._client.request("POST", path, **({"json": GRACE} | options)))[0]


@pytest.fixture
async def poison(client, stack):
    connections = Connections(Settings.model_validate(stack.app_environment()))
    yield Poison(client, PoisonStore(TableTransactions(partial(connections.table, "poison"))))
    await connections.close()


def submission(order_id):
    """A message that makes an order."""
    return {
        "schemaVersion": 1,
        "orderId": order_id,
        "placedAt": "2026-01-31T08:15:00Z",
        "customer": {"name": "Ada", "email": "ada@example.com"},
        "items": [{"sku": "TEA-SENCHA", "quantity": 2, "unitPrice": "14.00"}],
    }


@pytest.mark.proves("SUB-4", "FLT-6")
async def test_a_submission_that_the_host_gave_up_becomes_an_order(client, stack, poison):
    """It is taken over from where the host put it; put back, it is processed, and kept no more."""
    order_id = new_order_id()
    text = json.dumps(submission(order_id))
    await give_up(stack, "order-submissions", text)
    shown = await poison.kept_anew("order-submissions", text)
    message_id = shown["id"]
    assert shown["reason"] == words_of(given_up(""))
    assert datetime.fromisoformat(shown["at"])
    assert await poison.act("redrive", "order-submissions", message_id) == 202
    await client.until(order_id, "Processed")
    assert await client.actions(order_id) == DONE
    assert message_id not in await poison.kept("order-submissions")
    assert await poison.act("redrive", "order-submissions", message_id) == 404


@pytest.mark.proves("SUB-4", "ALR-1")
async def test_an_alert_that_the_host_gave_up_reaches_the_operators(client, stack, poison):
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
    text = json.dumps(event)
    await give_up(stack, "operator-alerts", base64.b64encode(text.encode()).decode())
    message = await poison.kept_anew("operator-alerts", text)
    assert await poison.act("redrive", "operator-alerts", message["id"]) == 202
    await eventually(lambda: client.alerts(order_id))


@pytest.mark.proves("FLT-6")
async def test_what_service_bus_gave_up_is_kept_with_its_reason(stack, poison):
    """It does not stay in the dead-letter queue; what the app itself could not read stands beside it."""
    text = f"given up {uuid4()}"
    await give_up(stack, "payment-responses", text)

    async def was_taken_over():
        kept = (await poison.kept("payment-responses", text)).values()
        return [record for record in kept if record["reason"].startswith(words_of(given_up("")))]

    (message,) = await eventually(was_taken_over)
    assert message["reason"] == words_of(given_up(f"MaxDeliveryCountExceeded, {DESCRIPTION}"))
    assert await poison.act("drop", "payment-responses", message["id"]) == 202
    assert not [line for line in await poisoned(stack) if line == f"payment-responses: {text}"]


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
    message_id = await poison.keep("payment-requests", request, order_id)
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
    message_id = await poison.keep(
        "payment-responses",
        named | {"outcome": "failed", "origin": "service", "detail": "no"},
        correlation,
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
        assert await poison.act("redrive", source, first) == 202
        again = await poison.kept_anew(source, body, first)
        assert again["reason"] not in ("", "r")
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
        for source, unknown in (
            ("order-submissions", "nothing"),
            ("status-x", message_id),
            ("leases", message_id),
        ):
            assert await poison.act(action, source, unknown) == 404
    assert message_id in await poison.kept("order-submissions")
    assert await poison.act("drop", "order-submissions", message_id) == 202


@pytest.mark.proves("SUB-4", "SUB-3")
async def test_what_two_operators_put_back_at_once_is_done_once(client, poison):
    """Both may send it, or one finds that it is gone: there is one order, and each of its effects once."""
    order_id = new_order_id()
    message_id = await poison.keep("order-submissions", submission(order_id))
    answers = await asyncio.gather(
        *(poison.act("redrive", "order-submissions", message_id) for _ in range(2))
    )
    assert 202 in answers
    assert set(answers) <= {202, 404}
    await client.until(order_id, "Processed")
    assert await client.actions(order_id) == DONE
    assert events(await client.order(order_id)).count("submitted") == 1
    assert message_id not in await poison.kept("order-submissions")


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
        kept = {
            message["body"]: message
            for message in (await poison.kept("payment-responses")).values()
        }
        return kept if kept.keys() >= set(bodies.values()) else None

    kept = await eventually(all_kept)
    no_text, long = (kept[shown]["id"] for shown in bodies.values())
    assert await poison.act("redrive", "payment-responses", no_text) == 409
    assert no_text in await poison.kept("payment-responses")
    for message_id in (no_text, long):
        assert await poison.act("drop", "payment-responses", message_id) == 202
