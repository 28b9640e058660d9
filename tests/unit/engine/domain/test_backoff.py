"""The pauses between attempts, after failures (SUP-3) and after what counts as none (SCH-16)."""

from datetime import timedelta

import pytest

from engine.domain.backoff import interval_after, longest_retry_pause, next_start, retry_pause
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


SHORT = timedelta(seconds=30)


@pytest.mark.parametrize(
    ("failures", "most"),
    [(0, 0), (1, 0), (2, 30), (3, 60), (4, 120), (5, 240), (6, 300), (10**9, 300)],
)
def test_the_longest_retry_pause_doubles_with_each_failure(failures, most):
    """From the timeout of an attempt, after the second failure, up to the step's own limit."""
    found = longest_retry_pause(failures, timeout=SHORT, longest=5 * MINUTE)
    assert found == timedelta(seconds=most)


def test_each_request_pauses_for_a_part_of_it_from_none_to_all():
    """Full jitter: requests that fail together come apart; the same one pauses as long again."""
    rules = {"timeout": SHORT, "longest": 5 * MINUTE}
    pauses = [retry_pause(3, request=f"b00-{number}", **rules) for number in range(200)]
    assert all(timedelta() <= pause < MINUTE for pause in pauses)
    assert len(set(pauses)) == len(pauses)
    assert min(pauses) < MINUTE / 10 < MINUTE * 9 / 10 < max(pauses)
    assert retry_pause(3, request="b00-7", **rules) == pauses[7]
    assert retry_pause(1, request="b00-7", **rules) == timedelta()
