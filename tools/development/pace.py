"""Measures how slow this machine is, so that the embedded run stretches its time limits."""

import asyncio
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

WORK = 400_000
USUAL_SECONDS = 0.02
"""How long the work takes on an ordinary idle machine."""
FASTEST, SLOWEST = 1.5, 6
"""The limits of the factor. Below the first one nothing is changed. Above the second one the machine is too slow."""
EVERY_SECONDS = 1.0
"""The pause between two measurements."""
REMEMBERED = 30
"""How many measurements count. So the factor falls half a minute after the machine is idle again."""


def seconds_of_work() -> float:
    """Return how long a fixed piece of work takes now, including the effect of other processes."""
    began = time.perf_counter()
    for _ in range(WORK):
        pass
    return time.perf_counter() - began


def slowdown(recent: Sequence[float]) -> int:
    """Return the factor for time limits, from the seconds of the last measurements.

    One slow measurement in ten does not count, because an idle machine has such moments.
    """
    slow = sorted(recent)[math.ceil(0.9 * len(recent)) - 1] / USUAL_SECONDS
    return 1 if slow < FASTEST else min(math.ceil(slow), SLOWEST)


@dataclass(kw_only=True)
class Pace:
    """Measures the machine repeatedly, and writes the factor to a file that the hosts read."""

    file: Path
    say: Callable[[str], None]
    measure: Callable[[], float] = seconds_of_work
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _recent: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    _reported: int = 1
    """The largest factor that was reported since the machine was fast enough."""

    async def keep(self) -> None:
        """Measure and write until it is cancelled."""
        while True:
            self._recent.append(self.measure())
            factor = slowdown(self._recent)
            self._write(factor)
            self._report(factor)
            await self.sleep(EVERY_SECONDS)

    def _write(self, factor: int) -> None:
        draft = self.file.with_suffix(".new")
        with suppress(OSError):
            draft.write_text(str(factor))
            draft.replace(self.file)

    def _report(self, factor: int) -> None:
        if factor > self._reported:
            self.say(f"this machine is busy: new steps may take {factor} times as long as usual")
            self._reported = factor
        elif factor == 1 and self._reported > 1:
            self.say("this machine is no longer busy: new steps have their usual time again")
            self._reported = 1
