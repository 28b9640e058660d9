"""An event loop on a clock that a test controls. Time passes only if nothing is left to do."""

import asyncio
import math
import selectors
from asyncio.events import _get_running_loop, _set_running_loop
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from typing import Any, TypeVar

T = TypeVar("T")

MICROSECOND = timedelta(microseconds=1)


class _Skipping(selectors.SelectSelector):
    """Waits for nothing, and reports the time for which it should wait."""

    def __init__(self, skip: Callable[[float | None], None]) -> None:
        super().__init__()
        self._skip = skip

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._skip(timeout)
        return super().select(0)


class HeldLoop(asyncio.SelectorEventLoop):
    """Runs up to a moment of its own clock, and stops there.

    A sleep or a time-out ends when the clock reaches its time. Work must not wait for threads or
    sockets, because these take real time.
    """

    def __init__(self, begins: datetime) -> None:
        self._begins = begins
        self._elapsed = 0  # microseconds
        self._until = 0
        super().__init__(_Skipping(self._pass))
        self._clock_resolution = 1e-6  # what is due within this time is due now

    def time(self) -> float:
        """Return the seconds since the beginning."""
        return self._elapsed / 1e6

    def now(self) -> datetime:
        return self._begins + self._elapsed * MICROSECOND

    def run_until(self, moment: datetime) -> None:
        """Do everything that happens up to and including this moment."""
        self._until = (moment - self._begins) // MICROSECOND
        self.run_forever()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of work that takes no time. Raises RuntimeError if it takes time."""
        task = self.create_task(work)
        self.run_until(self.now())
        if not task.done():
            task.cancel()
            raise RuntimeError("the work waits for something, and the clock stands still")
        return task.result()

    def end(self) -> None:
        """Cancel all running work, and close the loop."""
        if self.is_closed():
            return
        # This may run at any time in a garbage collection, while another loop is running.
        outside = _get_running_loop()
        _set_running_loop(None)
        try:
            self.run_until(self.now())  # so that everything has begun: nothing warns of it
            for task in asyncio.all_tasks(self):
                task.cancel()
            self.run_until(self.now())
            self.close()
        finally:
            _set_running_loop(outside)

    def _pass(self, seconds: float | None) -> None:
        """Advance the clock while nothing happens, but not beyond the moment to run until."""
        if seconds is not None and seconds <= 0:
            return
        wakes = math.inf if seconds is None else round(seconds * 1e6)
        if self._elapsed + wakes <= self._until:
            self._elapsed += int(wakes)
        else:
            self._elapsed = self._until
            self.stop()
