"""The encodings in which tools put a message on a queue (tests/data/inputs/encodings.json)."""

import base64
import gzip
import json
from functools import partial
from pathlib import Path

import pytest

from engine.domain.encodings import in_utf8, readable, unpacked
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


def test_a_byte_that_is_no_utf_8_is_named_with_its_place():
    with pytest.raises(InvalidError) as error:
        in_utf8(b'\xef\xbb\xbf{"n": "\xff"}')
    [fault] = error.value.faults
    assert (fault.place, fault.code) == ("body", "no-utf-8")
    assert fault.facts == {"position": 8, "byte": "FF"}


def test_another_encoding_is_a_fault_of_the_body():
    with pytest.raises(InvalidError) as error:
        in_utf8('{"n": 1}'.encode("utf-16-le"))
    assert [fault.place for fault in error.value.faults] == ["body"]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'\xef\xbb\xbf{"a":1}', '{"a":1}'),
        ('\ufeff \r\n\t{"a":1}'.encode("utf-16-le"), ' \r\n\t{"a":1}'),
        ("[1]".encode("utf-16-be"), "[1]"),
        (b"a\0b\0", "a\0b\0"),
        (b'{"a":"\xff"}', '{"a":"\\xff"}'),
        (b'{\0"\0a', '{\0"\0a'),
    ],
)
def test_what_is_no_json_in_its_encoding_is_shown_byte_by_byte(body, text):
    assert readable(body) == text


def test_base64_has_no_other_characters_and_may_hold_blanks():
    assert unpacked(b"eyJhIjoxfQ==!") == b"eyJhIjoxfQ==!"
    assert unpacked(base64.b64encode(b'  {"a":1}')) == b'  {"a":1}'
