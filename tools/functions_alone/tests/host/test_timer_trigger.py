"""Timers: schedules, the first run, no overlap, and what follows a run that took too long."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from functions_alone.faults import LocalCode
from functions_alone.host import timer
from functions_alone.host.errors import HostError
from functions_alone.host.host_json import seconds_of
from functions_alone.host.index import TimerTrigger
from functions_alone.host.timer import TimerListener, parse_schedule
from functions_alone.tests.support.ncrontab import ROWS, SPAN, occurrences


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


def taken(read, refusal):
    """The rows that a parser does not refuse, each with what it makes of the text."""
    for row in ROWS:
        with suppress(refusal):
            yield row, read(row.text)


def test_a_schedule_is_refused_or_read_as_in_azure():
    """No text of Azure's table runs at other times here (ncrontab.tsv, webjobs.md 15)."""
    schedules = list(taken(parse_schedule, HostError))
    assert len(schedules) > 10
    assert [row.text for row, schedule in schedules if not row.is_read_alike(schedule)] == []


def test_a_time_span_is_refused_or_read_as_in_azure():
    """In host.json `24:00:00` would be a day here and 24 days in Azure (webjobs.md 15)."""
    spans = list(taken(seconds_of, ValueError))
    assert spans
    for row, seconds in spans:
        assert (row.kind, row.seconds) == (SPAN, seconds), row.text


@pytest.mark.parametrize("first", range(7))
def test_no_step_in_the_days_of_the_week_reaches_a_seventh_day(first):
    """A step starts at the first day of its range and ends with the last, or on Saturday."""
    for step, last in product(range(1, 8), (None, *range(first, 7))):
        days = f"{first}/{step}" if last is None else f"{first}-{last}/{step}"
        try:
            schedule = parse_schedule(f"0 0 9 * * {days}")
        except HostError:
            continue
        read = {time.isoweekday() % 7 for time in occurrences(schedule, 8)}
        assert read == set(range(first, (6 if last is None else last) + 1, step)), days


@pytest.mark.parametrize(
    "schedule",
    ["0 5/15 * * * *", "*/5 * * * *", "0 0 9 * * mon-FRI/2", "0 0 0 */2 * 1-5", "1.12:00:00"],
)
def test_what_both_read_alike_is_taken(schedule):
    """A host that refuses everything would pass the table."""
    parse_schedule(schedule)


@pytest.mark.parametrize("schedule", ["", "* *", "61 * * * * *", "00:00:00", "1:2"])
def test_bad_schedules(schedule):
    """What is no schedule is refused."""
    with pytest.raises(HostError) as caught:
        parse_schedule(schedule)
    [fault] = caught.value.faults
    assert (fault.code, fault.place) == (LocalCode.SCHEDULE_INVALID, f"schedule {schedule!r}")


def test_a_timer_runs_again_and_again_but_never_twice_at_a_time(host):
    """Not even where a run takes longer than the interval; the function is told nothing of past times."""
    finished = host.wait_for("timer", lambda seen: len(seen) == 3)
    assert host.running("timer")[1] == 1
    assert [(run["past_due"], run["status"]) for run in finished] == [(False, {})] * 3


async def test_the_next_time_counts_from_the_start_of_a_run():
    """So one that missed it is followed by another at once, however many times it missed."""
    moments, runs, stopping = [], [], asyncio.Event()

    class Called:
        async def succeeds(self, _timer, _metadata):
            began = datetime.now(UTC)
            await asyncio.sleep(0.02)
            runs.append((began, datetime.now(UTC)))
            if len(runs) == 3:
                stopping.set()

    def every_hundredth_second(moment):
        moments.append(moment)
        return moment + timedelta(seconds=0.01)

    trigger = TimerTrigger(schedule="00:00:01", run_on_startup=True, connection="")
    listener = TimerListener(trigger=trigger, call=Called())
    listener._next_after = every_hundredth_second
    await listener.run(stopping)
    assert all(moment <= began for moment, (began, _) in zip(moments, runs, strict=True))


@pytest.mark.parametrize("back", [timedelta(0), timedelta(hours=1), timedelta(days=400)])
@pytest.mark.parametrize("schedule", ["00:00:01", "* * * * * *"])
async def test_a_clock_that_is_set_back_delays_no_timer(monkeypatch, schedule, back):
    """It fires within one interval, and a look at the clock, by whatever time it is now."""
    runs, stopping, waits = [], asyncio.Event(), []
    clock = SetClock(datetime(2026, 1, 1, 12, 0, tzinfo=UTC))

    async def wait(_, seconds):
        waits.append(seconds)
        if len(waits) == 1:
            clock.time -= back
        clock.time += timedelta(seconds=seconds)

    class Called:
        async def succeeds(self, *_):
            runs.append(clock.time)
            stopping.set()

    monkeypatch.setattr(timer, "datetime", clock)
    monkeypatch.setattr(timer, "pause", wait)
    trigger = TimerTrigger(schedule=schedule, run_on_startup=False, connection="")
    async with asyncio.timeout(5):
        await TimerListener(trigger=trigger, call=Called()).run(stopping)
    assert len(runs) == 1
    assert sum(waits) <= 3


class SetClock:
    """A clock that a test sets."""

    def __init__(self, time):
        self.time = time

    def now(self, _):
        return self.time
