"""A wait with a limit, which prints every half minute what it waits for."""

from __future__ import annotations

import time

REPORT_SECONDS = 30


class WaitLimit:
    """The time limit of a wait for a change."""

    def __init__(self, seconds: int) -> None:
        self.started = self.reported = time.monotonic()
        self.end = self.started + seconds

    def remaining(self) -> float:
        """Return how many seconds are left. Less than zero if the time is over."""
        return self.end - time.monotonic()

    def is_over(self) -> bool:
        return self.remaining() <= 0

    def pause(self, seconds: float, state: str) -> None:
        """Wait a moment. Print the state if nothing was printed for half a minute."""
        now = time.monotonic()
        if now - self.reported >= REPORT_SECONDS:
            self.reported = now
            print("{} ({:.0f} s so far)".format(state, now - self.started))
        time.sleep(seconds)
