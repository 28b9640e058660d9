"""The pause after attempts that counted as no failure (SCH-16)."""

from datetime import timedelta

import pytest

from engine.domain.backoff import interval_after, next_start
from tests.support.engine_records import HOUR, NOW

SHORTEST, MINUTE = timedelta(seconds=0.25), timedelta(minutes=1)


@pytest.mark.parametrize("uncounted", [1, 2, 11, 12, 13, 10**9])
def test_the_pause_grows_up_to_five_minutes(uncounted):
    """From a quarter of a second, twice as long each time; the number has no bound."""
    assert interval_after(uncounted) == min(SHORTEST * 2 ** min(uncounted - 1, 20), 5 * MINUTE)


def test_the_pause_counts_from_the_start_of_the_attempt():
    """It is none once it has passed, unless the reply asks for one."""
    started = NOW - timedelta(seconds=1)
    assert next_start(started, NOW, 3) is None
    assert next_start(started, NOW, 4) == NOW + timedelta(seconds=1)
    assert next_start(started, NOW, 4, HOUR) == NOW + HOUR
