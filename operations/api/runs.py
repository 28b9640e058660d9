"""Operators run the work of a timer themselves, while the timer does not run (SUP-7)."""

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from engine.http.models import View
from operations.api.requests import OperatorRequest

log = logging.getLogger(__name__)


class Ran(View):
    """A finished run of a timer."""

    run: str
    seconds: float
    """How long it took."""


@dataclass(frozen=True, kw_only=True)
class RunService:
    """Runs the work of the app's timers on request."""

    work: Mapping[str, Callable[[], Awaitable[object]]]
    """The work of each timer, by its name in `engine.decisions.operator_actions.RUNS`."""
    monotonic: Callable[[], float] = time.monotonic

    async def run(self, name: str, request: OperatorRequest) -> Ran:
        """Run the work now; a concurrent run of the timer does no harm.

        The log names the operator before the work begins. Raises `UnavailableError`.
        """
        about = {"run": name, "operator": request.operator, "note": request.note}
        log.info("operators.ran", extra=about)
        began = self.monotonic()
        await self.work[name]()
        return Ran(run=name, seconds=round(self.monotonic() - began, 1))
