"""Timers: schedules, the first run, no overlap."""

from datetime import UTC, datetime

import pytest

from local.host.errors import HostError
from local.host.timer import parse_schedule


@pytest.mark.parametrize(
    ("schedule", "due"),
    [
        ("*/5 * * * * *", "12:34:40"),
        ("30 */5 * * * *", "12:35:30"),
        ("0 0 13 * * MON-FRI", "13:00:00"),
        ("00:00:02", "12:34:38"),
    ],
)
def test_schedules(schedule, due):
    """NCRONTAB has seconds first; a time span counts from now."""
    now = datetime(2026, 1, 1, 12, 34, 36, tzinfo=UTC)
    assert parse_schedule(schedule)(now).strftime("%H:%M:%S") == due


@pytest.mark.parametrize("schedule", ["", "* *", "61 * * * * *", "00:00:00", "1:2"])
def test_bad_schedules(schedule):
    """What is no schedule is refused."""
    with pytest.raises(HostError):
        parse_schedule(schedule)


def test_a_timer_runs_again_and_again_but_never_twice_at_a_time(host):
    """Runs that take longer than the interval skip what they missed."""
    seen = host.wait_for("timer", lambda seen: len(seen) == 3)
    assert seen[0] == {"past_due": False}
    assert host.call("/seen/timer").json()["highest"] == 1
