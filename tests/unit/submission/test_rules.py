"""What submission makes of a message that comes again."""

import json
import time
from dataclasses import replace

import pytest

from engine.declarations.business import MAX_KEY, MAX_KEYS, MAX_PAYLOAD, Payload
from engine.domain.errors import InputFault, InvalidError
from engine.domain.keys import business_key, key_in
from engine.domain.messages import Submission
from engine.domain.submitted_order import OnFailure, Priority
from engine.storage.orders import columns_of_record
from engine.storage.tables import MAX_CHARACTERS, stored_form
from operations.api.requests import OperatorRequest
from submission.rules import MAX_OF_REASON, read, rejection_of, same_submission
from submission.rules import new_order as order_of
from tests.support.acting import expedite
from tests.support.builders import (
    CONTENT,
    COOLDOWN,
    NOW,
    ORDER_ID,
    PAYLOAD,
    WORKFLOWS,
    orders,
    seconds,
)
from tests.support.memory_world import MESSAGE, World


def with_payload(**changes):
    return orders.new(payload=CONTENT | changes)


@pytest.mark.proves("SUB-3")
def test_a_message_that_comes_again_after_its_customer_was_erased_says_nothing_new():
    """It is no other order, which would be refused, and kept with the very data that was erased."""
    new = orders.new()
    erased = with_payload(**PAYLOAD.erased(CONTENT))
    assert same_submission(erased, new, PAYLOAD)
    assert not same_submission(erased, with_payload(items=[]), PAYLOAD)
    assert not same_submission(
        new, with_payload(customer={"name": "Grace", "email": "ada@example.com"}), PAYLOAD
    )


@pytest.mark.proves("SUB-3")
@pytest.mark.parametrize(
    "other",
    [{"workflow": "order"}, {"priority": "high"}, {"replyTo": "status-a"}],
    ids=lambda other: next(iter(other)),
)
def test_a_message_that_asks_for_something_else_is_another_submission(other):
    """Whoever sent it would believe that it is done so."""
    assert not same_submission(recorded(), recorded(**other), PAYLOAD)


def recorded(**more):
    """The order that submission records for a message with these fields."""
    sent = SUBMITTED | CONTENT | more
    terms = World().terms
    return order_of(*read(json.dumps(sent).encode(), terms), terms, NOW, "t").after


def hurried(order):
    """The order, after an operator raised its priority."""
    signed = OperatorRequest(operator="grace", note="soon")
    return expedite(order, signed, NOW).after


@pytest.mark.proves("SUB-3", "OPR-8")
def test_a_message_that_comes_again_is_compared_with_what_was_submitted():
    """Not with the order as an operator has changed it since (engine 30)."""
    order = hurried(recorded())
    assert order.priority is Priority.HIGH
    assert same_submission(order, recorded(), PAYLOAD)
    assert not same_submission(order, recorded(priority="high"), PAYLOAD)
    assert same_submission(recorded(priority="high"), recorded(priority="high"), PAYLOAD)
    erased = orders.having(order, payload=PAYLOAD.erased(CONTENT))
    assert same_submission(erased, recorded(), PAYLOAD)
    assert not same_submission(erased, recorded(priority="high"), PAYLOAD)


@pytest.mark.proves("SUB-3")
def test_a_default_workflow_that_has_changed_makes_no_other_order_of_a_message():
    """A message that names none is the same after a deployment with another default (engine 30)."""
    unnamed = {name: value for name, value in (SUBMITTED | CONTENT).items() if name != "workflow"}

    def order(default):
        terms = replace(World().terms, default_workflow=default)
        return order_of(*read(json.dumps(unnamed).encode(), terms), terms, NOW, "t").after

    before, after = order("payment-only"), order("in-sequence")
    assert (before.workflow, after.workflow) == ("payment-only", "in-sequence")
    assert same_submission(before, after, PAYLOAD)
    assert not same_submission(before, recorded(workflow="in-sequence"), PAYLOAD)


