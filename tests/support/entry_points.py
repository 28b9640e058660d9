"""The table of entry points: where a value of somebody else enters, and where it is read out again.

Each of `ENTRY_POINTS` takes the JSON of an object as a text, lets it pass through, and returns it
as JSON. Each of `TIME_ENTRY_POINTS` takes a time as a text and returns it. They raise
`InvalidError`, ValueError or `click.BadParameter` for what they refuse.

These walk over it: exact numbers (`tests/app/test_exact_numbers.py`), forms of JSON and times
(`tests/app/test_entry_points.py`). What applies to some rows alone has its own tests:

- encodings: the queues and HTTP (`tests/unit/engine/domain/test_encodings.py`);
- the same order: HTTP, which alone has keys for it, and submissions, whose ids are the key;
- a pause that is asked for: the answer of a service (`tests/data/inputs/service_answers.json`);
- partial work: bulk actions, copies, lists and the command line, which act on many orders;
- limits in characters and bytes: HTTP, the queues and rows, which have them.

Elsewhere no JSON enters: settings and CSV are texts (`tests/data/inputs`), and the console writes
what is typed with JavaScript (`operations/console/tests/answers.test.js`, `tests/browser`).
"""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import click
from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from engine.azure.answers import json_object
from engine.domain.errors import InvalidError
from engine.domain.exact_json import write
from engine.domain.messages import (
    AgentRequest,
    CompletedReply,
    Submission,
    decode,
    decode_reply,
    faults_of,
    payload_in,
)
from engine.http.external_events import EventBody
from engine.http.public_api.rules import Beginning
from engine.http.responses import ok
from engine.runtime.external_events import QueuedEvent
from engine.storage.orders import ORDER
from operations.api.external_events import ExtendRequest
from operations.api.requests import BulkRequest, OrdersPage, PauseRequest, RestoreRequest
from operations.cli.commands.options import given_time
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


def _in_query(model, field, time):
    try:
        return getattr(model.model_validate_strings({to_camel(field): time}), field)
    except ValidationError as error:
        raise InvalidError(faults_of(error)) from None


def _in_body(model, field, time, **more):
    found = decode(
        model, json.dumps({"operator": "grace", "note": "n", to_camel(field): time, **more})
    )
    return getattr(found, field)


def _in_submission(time):
    own = {"schemaVersion": 1, "orderId": ORDER_ID}
    message = decode(Submission, json.dumps(own | {"placedAt": time, "notBefore": time}))
    assert message.placed_at == message.not_before
    return message.not_before


def _in_copy(time):
    line = {"table": "orders", "partition": "b00", "at": time, "rows": []}
    body = {"operator": "grace", "note": "n", "lines": [line]}
    return decode(RestoreRequest, json.dumps(body)).lines[0].at


TIME_ENTRY_POINTS = {
    "beginning of an order": partial(_in_query, Beginning, "not_before"),
    "submission": _in_submission,
    "filter of a list": partial(_in_query, OrdersPage, "since"),
    "pause of an agent": partial(_in_body, PauseRequest, "until"),
    "deadline of an event": partial(_in_body, ExtendRequest, "until"),
    "bulk action": partial(_in_body, BulkRequest, "until", action="resubmit"),
    "copy": _in_copy,
    "command line": lambda time: _in_body(PauseRequest, "until", given_time(time)),
}
"""Where a time of somebody else enters; a page's field is `engine/pages/tests/time_offsets.test.js`."""
OF_ORDERS = ("beginning of an order", "submission")
"""Those that begin an order: they refuse a time that nobody can mean."""

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
