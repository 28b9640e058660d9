"""Exact numbers in every shape that a model can give to JSON."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel, RootModel

from engine.domain.exact_json import read
from engine.domain.exact_models import as_json, read_as

LONG = "0.1000000000000000000001"
"""A number that a float would round."""


class Amounts(RootModel[list[Decimal]]):
    """Numbers without a name."""


@dataclass
class Price:
    """A price that is no model."""

    amount: Decimal


@dataclass(slots=True)
class Discount:
    """A number in a record without a dictionary."""

    amount: Decimal


class Pair(NamedTuple):
    """Two values, of which the second may be anything."""

    unit: str
    value: Any


class Bill(BaseModel):
    """A bill with decimals at each kind of place."""

    total: Decimal = Decimal(0)
    by_name: dict[str, Decimal] = {}
    price: Price = Price(Decimal(0))
    discount: Discount = Discount(Decimal(0))
    amounts: Amounts = Amounts([])
    pair: Pair = Pair("", 0)
    parts: list[Any] = []


EXACT = {
    "a field": (f'{{"total":{LONG}}}', lambda bill: bill.total),
    "a mapping": (f'{{"by_name":{{"a":{LONG}}}}}', lambda bill: bill.by_name["a"]),
    "a dataclass": (f'{{"price":{{"amount":{LONG}}}}}', lambda bill: bill.price.amount),
    "a dataclass with slots": (
        f'{{"discount":{{"amount":{LONG}}}}}',
        lambda bill: bill.discount.amount,
    ),
    "a model of a list": (f'{{"amounts":[{LONG}]}}', lambda bill: bill.amounts.root[0]),
}


@pytest.mark.parametrize("label", EXACT)
def test_a_decimal_has_all_digits_wherever_it_stands(label):
    """Pydantic alone would make it of a float."""
    text, found = EXACT[label]
    assert found(read_as(Bill, read(text))) == Decimal(LONG)


def test_a_named_tuple_stays_one():
    """Its parts keep their names."""
    assert type(read_as(Bill, read(f'{{"pair":["kg",{LONG}]}}')).pair) is Pair


def test_what_an_option_leaves_out_changes_no_number_beside_it():
    """The numbers that came are looked for with the same options."""
    bill = read_as(Bill, read(f'{{"parts":[1,{LONG}]}}'))
    assert as_json(bill, include={"parts": {1}}) == {"parts": [read(LONG)]}
