"""Timers: schedules, the first run, no overlap, and what follows a run that took too long."""

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from waiting import until

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
    """Not even where a run takes longer than the interval; the function is told nothing of past times."""
    told = host.wait_for("timer", lambda seen: len(seen) == 3)
    assert host.running("timer")[1] == 1
    assert [(each["past_due"], each["status"]) for each in told] == [(False, {})] * 3


async def test_the_next_time_counts_from_the_start_of_a_run():
    """So one that missed it is followed by another at once, however many times it missed."""
    asked_for, runs, stopping = [], [], asyncio.Event()

    class Called:
        async def succeeds(self, _timer, _metadata):
            began = datetime.now(UTC)
            await asyncio.sleep(0.02)
            runs.append((began, datetime.now(UTC)))
            if len(runs) == 3:
                stopping.set()

    def every_hundredth_second(moment):
        asked_for.append(moment)
        return moment + timedelta(seconds=0.01)

    trigger = TimerTrigger(schedule="00:00:01", run_on_startup=True, connection="")
    listener = TimerListener(trigger=trigger, call=Called())
    listener._next_after = every_hundredth_second
    await listener.run(stopping)
    assert all(moment <= began for moment, (began, _) in zip(asked_for, runs, strict=True))


def test_a_function_that_keeps_to_its_turns_does_not_run_back_to_back(start_host):
    """It comes at once after a run that took too long, gives that up, and begins anew at a regular time."""
    host = start_host("tick", TICK="* * * * * *", TICK_DOES="turn 1.3")

    def given_up_and_next():
        return [(call, after) for call, after in pairwise(host.seen("timer")) if "turn" not in call]

    call, after = until(given_up_and_next)[0]
    assert after.get("turn")
    assert int(after["at"]) > int(call["at"])
