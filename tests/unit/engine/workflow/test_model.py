"""Models of what is sent: how they read numbers."""

from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import Field

from engine.declarations.activities import Call
from engine.domain.errors import InvalidError
from engine.domain.exact_json import read
from engine.domain.exact_models import as_json
from engine.domain.messages import decode
from engine.workflow.external_events import ReadCallback, reader
from engine.workflow.model import Model, Personal, recorded
from tests.support.json_numbers import NUMBERS, REFUSED


class Line(Model):
    price: Decimal


class Bill(Model):
    total: Decimal | None = None
    paid: Annotated[Decimal, Field(ge=0, decimal_places=2)] | None = None
    secret: Personal[Decimal] | None = None
    lines: tuple[Line, ...] = ()
    count: int | None = None
    share: float | None = None
    more: dict[str, Any] = Field(default_factory=dict)


class Outer(Model):
    bill: Bill


AMOUNT = "12345678901234567.89"


@pytest.mark.parametrize(
    ("place", "json"),
    [
        ("total", AMOUNT),
        ("paid", AMOUNT),
        ("secret", AMOUNT),
        ("lines", f'[{{"price":{AMOUNT}}}]'),
    ],
)
def test_a_decimal_is_the_number_that_came(place, json):
    """`bugs 12`: it was made from a float, and so was another one."""
    body = f'{{"{place}":{json}}}'
    for found in (decode(Bill, body), recorded(Bill, read(body))):
        value = getattr(found, place)
        assert (value[0].price if place == "lines" else value) == Decimal(AMOUNT)
    for checked in (reader(Bill), ReadCallback(Bill)):
        kept = checked(read(body))[place]
        assert (kept[0]["price"] if place == "lines" else kept) == Decimal(AMOUNT)


@pytest.mark.parametrize("text", ['"1.10"', "1.10", '"12345678901234567.89"', "5", "1e2"])
def test_a_decimal_may_be_a_text_or_any_number(text):
    assert decode(Bill, f'{{"total":{text}}}').total == Decimal(text.strip('"'))


def test_the_rules_of_a_decimal_hold_for_the_number_that_came():
    with pytest.raises(InvalidError) as refused:
        decode(Bill, '{"paid":12345678901234567.891}')
    assert [fault.code for fault in refused.value.faults] == ["decimal_max_places"]


@pytest.mark.parametrize(("number", "integer"), NUMBERS["integers"].items())
def test_an_integer_may_be_written_with_a_point_or_an_exponent(number, integer):
    """`P9`: JSON Schema says that they are integers."""
    body = f'{{"count":{number}}}'
    assert decode(Bill, body).count == recorded(Bill, read(body)).count == integer


@pytest.mark.parametrize("number", NUMBERS["notIntegers"])
def test_an_integer_has_no_fraction(number):
    with pytest.raises(InvalidError) as refused:
        decode(Bill, f'{{"count":{number}}}')
    assert [fault.code for fault in refused.value.faults] == ["int_type"]


@pytest.mark.parametrize("number", REFUSED)
@pytest.mark.parametrize("place", ["share", "total", "count", "more"])
def test_what_is_no_number_is_in_no_model(place, number):
    """`bugs 6`, `engine 20`: it was kept as null."""
    value = f'{{"deep":[{number}]}}' if place == "more" else number
    with pytest.raises(InvalidError):
        decode(Bill, f'{{"{place}":{value}}}')


def test_a_model_made_by_an_author_has_no_infinity():
    with pytest.raises(ValueError, match="finite"):
        Bill(share=float("inf"))


def test_where_any_json_may_stand_numbers_stay():
    body = f'{{"bill":{{"more":{{"a":{AMOUNT},"b":[2.0,1e2]}}}}}}'
    found = decode(Outer, body)
    assert found.bill.more == {"a": Decimal(AMOUNT), "b": [2.0, 100.0]}
    assert as_json(found)["bill"]["more"] == read(body)["bill"]["more"]


def test_an_undo_reads_the_kept_answer_exactly():
    result = read(f'{{"total":{AMOUNT}}}')
    call = Call(key="k", order_id="o", step="s", seconds_left=1, result=result)
    assert call.kept(Bill).total == Decimal(AMOUNT)