@pytest.mark.proves("SUB-3")
def test_a_message_that_comes_again_to_a_machine_in_another_zone_is_the_same(monkeypatch):
    """A time is compared, and not how a machine would write it."""
    before = recorded(notBefore="2026-02-01T08:15:00Z")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        after = recorded(notBefore="2026-02-01T08:15:00Z")
    finally:
        monkeypatch.undo()
        time.tzset()
    assert same_submission(before, after, PAYLOAD)


AS_SENT = """{"schemaVersion":1,"orderId":"%s","placedAt":"2026-01-31T08:15:00Z",
    "workflow":"payment-only","notBefore":"2026-02-01T08:15:00Z","sum":%s,"claimant":"Ada"}"""
OTHERWISE = {
    "spacing": lambda sent: json.dumps(json.loads(sent), indent=4),
    "order of the fields": lambda sent: json.dumps(json.loads(sent), sort_keys=True),
    "escapes": lambda sent: sent.replace("payment-only", "\\u0070ayment-only"),
    "zone": lambda sent: sent.replace("02-01T08:15:00Z", "02-01T09:15:00+01:00"),
    "fraction": lambda sent: sent.replace(":00Z", ":00.000Z"),
    "default": lambda sent: sent.replace("{", '{"priority":"normal","replyTo":null,'),
    "number": lambda sent: sent.replace("1.50", "15e-1"),
}


def sent_as(text):
    """The order that is recorded for the text of a message."""
    return order_of(*read(text.encode(), CLAIMS_TERMS), CLAIMS_TERMS, NOW, "t").after


@pytest.mark.proves("SUB-3")
@pytest.mark.parametrize("label", OTHERWISE)
def test_the_same_message_may_be_written_otherwise(label):
    """Its values decide: whoever sends it again may write it with another library."""
    sent = AS_SENT % (ORDER_ID, "1.50")
    otherwise = OTHERWISE[label](sent)
    assert otherwise != sent
    assert same_submission(sent_as(sent), sent_as(otherwise), CLAIMS)
    assert (
        sent_as(sent).submitted.submission_digest == sent_as(otherwise).submitted.submission_digest
    )


@pytest.mark.proves("SUB-3", "FLT-12")
def test_every_version_makes_the_same_digest_of_a_message():
    """Rows keep it: another form would make other content of each message that comes again."""
    sent = AS_SENT % (ORDER_ID, "1.50")
    assert sent_as(sent).submitted.submission_digest == "dcb2cf496ba828fdeb985f32da7de9f5"


@pytest.mark.proves("SUP-3")
def test_a_step_rests_as_long_as_the_terms_say_unless_its_workflow_does():
    """So it is recorded with the order."""
    message, workflow = (
        Submission.model_validate_json(MESSAGE % ""),
        WORKFLOWS.latest("payment-only"),
    )
    own = seconds(7)
    resting = [
        replace(
            workflow.steps[0], on_failure=OnFailure.COOLDOWN, cooldown=rest, late_effect_window=own
        )
        for rest in (None, own)
    ]
    steps = order_of(
        message, replace(workflow, steps=tuple(resting)), World().terms, NOW, "t"
    ).after.steps
    assert [step.rules.cooldown for step in steps] == [COOLDOWN, own]
    assert {step.rules.late_effect_window for step in steps} == {own}


def test_what_names_no_workflow_follows_what_its_business_says():
    """The engine knows none by name."""
    terms = replace(World().terms, default_workflow="in-sequence")
    unnamed = {
        name: value for name, value in json.loads(MESSAGE % "").items() if name != "workflow"
    }
    assert read(json.dumps(unnamed).encode(), terms)[1].name == "in-sequence"
    assert read((MESSAGE % "").encode(), terms)[1].name == "payment-only"


SUBMITTED = {
    "schemaVersion": 1,
    "orderId": ORDER_ID,
    "placedAt": "2026-01-31T08:15:00Z",
    "workflow": "payment-only",
}
CLAIMS = Payload(
    check=lambda payload: None,
    erased=lambda payload: payload | {"claimant": "a person whose name was erased"},
    personal=lambda payload: [payload["claimant"]],
    belongs_to=lambda payload, wanted: payload["claimant"] == wanted,
)
"""Another business, which takes anything."""
CLAIMS_TERMS = replace(World().terms, payload=CLAIMS)


