"""Compares this process's clock with the clock of Table Storage, whose answers contain its time."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from azure.core.pipeline import PipelineRequest, PipelineResponse

from engine.azure.clock import utc_now
from engine.domain.clocks import DECISIVE, ClockSample, ClockSkew, SkewDetector
from engine.domain.errors import UnavailableError
from engine.ports import Clock

RECENT_SECONDS = 5.0
"""For this time after an answer, no request is sent only to compare the clocks."""

SENT = "sent_at"
"""The key in a request's context for the time when it was sent."""


class StoreClock:
    """Compares the clocks with each answer, through two hooks of the SDK."""

    def __init__(
        self,
        tolerance: timedelta,
        clock: Clock = utc_now,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._detector = SkewDetector(tolerance)
        self._clock = clock
        self._monotonic = monotonic
        self._answered_at = -math.inf
        self._asking = asyncio.Lock()

    def before_request(self, request: PipelineRequest[Any]) -> None:
        """Record when a request is sent, for each of its attempts."""
        request.context[SENT] = self._clock(), self._monotonic()

    def after_response(self, response: PipelineResponse[Any, Any]) -> None:
        """Compare the clocks, if the answer contains a time."""
        sent, began = response.context[SENT]
        received, ended = self._clock(), self._monotonic()
        self._answered_at = ended
        date = _date_of(response.http_response.headers.get("Date"))
        if date:
            took = timedelta(seconds=ended - began)
            self._detector.saw(ClockSample(date=date, sent=sent, received=received, took=took))

    async def skew(self, ask: Callable[[], Awaitable[Any]]) -> ClockSkew | None:
        """Return the skew, as `ClockCheck` does.

        `ask` sends any request, if no answer is recent.
        """
        async with self._asking:  # concurrent callers use the same answers
            if self._monotonic() - self._answered_at > RECENT_SECONDS:
                await self._compare(ask)
        return self._detector.skew

    async def _compare(self, ask: Callable[[], Awaitable[Any]]) -> None:
        """Send requests until the answers agree, at most `DECISIVE` times.

        A refusal has a time, too.
        """
        for _ in range(DECISIVE):
            with suppress(UnavailableError):
                await ask()
            if self._detector.settled:
                break


def _date_of(header: str | None) -> datetime | None:
    try:
        return parsedate_to_datetime(header or "").astimezone(UTC)
    except ValueError:
        return None
