"""The spellings of an address that name one person (tests/data/inputs/addresses.json)."""

import json
from pathlib import Path

import pytest

from engine.domain.personal_data import holds_address, texts_in
from engine.domain.texts import same_to_people
from engine.workflow import Model, Owner, Text
from engine.workflow.payload import payload_of

ADDRESSES = json.loads(Path("tests/data/inputs/addresses.json").read_text())
SAME = [(one, other) for one in ADDRESSES for other in ADDRESSES[one]["the same"]]
OTHER = [(one, other) for one in ADDRESSES for other in ADDRESSES[one]["other"]]


class Order(Model):
    """One of a customer who is known by an address."""

    address: Owner[Text]


PAYLOAD = payload_of(Order)


@pytest.mark.parametrize(("one", "other"), SAME)
def test_a_person_is_found_under_every_spelling_of_an_address(one, other):
    """Bugs2 54: whichever of both was recorded; a missed erasure leaves personal data."""
    assert PAYLOAD.belongs_to({"address": one}, other)
    assert PAYLOAD.belongs_to({"address": other}, one)


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_another_address_is_that_of_another_person(one, other):
    """Bugs2 54."""
    assert not PAYLOAD.belongs_to({"address": one}, other)
    assert not PAYLOAD.belongs_to({"address": other}, one)


@pytest.mark.parametrize("in_ascii", [True, False])
@pytest.mark.parametrize(("one", "other"), SAME)
def test_a_poison_message_that_names_a_person_is_listed(one, other, in_ascii):
    """Bugs2 54: also where it is written in escapes."""
    body = f'{{"address": {json.dumps(other.strip(), ensure_ascii=in_ascii)}, broken'
    assert holds_address(body.encode(), one)
    assert not holds_address(body.encode(), "nobody@example.com")
    assert not holds_address(body.encode(), "\u200b")


def test_a_part_of_a_domain_that_cannot_be_decoded_stays():
    assert same_to_people("Ada@XN--999999999B.example") == "ada@xn--999999999b.example"


def test_the_texts_of_a_value_are_found_at_any_depth():
    assert list(texts_in({"a": ["x", {"b": 1}], "c": "", "d": None})) == ["x", "1"]


def test_an_address_is_found_beside_bytes_that_are_no_text():
    assert holds_address(b"\xff ada@example.com", "ada@example.com")
