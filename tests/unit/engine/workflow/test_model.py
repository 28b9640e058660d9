"""Models of what is sent: how they read numbers."""

from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, Field

from engine.declarations.activities import Call
from engine.domain.contents import content_text
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


def test_a_mapping_of_any_kind_is_read_exactly():
    found = recorded(Bill, MappingProxyType(read(f'{{"total":{AMOUNT}}}')))
    assert found.total == Decimal(AMOUNT)


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


N = "0.12345678901234567891"


class Free(Model):
    inner: tuple[Any, ...] = ()
    by_name: dict[str, Outer] = Field(default_factory=dict)
    thing: object = None
    bare: dict = Field(default_factory=dict)  # type: ignore[type-arg]
    either: Bill | dict[str, Any] | None = None


@pytest.mark.parametrize(
    "json",
    [
        f'{{"inner":[1,{N}]}}',
        f'{{"inner":[{{"a":{N}}}]}}',
        f'{{"byName":{{"a":{{"bill":{{"more":{{"x":{N}}}}}}}}}}}',
        f'{{"thing":{N}}}',
        f'{{"bare":{{"a":[{N}]}}}}',
        f'{{"either":{{"more":{{"x":{N}}}}}}}',
        f'{{"either":{{"another":{N}}}}}',
    ],
)
def test_any_json_may_stand_in_many_types(json):
    assert as_json(decode(Free, json), exclude_unset=True) == read(json)


@dataclass
class Point:
    x: float


class Floats(Model):
    some: set[float] = Field(default_factory=set)
    by_number: dict[int, float] = Field(default_factory=dict)
    point: Point | None = None
    other: Annotated[float, Field(validation_alias="zz")] = 0
    rounded: Annotated[float, AfterValidator(round)] = 0
    most: Annotated[float, AfterValidator(lambda value: min(value, 0.1))] = 0
    in_order: Annotated[list[float], AfterValidator(sorted)] = Field(default_factory=list)
    secret: Annotated[Any, AfterValidator(lambda _: "hidden")] = None


@pytest.mark.parametrize(
    ("json", "kept"),
    [
        (f'{{"some":[{N}]}}', [read(N)]),
        (f'{{"byNumber":{{"1":{N}}}}}', {"1": read(N)}),
        (f'{{"point":{{"x":{N}}}}}', {"x": read(N)}),
        (f'{{"rounded":{N}}}', 0),
        (f'{{"most":{N}}}', 0.1),
        (f'{{"inOrder":[3,{N},2.5]}}', [read(N), 2.5, 3]),
        (f'{{"secret":{N}}}', "hidden"),
    ],
)
def test_what_a_model_makes_of_a_number_stays(json, kept):
    """Where it is still the number that came, the exact one is kept."""
    [found] = (reader(Floats)(read(json))[name] for name in read(json))
    assert found == (
        kept
        if not isinstance(kept, list) or len(kept) == 1
        else pytest.approx([float(part) for part in kept])
    )


def test_a_set_of_decimals_loses_none():
    class Some(Model):
        numbers: set[Decimal]

    json = f'{{"numbers":[{N},5,7.5,11,3.25]}}'
    kept = reader(Some)(read(json))["numbers"]
    assert sorted(map(Decimal, kept)) == sorted(map(Decimal, (N, "5", "7.5", "11", "3.25")))


@pytest.mark.parametrize("space", [" ", "\t", "\n  "])
def test_a_number_may_stand_after_any_space(space):
    """As some programs print it."""
    assert decode(Bill, f'{{"total"{space}:{space}{AMOUNT}}}').total == Decimal(AMOUNT)
    with pytest.raises(InvalidError):
        decode(Bill, f'{{"more"{space}:{space}{{"a"{space}:{space}NaN}}}}')


def test_contents_may_have_an_infinite_default():
    class Limited(Model):
        limit: float = float("inf")

    assert content_text(Limited, {"limit": 3}) != content_text(Limited, {})
