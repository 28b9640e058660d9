"""One log line when a dependency fails, one when it is back, and the pause between tries."""

import asyncio
import logging
from dataclasses import dataclass

FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 5.0

_log = logging.getLogger("functions_alone.host")


@dataclass(kw_only=True)
class Outage:
    """Records whether one dependency can be reached. `what` names it, for example a queue."""

    what: str
    _pause: float = 0.0

    def failed(self, error: BaseException) -> float:
        """Record a failed try. Return the seconds to wait before the next."""
        if not self._pause:
            _log.warning(
                "%s is away, trying again until it is back: %s", self.what, in_a_few_words(error)
            )
        self._pause = longer(self._pause)
        return self._pause

    def recovered(self) -> None:
        """Record a successful try."""
        if self._pause:
            _log.warning("%s is back", self.what)
            self._pause = 0.0


def longer(pause: float) -> float:
    """Return the seconds to wait after one more failure."""
    return min(max(pause * 2, FIRST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)


def in_a_few_words(error: BaseException) -> str:
    """Return the first line of an error, shortened. Of several errors it takes the first."""
    if isinstance(error, BaseExceptionGroup):
        return in_a_few_words(error.exceptions[0])
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:160]}" if text else type(error).__name__


async def pause(stopping: asyncio.Event, seconds: float) -> None:
    """Wait, but not longer than until the host stops."""
    try:
        async with asyncio.timeout(seconds):
            await stopping.wait()
    except TimeoutError:
        return