NAME = "a person with a rather long name"
AROUND = len('{"claimant":"","photo":""}')
"""What a claim takes besides the name and the photo."""


def claim_of(units, claimant=NAME):
    """A claim of so many UTF-16 units as compact JSON, with characters of 1, 2 and 4 bytes."""
    photo = units - AROUND - len(claimant)
    return {"claimant": claimant, "photo": "é🍵" + "x" * (photo - 3)}  # the cup of tea takes two


def submitted(payload):
    return read(json.dumps(SUBMITTED | payload).encode(), CLAIMS_TERMS)


@pytest.mark.proves("SUB-2")
def test_another_business_has_another_payload():
    """The engine takes out its own fields, and records what is left as it came."""
    claim = {"claimant": "Ada", "damage": {"cause": "water", "rooms": [1, 2.5, None, True]}}
    change = order_of(*submitted(claim), CLAIMS_TERMS, NOW, "t")
    assert (
        replace(change.after.submitted, submission_digest="") == orders.new(payload=claim).submitted
    )


@pytest.mark.proves("SUB-2", "SUB-4")
def test_an_order_that_no_row_can_hold_is_refused_with_the_bound():
    """Up to it the row takes the order."""
    order = order_of(*submitted(claim_of(MAX_PAYLOAD)), CLAIMS_TERMS, NOW, "t").after.submitted
    payload = stored_form(columns_of_record(order))["Payload"]
    assert len(payload.encode("utf-16-le")) == 65_536
    assert MAX_CHARACTERS == MAX_PAYLOAD == 32_768
    with pytest.raises(InvalidError, match=f"content-too-long .*{MAX_PAYLOAD + 1}.*{MAX_PAYLOAD}"):
        submitted(claim_of(MAX_PAYLOAD + 1))


@pytest.mark.proves("SUB-4")
def test_an_order_of_emoji_is_refused_as_soon_as_no_row_can_hold_it():
    """Each counts twice: accepted, it could never be written, and nobody would hear why."""
    cups = (32_768 - AROUND - len(NAME)) // 2
    submitted({"claimant": NAME, "photo": "🍵" * cups})
    with pytest.raises(InvalidError, match=r"content-too-long .*32770"):
        submitted({"claimant": NAME, "photo": "🍵" * (cups + 1)})


@pytest.mark.proves("SUB-5")
@pytest.mark.parametrize(
    "queue", ["payment-requests", "payment-requests.status-x", "xstatus-x", "status"]
)
def test_notices_go_to_no_queue_but_those_whose_names_begin_with_the_prefix(queue):
    """Else whoever submits an order could have the app write into its own queues."""
    assert (
        read((MESSAGE % ',"replyTo":"status-x"').encode(), World().terms)[0].reply_to == "status-x"
    )
    with pytest.raises(InvalidError, match=r"replyTo: queue-not-allowed .*status-"):
        read((MESSAGE % f',"replyTo":"{queue}"').encode(), World().terms)


@pytest.mark.proves("SUB-5", "SUB-4")
def test_faults_that_come_together_have_their_places_and_facts():
    """An unknown workflow, and a queue that is not allowed."""
    message = MESSAGE % ',"replyTo":"payment-requests","workflow":"gone"'
    with pytest.raises(InvalidError) as caught:
        read(message.encode(), World().terms)
    assert caught.value.faults == [
        InputFault("workflow", "unknown-workflow", {"workflow": "gone"}),
        InputFault("replyTo", "queue-not-allowed", {"prefix": "status-"}),
    ]


