"""Timers: schedules, the first run, no overlap."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from local.host.errors import HostError
from local.host.index import TimerTrigger
from local.host.timer import TimerListener, parse_schedule


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
    host.wait_for("timer", lambda seen: len(seen) == 3)
    assert host.running("timer")[1] == 1


@pytest.mark.parametrize(("late", "past_due"), [(-0.5, False), (0.0, False), (2.0, True)])
async def test_a_run_that_is_late_is_past_due(late, past_due):
    """The function is told when more than a second went by since it was due."""
    told = []

    class Called:
        async def succeeds(self, timer, metadata):
            told.append(json.loads(timer.value)["IsPastDue"])

    trigger = TimerTrigger(schedule="0 0 0 1 1 *", run_on_startup=False)
    await TimerListener(trigger=trigger, call=Called())._fire(datetime.now(UTC) - timedelta(seconds=late))
    assert told == [past_due]
