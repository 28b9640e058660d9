"""The Event Grid stand-in, with the official publisher client."""

import json

import aiohttp
import pytest
from azure.core.credentials import AzureKeyCredential
from azure.core.exceptions import ClientAuthenticationError
from azure.core.messaging import CloudEvent
from azure.eventgrid.aio import EventGridPublisherClient

from functions_alone.tests.support.delivered_events import take_events

EVENT = {"specversion": "1.0", "id": "1", "source": "test", "type": "Tested"}
SINGLE = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"


def publisher(stack, key=None):
    key = key or stack.config.topic.key
    return EventGridPublisherClient(stack.event_grid_url, AzureKeyCredential(key))


async def post(stack, body, content_type=BATCH):
    headers = {
        "aeg-sas-key": stack.config.topic.key,
        "Content-Type": content_type,
    }
    async with (
        aiohttp.ClientSession() as http,
        http.post(stack.event_grid_url, data=body, headers=headers) as answer,
    ):
        return answer.status, await answer.text()


async def test_every_published_event_becomes_a_message_of_its_own(services):
    """As the deployed subscription delivers: base64, one CloudEvent in each message."""
    events = [
        CloudEvent(source="test", type="Tested", subject=f"things/{n}", data={"n": n})
        for n in range(3)
    ]
    async with publisher(services) as client:
        await client.send(events)
    delivered = await take_events(services)
    assert sorted(event["data"]["n"] for event in delivered) == [0, 1, 2]
    assert {event["subject"] for event in delivered} == {"things/0", "things/1", "things/2"}


async def test_a_single_event_is_taken_too(services):
    """The format without the array."""
    assert (await post(services, json.dumps(EVENT), SINGLE))[0] == 200
    assert await take_events(services) == [EVENT]


async def test_a_wrong_key_is_refused(services):
    """401, and nothing is delivered."""
    async with publisher(services, key="wrong") as client:
        with pytest.raises(ClientAuthenticationError):
            await client.send(CloudEvent(source="test", type="Tested"))
    assert await take_events(services) == []


@pytest.mark.parametrize(
    ("body", "content_type", "status", "reason"),
    [
        pytest.param("{", BATCH, 400, "not JSON", id="no JSON"),
        pytest.param("[1]", BATCH, 400, "lacks specversion, id, source, type", id="no object"),
        pytest.param(
            json.dumps([EVENT, EVENT | {"id": ""}]), BATCH, 400, "event 1 lacks id", id="no id"
        ),
        pytest.param(
            json.dumps(EVENT), "text/plain", 400, "content type is text/plain", id="content type"
        ),
        pytest.param(
            json.dumps(EVENT | {"data": "x" * 50_000}), SINGLE, 413, "48 KiB", id="too large"
        ),
    ],
)
async def test_what_is_malformed_is_refused_with_the_reason(
    services, body, content_type, status, reason
):
    """Nothing of such a request is delivered, not even the events that are right."""
    answered, text = await post(services, body, content_type)
    assert (answered, reason in text) == (status, True), text
    assert await take_events(services) == []
