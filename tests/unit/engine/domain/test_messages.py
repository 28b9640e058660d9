"""Messages and keys, character for character: another version of the app reads them."""

import base64
import json
import time
from dataclasses import replace
from datetime import timedelta, timezone
from typing import Annotated

import pytest
from pydantic import AfterValidator, BaseModel, Field, TypeAdapter, ValidationError

from agents.rules import deferred, latest_beginning, not_attempted
from engine.alerts import events as alerts
from engine.decisions.requests import without
from engine.decisions.transitions import OperatorEvent
from engine.declarations.workflow import Workflows
from engine.domain import exact_json
from engine.domain.attempts import NotAttemptedReason
from engine.domain.errors import DeferredError, InputFault, InvalidError, NotAttemptedError
from engine.domain.events import SubmissionRefused
from engine.domain.keys import (
    bucket_of,
    business_key,
    business_keys,
    history_key,
    key_in,
    key_part,
    order_in,
    order_keyed,
    same_business_keys,
    sortable,
)
from engine.domain.messages import (
    MAX_FAULTS,
    BusMessage,
    OrderReady,
    Submission,
    bus_queues,
    decode,
    faults_of,
    request_id_of,
    schedule_redelivery,
)
from engine.domain.work_index import IndexRow
from operations.alerts.rules import read, successor
from submission.rules import OTHER_CONTENT, pause_of_newer, refusal_of, rejection_of
from tests.support.agency import Agency
from tests.support.builders import NOW, ORDER_ID, WORKFLOWS, answer, orders, seconds, steps


def test_a_submission_is_written_in_ascii_under_the_names_of_the_wire():
    """And without what it does not say."""
    message = Submission(
        schema_version=1, order_id=ORDER_ID, placed_at=NOW, payload_text="Jos\u00e9"
    )
    assert message.to_json() == (
        f'{{"schemaVersion":1,"orderId":"{ORDER_ID}","placedAt":"2026-01-31T08:15:00Z",'
        '"priority":"normal","payload_text":"Jos\\u00e9"}'
    )


def test_names_of_our_own_are_none_on_the_wire():
    """A message that has them instead says nothing."""
    assert decode(OrderReady, json.dumps({"orderId": ORDER_ID})) == OrderReady(order_id=ORDER_ID)
    with pytest.raises(InvalidError, match="orderId: Field required"):
        decode(OrderReady, json.dumps({"order_id": ORDER_ID}))
    with pytest.raises(InvalidError, match="orderId: Field required"):
        decode(OrderReady, json.dumps({"order_id": ORDER_ID, "weight": 1.5}))


def test_half_a_surrogate_pair_is_a_fault_beside_any_number():
    for number in ("1", "1.5"):
        with pytest.raises(InvalidError):
            decode(OrderReady, f'{{"orderId":"{ORDER_ID}","n":{number},"text":"\\ud800"}}')


@pytest.mark.parametrize("ids", [("", "o"), ("m", "")])
def test_a_message_needs_both_ids(ids):
    """In a batch, Azure's host fills in those of the next one."""
    with pytest.raises(ValueError, match="needs a message id and a correlation id"):
        BusMessage(queue="q", message_id=ids[0], correlation_id=ids[1], body="{}")


def test_the_id_of_a_request_says_whether_it_undoes():
    """So what undoes an attempt is another message than what did it."""
    both = (steps.running(), steps.undoing())
    assert [request_id_of("o", step) for step in both] == ["o:payment:1:do", "o:payment:2:undo"]


def test_a_reply_goes_to_the_queue_of_its_agent():
    """Over that of another it would not count."""
    message = answer().to_bus("payment", NOW)
    assert message.queue == "payment-responses"
    assert message.message_id == f"{ORDER_ID}:payment:1:do:completed"
    assert message.correlation_id == f"{ORDER_ID}:payment:1:do"
    assert message.time_to_live == seconds(5)
    assert "null" not in message.body


def test_there_is_a_queue_for_wake_ups_and_two_for_every_agent():
    """Whatever is sent has one of them."""
    assert bus_queues(["payment", "stock"]) == [
        "scheduler-requests",
        "payment-requests",
        "payment-responses",
        "stock-requests",
        "stock-responses",
    ]
    assert bus_queues([], answers=True) == ["scheduler-requests", "answers"]


def test_what_is_put_off_has_the_time_in_its_id():
    """In milliseconds, which tell one pause from the next."""
    message = OrderReady(order_id=ORDER_ID).to_bus()
    again = schedule_redelivery(message, NOW, NOW + seconds(10))
    assert again.message_id == f"{ORDER_ID}:ready:1769847301000"
    assert (again.not_before, again.time_to_live) == (NOW + seconds(1), seconds(9))


