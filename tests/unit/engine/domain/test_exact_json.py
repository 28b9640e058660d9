"""Numbers in JSON: which are read as they stand there, and which are refused."""

from decimal import Decimal
from types import MappingProxyType

import pytest

from engine.domain.digests import digest_of
from engine.domain.exact_json import ExactNumber, read, write
from tests.support.json_numbers import EXACT, NUMBERS, REFUSED, exact


@pytest.mark.parametrize("number", EXACT)
def test_a_number_is_written_as_the_one_that_was_read(number):
    for is_ascii in (True, False):
        assert exact(write([read(f"[{number}]")], is_ascii=is_ascii)) == [[Decimal(number)]]


def test_only_a_number_that_a_float_would_round_is_no_float():
    found = read('[0.1, 1.10, 12345678901234567.89, "1.5", 1e300]')
    assert list(map(type, found)) == [float, float, ExactNumber, str, float]


@pytest.mark.parametrize("number", REFUSED)
def test_what_is_no_number_is_refused(number):
    with pytest.raises(ValueError, match="no number"):
        read(f"[{number}]")


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_what_is_no_number_is_not_written(number):
    with pytest.raises(ValueError, match="not JSON compliant"):
        write([number])


def test_what_is_no_text_is_refused():
    with pytest.raises(ValueError, match="no JSON that can be read: TypeError"):
        read(None)


def test_json_is_compact():
    """A mapping of any kind is an object."""
    assert (
        write({"a": MappingProxyType({"b": "\u00e9"}), "c": [1, 2]})
        == '{"a":{"b":"\u00e9"},"c":[1,2]}'
    )


@pytest.mark.parametrize(("number", "integer"), NUMBERS["integers"].items())
def test_a_number_without_a_fraction_is_an_integer(number, integer):
    found = read(f"[{number}]")[0]
    assert (type(found), found) == (int, integer)


@pytest.mark.parametrize("number", NUMBERS["notIntegers"])
def test_a_number_with_a_fraction_is_no_integer(number):
    assert not isinstance(read(number), int)


def test_equal_numbers_have_one_digest_however_they_are_written():
    one, same, other = map(read, ("[1234567890123456.78]", "[1234567890123456.780]", "[1.5]"))
    assert digest_of(one) == digest_of(same) != digest_of(other)
    assert digest_of(read("[9007199254740993.0]")) == digest_of([9007199254740993])
    near = read("[9007199254740992.0]")
    assert digest_of(near) != digest_of(read("[9007199254740993.0]"))
    assert digest_of(one) != digest_of(["1234567890123456.78"])
    assert digest_of(read("0.12345678901234567891")) != digest_of(["0.12345678901234567891"])
    digits = "1234567890" * 4
    assert digest_of(read(f"[0.{digits}1]")) != digest_of(read(f"[0.{digits}2]"))
    assert digest_of(read(f"[0.{digits}1]")) == digest_of(read(f"[0.{digits}10]"))


def test_large_numbers_are_integers_up_to_a_limit():
    """Below it a number with a fraction of zeros is one, as JavaScript writes it."""
    small, large = read("[999999999999999999999.0]")[0], read("[1e21]")[0]
    assert (type(small), small) == (int, 999999999999999999999)
    assert type(large) is float


def test_minus_zero_stays():
    assert write(read("[-0.0]")) == "[-0.0]"