def test_an_alert_has_the_first_faults_of_a_message_that_fit_into_it():
    """SUB-4: a text is cut, and any other fault is left out with all after it."""
    own, other = "x" * (MAX_OF_REASON - 10), InputFault("orderId", "unknown-bucket", {})

    def shown(*faults):
        event = rejection_of(b"{}", InvalidError([*faults]), NOW)
        return event.data["reason"]["facts"]["faults"]

    assert shown(own) == [own]
    assert shown(own, "y" * 10) == [own, "y" * 10]
    assert shown(own, "y" * 11) == [own, "y" * 10]
    assert shown(own, other) == [own]
    assert shown(own, other, "z") == [own]
    assert shown(own, "y" * 10, "z") == [own, "y" * 10]
    assert shown(other, other) == [other.as_json()] * 2


@pytest.mark.proves("SUB-4")
def test_an_order_that_could_not_be_erased_is_refused():
    """What stands for the personal data may be longer than they were."""
    with pytest.raises(InvalidError, match=f"content-too-long .*{MAX_PAYLOAD}"):
        submitted(claim_of(MAX_PAYLOAD, claimant="Ada"))


@pytest.mark.proves("SUB-4")
def test_the_name_of_an_unknown_field_is_reported_on_one_line():
    """The sender chose it; the reason stands in logs and on pages."""
    forged = json.dumps("a\n2026-11-23 13:00:00 ERROR forged\x1b[2J")
    with pytest.raises(InvalidError) as raised:
        read((MESSAGE % f",{forged}:1").encode(), World().terms)
    assert [fault for fault in raised.value.faults if not str(fault).isprintable()] == []


KEYED = replace(CLAIMS, keys=lambda payload: payload.get("numbers", ()))


@pytest.mark.proves("SUB-4")
def test_every_fault_of_keys_is_named_beside_those_of_the_business():
    """Too long a key fits into no row key, and too many fit into no transaction."""

    def nothing_right(payload):
        raise InvalidError(["claimant: expected a person"])

    terms = replace(CLAIMS_TERMS, payload=replace(KEYED, check=nothing_right))
    most = [f"{number}".rjust(MAX_KEY, "🍵") for number in range(MAX_KEYS)]
    body = SUBMITTED | {"claimant": NAME}
    read(json.dumps(body | {"numbers": most * 2}).encode(), replace(terms, payload=KEYED))
    with pytest.raises(InvalidError) as raised:
        read(json.dumps(body | {"numbers": [*most, "x" * (MAX_KEY + 1)]}).encode(), terms)
    assert raised.value.faults == [
        InputFault("body", "too-many-keys", {"length": 11, "limit": 10}),
        InputFault("body", "key-too-long", {"length": 51, "limit": 50}),
        "claimant: expected a person",
    ]


@pytest.mark.proves("SUB-2")
@pytest.mark.parametrize(
    ("numbers", "keys"), [(["K-1", "K-2", "K-1"], {"K-1", "K-2"}), ([], set())], ids=["two", "none"]
)
def test_an_order_is_recorded_with_a_row_for_every_key_of_its_business(numbers, keys):
    """A key that the business names twice has one row."""
    terms = replace(CLAIMS_TERMS, payload=KEYED)
    claim = {"claimant": NAME, "numbers": numbers}
    rows = order_of(*submitted(claim), terms, NOW, "t").after.submitted.key_rows
    assert set(rows or ()) == {business_key(key, ORDER_ID) for key in keys}


@pytest.mark.proves("SUB-2")
def test_the_longest_key_fits_into_a_row_key():
    """However each of its characters is escaped; a row key has 512 characters at most."""
    longest = business_key("\U0010ffff" * MAX_KEY, ORDER_ID)
    assert len(longest) <= 512
    assert key_in(longest) == "\U0010ffff" * MAX_KEY


@pytest.mark.proves("SUB-4")
@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_what_is_no_number_in_json_is_refused(number):
    """It would not be the same order when the message comes again."""
    body = json.dumps(SUBMITTED | {"sum": 0}).replace('"sum": 0', f'"sum": {number}')
    with pytest.raises(InvalidError, match="no-json"):
        read(body.encode(), CLAIMS_TERMS)