class Lists(BaseModel):
    """Something with a pair, and a list that has to hold something."""

    pair: tuple[int, int] = (1, 2)
    some: Annotated[tuple[int, ...], Field(min_length=1)] = (1,)


NO_INTEGER = "Input should be a valid integer, unable to parse string as an integer"
FAULTS = {
    "of the whole": ([], ["body: Input should be an object"]),
    "of a part": ({"pair": [1]}, ["pair.1: Field required"]),
    "too short": (
        {"some": []},
        ["some: Tuple should have at least 1 item after validation, not 0"],
    ),
    "too short only by its fault": ({"some": ["x"]}, [f"some.0: {NO_INTEGER}"]),
    "as many as are named": (
        {"some": ["x"] * MAX_FAULTS},
        [f"some.{number}: {NO_INTEGER}" for number in range(MAX_FAULTS)],
    ),
    "more than are named": (
        {"some": ["x"] * (MAX_FAULTS + 3)},
        [
            *(f"some.{number}: {NO_INTEGER}" for number in range(MAX_FAULTS)),
            'more-faults {"more": 3}',
        ],
    ),
}


@pytest.mark.parametrize("what", FAULTS)
def test_a_fault_is_reported_at_its_place(what):
    """What concerns the whole is said of the body; of very many faults the rest is counted."""
    body, faults = FAULTS[what]
    with pytest.raises(InvalidError) as raised:
        decode(Lists, json.dumps(body))
    assert list(map(str, raised.value.faults)) == faults


def test_keys_are_what_other_versions_know():
    """Rows of years are under them."""
    assert history_key("o", 7) == "o|history|000007"
    assert history_key("o", 7, "n") == "o|history|000007|n"
    assert key_part("Az09_.:|- /ä") == "Az09_.:|-=20==2f==e4="
    assert order_in("nothing") == ""
    assert bucket_of("b03-A-B") == "b03"


def test_an_order_is_found_by_a_key_of_its_business_or_by_the_beginning_of_one():
    """Whatever the key holds, even what stands between the parts of ours."""
    assert business_key("C 1|2", ORDER_ID) == f"=C=20=1|2|{ORDER_ID}"
    assert order_keyed(f"=C=20=1|2|{ORDER_ID}") == ORDER_ID
    assert key_in(f"=C=20=1|2|{ORDER_ID}") == "C 1|2"
    assert business_keys("C 1") == ("=C=20=1", "=C=20=1~")
    assert same_business_keys("C 1") == ("=C=20=1|b0", "=C=20=1|b:")


def test_a_time_in_a_key_is_that_of_utc_wherever_the_machine_is(monkeypatch):
    """So keys sort by it."""
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        assert (
            sortable(NOW.astimezone(timezone(timedelta(hours=5)))) == "2026-01-31T08:15:00.000000Z"
        )
    finally:
        monkeypatch.undo()
        time.tzset()


def test_work_may_begin_while_half_of_its_time_is_left_or_enough_for_a_call():
    """Whichever is later."""
    request = Agency().request.model_copy(
        update={"issued_at": NOW, "complete_by": NOW + seconds(10)}
    )
    for call_timeout, latest in ((seconds(8), seconds(5)), (seconds(2), seconds(7))):
        assert latest_beginning(request, seconds(1), call_timeout) == NOW + latest


def test_what_may_come_again_at_once_is_not_put_off():
    """Not even for a second."""
    busy = NotAttemptedError(NotAttemptedReason.BUSY, "busy", timedelta())
    reply = not_attempted(Agency().request, busy, was_called=False, was_deferred=False)
    assert reply.retry_after == 0


@pytest.mark.proves("AGT-11", "UND-2")
@pytest.mark.parametrize("was_called", [True, False])
def test_work_that_is_accepted_is_in_doubt_if_an_earlier_call_had_no_answer(was_called):
    """That call may have been another one, of which the service says nothing."""
    later = DeferredError(retry_after=seconds(5))
    reply = deferred(Agency().request, later, was_called=was_called)
    assert (reply.outcome, reply.in_doubt) == ("deferred", was_called)


@pytest.mark.proves("FLT-12")
def test_only_a_version_that_the_app_no_longer_has_was_retired():
    """An older one that is still there was not, nor one that is still to come."""
    first = WORKFLOWS.latest("payment-only")
    known = Workflows(replace(first, version=2), replace(first, version=3))
    assert [known.was_retired("payment-only", version) for version in (1, 2, 3, 4)] == [
        True,
        False,
        False,
        False,
    ]
    assert not known.was_retired("unheard-of", 1)


