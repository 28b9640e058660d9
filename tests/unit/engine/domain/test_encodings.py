"""The encodings in which tools put a message on a queue (tests/data/inputs/encodings.json)."""

import base64
import gzip
import json
from functools import partial
from pathlib import Path

import pytest

from engine.domain.encodings import readable, unpacked
from engine.domain.errors import InvalidError
from engine.domain.messages import AnyAttempt, OrderReady, Submission, decode, decode_queued
from engine.runtime.external_events import QueuedEvent
from operations.alerts import rules as alerts

FORMS = json.loads(Path("tests/data/inputs/encodings.json").read_text())
CONTENT = {"name": "Müller"}
NOW = "2026-12-01T08:00:00Z"
ABOUT = {"schemaVersion": 1, "orderId": "b00-01K0000000000000000000000A"}
STEP = ABOUT | {"step": "ask"}
SUBMITTED = ABOUT | {"placedAt": NOW} | CONTENT
EVENT = {"specversion": "1.0", "id": "e", "type": "t", "time": NOW, "data": CONTENT}
ATTEMPT = STEP | {"action": "do", "attempt": 1, "completeBy": NOW}
QUEUES = {
    "order-submissions": (partial(decode_queued, Submission), SUBMITTED),
    "operator-alerts": (alerts.read, EVENT),
    "answers": (partial(decode_queued, QueuedEvent), STEP | {"answer": CONTENT}),
    "scheduler-requests": (partial(decode_queued, OrderReady), ABOUT | CONTENT),
    "requests of agents": (partial(decode_queued, AnyAttempt), ATTEMPT | CONTENT),
}


def written(content, *, codec="utf-8", mark="", blanks="", zipped=False, packed=None):
    """The bytes of a message in one of the forms of the table."""
    text = f"{mark}{blanks}{json.dumps(content, ensure_ascii=False)}"
    body = text.encode(codec)
    body = gzip.compress(body) if zipped else body
    if packed is None:
        return body
    return base64.encodebytes(body) if packed else base64.b64encode(body)


def check(read, content, form, expected):
    """Reading the form has the result that the table expects."""
    body = written(content, **FORMS[form]["made"])
    if expected == "accepted":
        assert read(body) == read(json.dumps(content).encode())
        return
    with pytest.raises(InvalidError) as error:
        read(body)
    (fault,) = error.value.faults
    assert [fault.code, fault.facts.get("encoding")] == expected


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("form", FORMS)
def test_all_queues_have_one_rule_for_encodings(queue, form):
    """Bugs2 45: with or without base64 and mark; a rejection names the encoding."""
    check(*QUEUES[queue], form, FORMS[form]["queue"])


@pytest.mark.parametrize("form", FORMS)
def test_a_body_over_http_may_have_a_byte_order_mark(form):
    """Bugs2 45: base64 is for queues; any other encoding is named."""
    check(partial(decode, Submission), SUBMITTED, form, FORMS[form]["http"])


@pytest.mark.parametrize("body", [b"null", b"true", b"1234", b'"abc"', b"", b"e", b"\0"])
def test_what_only_looks_like_base64_is_none(body):
    """Bugs2 45."""
    assert unpacked(body) == body
    with pytest.raises(InvalidError):
        decode_queued(Submission, body)


@pytest.mark.parametrize("form", [form for form in FORMS if "zipped" not in FORMS[form]["made"]])
def test_a_kept_message_can_be_read_and_searched_whatever_its_encoding(form):
    """Bugs2 45: so an erasure finds the order that it names."""
    assert ABOUT["orderId"] in readable(written(SUBMITTED, **FORMS[form]["made"]))
