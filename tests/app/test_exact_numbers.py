"""Numbers are kept as they came, wherever they enter; what is no number is refused there."""

from decimal import Decimal

import pytest

from engine.domain.errors import InvalidError
from tests.support.entry_points import ENTRY_POINTS, REFUSALS, with_fields
from tests.support.json_numbers import EXACT, REFUSED, exact


@pytest.mark.parametrize("name", ENTRY_POINTS)
@pytest.mark.parametrize("number", EXACT)
def test_a_number_is_kept_as_it_came(name, number):
    """`bugs 2`, `bugs 12`, `P7`: it passes through no type that cannot hold it."""
    text = with_fields(n=number, inside=f'[{{"n":{number}}}]', text=f'"{number}"')
    kept = exact(ENTRY_POINTS[name](text))
    wanted = Decimal(number)
    assert (kept["n"], kept["inside"]) == (wanted, [{"n": wanted}])
    assert kept["text"] == number


@pytest.mark.parametrize("name", ENTRY_POINTS)
@pytest.mark.parametrize("number", REFUSED)
def test_what_is_no_number_is_refused(name, number):
    """`bugs 6`, `engine 20`: it was told "recorded", and kept as null."""
    with pytest.raises(REFUSALS) as refused:
        ENTRY_POINTS[name](with_fields(n=number))
    if isinstance(refused.value, InvalidError):
        assert [fault.code for fault in refused.value.faults] == ["no-json"]


@pytest.mark.parametrize("name", sorted(ENTRY_POINTS.keys() - {"copy"}))  # a column holds any text
@pytest.mark.parametrize("text", ["", "nothing", "[1]", "1", '{"n":1', '{"n":1}{}', "[" * 5000])
def test_what_is_no_object_is_refused(name, text):
    """With an error that says so, and no traceback."""
    with pytest.raises(REFUSALS):
        ENTRY_POINTS[name](text)
