"""Amounts of money: exact texts, with the decimals of their currency."""

from decimal import Decimal

import pytest

from engine.domain.errors import InvalidError
from engine.domain.exact_json import read
from engine.domain.exact_models import as_json
from engine.domain.messages import decode
from engine.workflow import Model, Money
from engine.workflow.model import recorded


class Bill(Model):
    total: Money


def of(amount, currency):
    return f'{{"total":{{"amount":{amount},"currency":"{currency}"}}}}'


@pytest.mark.parametrize(
    ("amount", "currency"),
    [("14.00", "EUR"), ("14", "EUR"), ("-0.5", "EUR"), ("500", "JPY"), ("1.234", "BHD"),
     ("12345678901234.56", "IDR"), ("0.0001", "CLF"), ("1.99", "HRK")],
)  # fmt: skip
def test_an_amount_is_kept_as_it_came(amount, currency):
    body = of(f'"{amount}"', currency)
    for found in (decode(Bill, body), recorded(Bill, read(body))):
        assert (found.total.value, found.total.currency) == (Decimal(amount), currency)
        assert as_json(found) == read(body)


@pytest.mark.parametrize(
    ("amount", "currency", "code"),
    [
        ('"14.001"', "EUR", "too-many-decimals"),
        ('"500.0"', "JPY", "too-many-decimals"),
        ('"14.00"', "EUX", "unknown-currency"),
        ('"14.00"', "eur", "string_pattern_mismatch"),
        ('"1e2"', "EUR", "string_pattern_mismatch"),
        ('"14,00"', "EUR", "string_pattern_mismatch"),
        ('"\u0661\u0664.00"', "EUR", "string_pattern_mismatch"),
        ('"14.00\\n"', "EUR", "string_pattern_mismatch"),
        ('"NaN"', "EUR", "string_pattern_mismatch"),
        ("14.00", "EUR", "string_type"),
    ],
)
def test_what_is_no_amount_is_refused(amount, currency, code):
    with pytest.raises(InvalidError) as refused:
        decode(Bill, of(amount, currency))
    assert [fault.code for fault in refused.value.faults] == [code]


@pytest.mark.parametrize(
    ("value", "currency", "amount"),
    [("14", "EUR", "14.00"), ("1E+2", "EUR", "100.00"), ("500.0", "JPY", "500"), ("-1.5", "KWD", "-1.500"), ("-0", "EUR", "0.00")],
)  # fmt: skip
def test_an_amount_is_made_with_all_decimals_of_its_currency(value, currency, amount):
    assert Money.of(Decimal(value), currency).amount == amount


@pytest.mark.parametrize(
    ("value", "currency"),
    [
        ("14.001", "EUR"),
        ("123456789012345.0000000000000000001", "EUR"),
        ("0.01000000000000000000000000000000001", "EUR"),
        ("1e1000000", "EUR"),
        ("sNaN", "EUR"),
        ("0.5", "JPY"),
        ("1", "EUX"),
        ("NaN", "EUR"),
    ],
)
def test_nobody_rounds_money_but_the_author(value, currency):
    with pytest.raises(ValueError, match=r"decimals|unknown|pattern"):
        Money.of(Decimal(value), currency)
