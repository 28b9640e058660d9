"""The one table of entry points: where JSON of somebody else enters, and where it is read out again.

Each takes the JSON of an object as a text, lets it pass through, and returns it as JSON. It raises
`InvalidError`, ValueError or `click.BadParameter` for what it refuses.

Elsewhere no JSON enters: settings and CSV are texts (`tests/data/inputs`), and the console writes
what is typed with JavaScript (`operations/console/tests/answers.test.js`, `tests/browser`).
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import click

from engine.azure.answers import json_object
from engine.domain.errors import InvalidError
from engine.domain.exact_json import write
from engine.domain.messages import (
    AgentRequest,
    CompletedReply,
    Submission,
    decode,
    decode_reply,
    payload_in,
)
from engine.http.external_events import EventBody
from engine.http.responses import ok
from engine.runtime.external_events import QueuedEvent
from engine.storage.orders import ORDER
from operations.api.requests import BulkRequest, RestoreRequest
from operations.cli.commands.options import json_object as typed
from tests.support.builders import ORDER_ID, orders

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ATTEMPT = {"order_id": ORDER_ID, "step": "pay", "action": "do", "attempt": 1, "complete_by": NOW}


def with_fields(**fields):
    """JSON with these fields; a text is JSON."""
    return "{" + ",".join(f'"{name}":{value}' for name, value in fields.items()) + "}"


def _http(text):
    answer = decode(EventBody, with_fields(answer=text)).answer
    return ok({"payload": answer}).get_body()[len('{"payload": ') : -1]


def _storage_queue(text):
    own = with_fields(schemaVersion=1, orderId=f'"{ORDER_ID}"', placedAt='"2026-01-01T00:00:00.5Z"')
    message = decode(Submission, f"{own[:-1]},{text[1:]}")
    again = message.to_json().encode()
    assert decode(Submission, again).payload == message.payload == payload_in(again)
    return write(payload_in(again))


def _service_bus(text):
    message = decode(QueuedEvent, with_fields(orderId=f'"{ORDER_ID}"', step='"pay"', answer=text))
    later = message.schedule_redelivery(NOW)
    return write(decode(QueuedEvent, later.body).answer)


def _answer_of_a_service(text):
    found = json_object(text.encode())
    if found is None:
        raise ValueError("no object")
    reply = CompletedReply(**ATTEMPT, result=found)
    return write(decode_reply(reply.to_json()).result)


def _request_to_an_agent(text):
    request = AgentRequest(
        **ATTEMPT,
        operation="pay",
        idempotency_key="key",
        issued_at=NOW - timedelta(minutes=1),
        content=decode(EventBody, with_fields(answer=text)).answer,
    )
    return write(decode(AgentRequest, request.to_json()).content)


def _row(text):
    payload = decode(EventBody, with_fields(answer=text)).answer
    submitted = replace(orders.new(placed_at=NOW).submitted, payload=payload)
    return write(ORDER.record(ORDER.columns(submitted)).payload)


def _bulk_action(text):
    body = with_fields(operator='"grace"', note='"n"', action='"resubmit"', arguments=text)
    return write(decode(BulkRequest, body).arguments)


def _copy(text):
    line = with_fields(
        table='"orders"',
        partition='"b00"',
        at='"2026-01-01T00:00:00Z"',
        rows=f'[{{"RowKey":"a","Payload":{text}}}]',
    )
    body = with_fields(operator='"grace"', note='"n"', lines=f"[{line}]")
    return write(decode(RestoreRequest, body).lines[0].rows[0]["Payload"])


def _command_line(text):
    return write(typed(text))


ENTRY_POINTS = {
    "HTTP and callback": _http,
    "Storage Queue": _storage_queue,
    "Service Bus": _service_bus,
    "answer of a service": _answer_of_a_service,
    "request to an agent": _request_to_an_agent,
    "row": _row,
    "bulk action": _bulk_action,
    "copy": _copy,
    "command line": _command_line,
}

REFUSALS = (InvalidError, ValueError, click.BadParameter)
