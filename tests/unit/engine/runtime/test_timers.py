"""What timers do under Azure's rule, by which a long run is followed by another at once."""

import math

import pytest

from engine.domain.errors import UnavailableError
from engine.runtime.functions import skip_overlapping_runs

LATENCY = 0.05
"""From the end of a run to the beginning of the next, on Azure."""


class Timer:
    """Fires a function by Azure's rule: at the first time of the schedule after the last start."""

    def __init__(self, name, interval, lasts):
        self.name, self.interval, self.lasts = name, interval, lasts
        self.now = 0.0
        self.fired, self.runs = [], []

    async def work(self):
        began = self.now
        self.now += self.lasts
        self.runs.append((began, self.now))

    async def fire(self, times):
        for _ in range(times):
            began = self.now
            self.fired.append(began)
            await skip_overlapping_runs(self.name, self.work, lambda: self.now)
            due = (math.floor(began / self.interval) + 1) * self.interval
            self.now = max(due, self.now + LATENCY)


@pytest.mark.parametrize(
    ("interval", "lasts"), [(1, 1.3), (1, 1.86), (2, 2.5), (30, 35), (30, 300)]
)
async def test_a_run_that_takes_too_long_is_followed_by_one_at_a_regular_time(interval, lasts):
    """Back to back it never runs, and no two times in sequence are left out."""
    timer = Timer(f"slow {interval} {lasts}", interval, lasts)
    await timer.fire(20)
    assert len(timer.runs) == 10
    assert [began % interval for began, _ in timer.runs] == [0] * 10
    ends = [ended for _, ended in timer.runs]
    assert all(
        began - ended <= interval for ended, (began, _) in zip(ends, timer.runs[1:], strict=False)
    )


@pytest.mark.parametrize(("interval", "lasts"), [(1, 0.1), (1, 0.95), (2, 1.7), (30, 29.7)])
async def test_a_run_that_is_in_time_costs_no_turn(interval, lasts):
    """However little is left of its interval, but for the moment that Azure needs itself."""
    timer = Timer(f"quick {interval} {lasts}", interval, lasts)
    await timer.fire(20)
    assert len(timer.runs) == 20


async def test_a_run_that_fails_late_is_followed_by_a_pause_too():
    """A lasting outage, or a bug, makes no run back to back; each function has its own turns."""
    now, done = 0.0, []

    def failing(error):
        async def work():
            nonlocal now
            now += 5
            done.append(error)
            raise error

        return work

    for _ in range(2):
        await skip_overlapping_runs("away", failing(UnavailableError("store away")), lambda: now)
    with pytest.raises(KeyError):
        await skip_overlapping_runs("wrong", failing(KeyError("a bug")), lambda: now)
    await skip_overlapping_runs("wrong", failing(KeyError("a bug")), lambda: now)
    assert len(done) == 2
