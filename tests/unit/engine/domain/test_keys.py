"""Times in keys: they sort as the times do, and what is no such time is none."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from engine.azure.clock import order_ids
from engine.domain.keys import (
    LAST,
    history_range,
    is_checked,
    made_at,
    newest_first,
    sortable,
    time_of,
    with_check,
)
from engine.domain.keys import ORDER_ID as ORDER_IDS
from tests.support.builders import NOW, ORDER_ID

TIMES = [
    datetime(1970, 1, 1, tzinfo=UTC),
    datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
    NOW,
    NOW + timedelta(microseconds=1),
    NOW + timedelta(days=365),
    datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
]


def test_a_time_is_read_as_it_was_written():
    """To the microsecond, whatever its zone."""
    assert [time_of(sortable(time)) for time in TIMES] == TIMES
    assert sortable(NOW.astimezone(timezone(timedelta(hours=5, minutes=30)))) == sortable(NOW)
    assert sortable(TIMES[0]) == "1970-01-01T00:00:00.000000Z"


def test_texts_sort_as_the_times_do():
    """The earliest first, or the latest."""
    assert sorted(map(sortable, TIMES)) == list(map(sortable, TIMES))
    latest_first = sorted(TIMES[1:], reverse=True)
    assert sorted(map(newest_first, TIMES[1:])) == list(map(newest_first, latest_first))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "later",
        "2026-01-31",
        "2026-01-31T08:15:00Z",
        "2026-01-31T08:15:00.000000+00:00",
        "2026-01-31T08:15:00.000000",
        "0001-01-01T00:00:00.000000+05:00",
        "9999-12-31T23:59:59.999999-05:00",
    ],
)
def test_a_text_in_another_form_is_no_time(text):
    """Its place among the others would be wrong."""
    with pytest.raises(ValueError, match=r"time|isoformat"):
        time_of(text)


@pytest.mark.parametrize(
    "order_id",
    ["", ORDER_ID[1:], f"{ORDER_ID}x", "b00-7" + "Z" * 25, "b00-8" + "Z" * 25],
)
def test_an_id_that_was_made_at_no_time_is_shown_without_one(order_id):
    """As one that somebody has typed, or a time beyond all that there are."""
    assert made_at(order_id) is None


def test_an_id_of_this_app_is_known_by_its_check_characters():
    """Newcomer B4: another one was never made here, whatever it looks like."""
    made = with_check(ORDER_ID)
    assert (made[:-4], with_check(made)) == (ORDER_ID[:-4], made)
    assert ORDER_IDS.fullmatch(made)
    assert is_checked(made)
    other = "b01" if made.startswith("b00") else "b00"
    for wrong in ("", ORDER_ID, made[1:], made.lower(), f"{other}{made[3:]}", f"{made[:-1]}U"):
        assert not is_checked(wrong)
    assert not is_checked(with_check("b00-7" + "Z" * 25))


def test_an_id_stays_known_whatever_version_made_it():
    """The check characters are in links and mails."""
    assert with_check("b00-01K0000000000000000000000A") == "b00-01K0000000000000000000TME2"


def test_the_history_of_an_order_is_a_range_of_rows():
    assert history_range("o") == ("o|history|", f"o|history|{LAST}")
    assert history_range("o", 7) == ("o|history|", f"o|history|000007|{LAST}")


def test_an_id_says_when_it_was_made():
    made = made_at("b00-01KB0Z6Y3D8QF5N7V2XWJ4T9RM")
    assert made is not None
    assert made.year == 2025


def test_many_ids_of_one_moment_are_different():
    """Each ends with check characters, and is as hard to guess as the others."""
    new_order_id = order_ids(1)
    made = {new_order_id() for _ in range(1000)}
    assert len(made) == 1000
    assert all(map(is_checked, made))
