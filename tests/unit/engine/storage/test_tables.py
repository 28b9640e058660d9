"""What a row of a table can hold: 64 KiB in a property, 1 MiB in all, in UTF-16."""

import pytest

from engine.domain.errors import InvalidError
from engine.domain.messages import utf16_units
from engine.storage.tables import stored_form

UNITS = {
    "nothing": ("", 0),
    "ASCII": ("tea", 3),
    "two bytes": ("é" * 10, 10),
    "three bytes": ("茶" * 10, 10),
    "four bytes": ("🍵" * 10, 20),
    "mixed": ("🍵é" * 10_000, 30_000),
    "half a character": ("\ud83c", 1),
}


@pytest.mark.parametrize("label", UNITS)
def test_a_character_beyond_the_first_65_536_counts_twice(label):
    """So it does in tables, which hold UTF-16."""
    text, units = UNITS[label]
    assert utf16_units(text) == units


FITS = {
    "the longest property": {"X": "x" * 32_768},
    "the longest property of emoji": {"X": "🍵" * 16_384},
    "fifteen of the longest": {f"X{number}": "x" * 32_768 for number in range(15)},
}
TOO_MUCH = {
    "one character more": ({"X": "x" * 32_769}, "X: property-too-long .*32769"),
    "one emoji more": ({"X": "🍵" * 16_385}, "X: property-too-long .*32770"),
    "sixteen of the longest": (
        {f"X{number}": "x" * 32_768 for number in range(16)},
        "row-too-long .*1048576",
    ),
    "sixteen of emoji": (
        {f"X{number}": "🍵" * 16_384 for number in range(16)},
        "row-too-long .*1048576",
    ),
}


@pytest.mark.parametrize("label", FITS)
def test_what_a_row_can_hold_is_written(label):
    """As it is."""
    assert stored_form(FITS[label]) == FITS[label]


@pytest.mark.parametrize("label", TOO_MUCH)
def test_what_no_row_can_hold_is_refused_before_it_is_sent(label):
    """Azure would answer 400 each time, for as long as anybody tried."""
    columns, fault = TOO_MUCH[label]
    with pytest.raises(InvalidError, match=fault):
        stored_form(columns)
