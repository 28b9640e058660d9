"""What the functions of timers keep to.

Azure counts a timer's next time from when a run began. A run that lasts longer than until then is followed by another
at once, so work that has become slow would go on without a pause, however seldom it is meant to run.
"""

import logging
import math
import time
from collections.abc import Awaitable, Callable

from entrypoints.functions import next_time

log = logging.getLogger(__name__)

AT_ONCE_SECONDS = 0.2
"""What Azure needs from the end of a run to the beginning of one that was due before."""
SHORTEST_INTERVAL_SECONDS = 1.0
"""No schedule comes more often, so a shorter run has missed nothing."""

_long_run_ended: dict[str, float] = {}
"""When the last run of a function ended, if it was long; each process knows of its own."""


async def in_turn(
    function: str, work: Callable[[], Awaitable[object]], monotonic: Callable[[], float] = time.monotonic
) -> None:
    """Do the work of a periodic function, unless it only comes because the run before took too long.

    Such a run gives up its turn, and the timer comes again at its next regular time; no two turns are given up in
    sequence. While something is away a run ends early, without an error.
    """
    began = monotonic()
    if began - _long_run_ended.pop(function, -math.inf) < AT_ONCE_SECONDS:
        log.info("timer.overran", extra={"function": function})
        return
    try:
        async with next_time(function):
            await work()
    finally:
        if (ended := monotonic()) - began >= SHORTEST_INTERVAL_SECONDS:
            _long_run_ended[function] = ended
