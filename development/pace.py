"""How slow this machine is at the moment, so that a demonstration gives each step the time that it takes here."""

import math
import time
from collections.abc import Mapping

WORK = 4_000_000
USUAL_SECONDS = 0.2
"""What that much work takes on an ordinary machine with nothing else to do."""
FASTEST, SLOWEST = 1.5, 6.0
"""Below the first nothing is changed; above the second a machine is too slow to watch anything on it."""


def slowness() -> float:
    """Return by how much a piece of work takes longer than usual, also because of what else runs here."""
    began = time.perf_counter()
    for _ in range(WORK):
        pass
    return (time.perf_counter() - began) / USUAL_SECONDS


def at_this_pace(slow: float, usual: Mapping[str, str]) -> Mapping[str, str]:
    """Return the times of steps and calls, in seconds, for a machine that is so slow; nothing for one that is not."""
    if slow < FASTEST:
        return {}
    names = ("STEP_TIMEOUT_SECONDS", "REMOTE_CALL_TIMEOUT_SECONDS")
    return {name: str(math.ceil(float(usual[name]) * min(slow, SLOWEST))) for name in names}
