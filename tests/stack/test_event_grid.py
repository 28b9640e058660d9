"""The Event Grid stand-in, with the official publisher client."""

import base64
import json

import aiohttp
import pytest
from azure.core.credentials import AzureKeyCredential
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.core.messaging import CloudEvent
from azure.eventgrid.aio import EventGridPublisherClient
from azure.storage.queue.aio import QueueClient

from local.stack import Stack, StackConfig

EVENT = {"specversion": "1.0", "id": "1", "source": "test", "type": "Tested"}
SINGLE = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"


def publisher(stack, key=None, **options):
    key = key or stack.app_environment()["EVENT_GRID_KEY"]
    return EventGridPublisherClient(stack.event_grid_url, AzureKeyCredential(key), **options)


async def take_events(stack):
    """Empty the queue; return the events."""
    async with QueueClient.from_connection_string(stack.storage_connection_string, "operator-alerts") as queue:
        messages = [message async for message in queue.receive_messages(max_messages=32)]
        await queue.clear_messages()
    return [json.loads(base64.b64decode(message.content)) for message in messages]


async def post(stack, body, content_type=BATCH):
    headers = {"aeg-sas-key": stack.app_environment()["EVENT_GRID_KEY"], "Content-Type": content_type}
    async with aiohttp.ClientSession() as http, http.post(stack.event_grid_url, data=body, headers=headers) as answer:
        return answer.status, await answer.text()


async def test_each_published_event_becomes_a_message_of_its_own(parts):
    """As the deployed subscription delivers: base64, one CloudEvent in each message."""
    events = [CloudEvent(source="test", type="Tested", subject=f"orders/{n}", data={"n": n}) for n in range(3)]
    async with publisher(parts) as client:
        await client.send(events)
    delivered = await take_events(parts)
    assert sorted(event["data"]["n"] for event in delivered) == [0, 1, 2]
    assert {event["subject"] for event in delivered} == {"orders/0", "orders/1", "orders/2"}


async def test_a_single_event_is_taken_too(parts):
    """The format without the array."""
    assert (await post(parts, json.dumps(EVENT), SINGLE))[0] == 200
    assert await take_events(parts) == [EVENT]


async def test_a_wrong_key_is_refused(parts):
    """401, and nothing is delivered."""
    async with publisher(parts, key="wrong") as client:
        with pytest.raises(ClientAuthenticationError):
            await client.send(CloudEvent(source="test", type="Tested"))
    assert await take_events(parts) == []


@pytest.mark.parametrize(
    ("body", "content_type", "status", "reason"),
    [
        pytest.param("{", BATCH, 400, "no JSON", id="no JSON"),
        pytest.param("[1]", BATCH, 400, "lacks specversion, id, source, type", id="no object"),
        pytest.param(json.dumps([EVENT, EVENT | {"id": ""}]), BATCH, 400, "event 1 lacks id", id="no id"),
        pytest.param(json.dumps(EVENT), "text/plain", 400, "content type is text/plain", id="content type"),
        pytest.param(json.dumps(EVENT | {"data": "x" * 50_000}), SINGLE, 413, "48 KiB", id="too large"),
    ],
)
async def test_what_is_malformed_is_refused_with_the_reason(parts, body, content_type, status, reason):
    """Nothing of such a request is delivered, not even the events that are right."""
    answered, text = await post(parts, body, content_type)
    assert (answered, reason in text) == (status, True), text
    assert await take_events(parts) == []


async def test_an_outage_of_the_storage_loses_no_event(tmp_path):
    """While Azurite is away the publisher is told to try again; afterwards the event is delivered, once."""
    event = CloudEvent(source="test", type="Tested", data={})
    config = StackConfig.for_tests(tmp_path, hosts=0, in_memory=False)
    async with Stack(config) as stack, publisher(stack, retry_total=0) as client:
        await stack.stop_azurite()
        with pytest.raises(HttpResponseError) as raised:
            await client.send(event)
        assert raised.value.status_code == 503
        await stack.start_azurite()
        await client.send(event)
        assert [delivered["id"] for delivered in await take_events(stack)] == [event.id]