ALERT = {
    "specversion": "1.0",
    "id": "i",
    "type": "t",
    "subject": "s",
    "time": "2026-01-31T08:15:00Z",
    "data": {"a": 1},
}


@pytest.mark.proves("ALR-1")
def test_an_alert_is_read_with_all_that_it_says():
    """In base64, as Event Grid delivers it, or as it is: bugs2 45."""
    body = json.dumps(ALERT).encode()
    expected = OperatorEvent(event_id="i", type="t", subject="s", at=NOW, data={"a": 1})
    text = base64.b64encode(body)
    for form in (text, body, text[:8] + b"\n" + text[8:]):
        assert read(form) == expected
    with pytest.raises(InvalidError):
        read(text[:-1])


@pytest.mark.proves("ALR-2")
def test_a_notice_that_is_given_up_has_an_alert_with_its_queue_and_the_fault():
    """In the alert that takes its place."""
    row = IndexRow(
        key="k", order_id=ORDER_ID, data={"To": "status-x", "Tries": 2, "WorkItemKind": "notice"}
    )
    alert = alerts.notice_given_up(ORDER_ID, "status-x", "gone", NOW)
    given_up = successor(row, ValueError("gone"), NOW, 1, counts=True)
    assert exact_json.read(given_up.data["Data"]) == alert.data


@pytest.mark.proves("SCH-8")
def test_personal_values_are_left_out_in_whatever_letters_and_the_longest_first():
    """Of `Ada Lovelace` nothing stays, though `Ada` is one too."""
    assert (
        without(["Ada", "Ada Lovelace"], "for ADA LOVELACE and ada, not Adam")
        == "for erased and erased, not Adam"
    )
    assert without([""], "a - b") == "a - b"


@pytest.mark.proves("FLT-12")
@pytest.mark.parametrize(
    ("age", "put_off_for"), [(0, 5), (100, 10), (86_399, 600), (86_400, None), (-1, None)]
)
def test_a_newer_submission_comes_again_after_a_tenth_of_its_age(age, put_off_for):
    """Within bounds, and for a day."""
    body = json.dumps({"placedAt": (NOW - seconds(age)).isoformat()}).encode()
    assert pause_of_newer(body, NOW, timedelta(days=1)) == (put_off_for and seconds(put_off_for))


@pytest.mark.proves("SUB-3", "SUB-4")
def test_what_is_refused_is_reported_with_its_order_its_time_and_why():
    """The record in the history too."""
    note = refusal_of(orders.new(), b"body", NOW, NOW + seconds(1), "submission/i")
    assert note.entry.at == NOW + seconds(1)
    assert note.entry.actor == "submission/i"
    assert note.entry.events == (SubmissionRefused(cause=OTHER_CONTENT),)
    digest = "230d8358dc8e8890"
    assert note.note_id == f"refused-{digest}"
    event_id = f"{ORDER_ID}:refused:{digest}"
    assert note.events == (alerts.submission_rejected(ORDER_ID, OTHER_CONTENT, event_id, NOW),)
    rejection = rejection_of(b"body", InvalidError(["x" * 2000]), NOW)
    assert rejection.data["reason"]["facts"] == {"faults": ["x" * 1000]}
    assert rejection.event_id == f"rejected:{digest}b4c58deeb62912ee:2026-01-31T08:15:00.000000Z"


def _blue(colour):
    if colour != "blue":
        raise ValueError("not blue")
    return colour


class Form(BaseModel):
    """An input with a limit, and with a rule of its own."""

    amount: Annotated[int, Field(ge=1)] = 1
    colour: Annotated[str, AfterValidator(_blue)] = "blue"


def _fault_of(**fields):
    with pytest.raises(ValidationError) as caught:
        Form.model_validate(fields)
    (fault,) = faults_of(caught.value)
    return fault


def test_a_fault_has_the_facts_that_pydantic_names():
    """As JSON: an error becomes its text."""
    low = _fault_of(amount=0)
    assert (low.place, low.code, low.facts) == ("amount", "greater_than_equal", {"ge": 1})
    red = _fault_of(colour="red")
    assert (red.place, red.code, red.facts) == ("colour", "value_error", {"error": "not blue"})


@pytest.mark.parametrize("more", [0, 1, 2])
def test_what_is_more_than_the_most_faults_is_counted(more):
    """One fault says how many are left out."""
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(list[int]).validate_python(["x"] * (MAX_FAULTS + more))
    found = faults_of(caught.value)
    left_out = [InputFault("", "more-faults", {"more": more})] if more else []
    assert (len(found), found[MAX_FAULTS:]) == (MAX_FAULTS + len(left_out), left_out)
