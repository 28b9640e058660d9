"""The timer trigger: one run at a time, and what was missed meanwhile is skipped."""

import asyncio
import json
import logging
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from azure.functions.meta import Datum
from cronsim import CronSim, CronSimError

from local.host.errors import HostError
from local.host.host_json import seconds_of
from local.host.index import TimerTrigger
from local.host.invoke import Call
from local.host.outage import pause

# A start this much later than planned is past due: the process or the machine was held up.
PAST_DUE_SECONDS = 1.0
# A longer wait is cut, so that a machine that slept or whose clock was set is noticed.
LONGEST_WAIT_SECONDS = 10.0

Schedule = Callable[[datetime], datetime]

_log = logging.getLogger("local.host.timer")


def parse_schedule(text: str) -> Schedule:
    """Return a function from a time to the next due time; raises `HostError`."""
    if re.fullmatch(r"[\d.]+(:[\d.]+)+", text):
        return _every(text)
    try:
        CronSim(text, datetime.now(UTC))
    except CronSimError as error:
        raise HostError(f"schedule {text!r}: {error}") from error
    return lambda now: next(CronSim(text, now))


def _every(text: str) -> Schedule:
    try:
        interval = timedelta(seconds=seconds_of(text))
    except ValueError as error:
        raise HostError(f"schedule {text!r}: {error}") from error
    if not interval:
        raise HostError(f"schedule {text!r}: must be longer than nothing")
    return lambda now: now + interval


def _schedule_of(trigger: TimerTrigger, call: Call) -> Schedule:
    try:
        return parse_schedule(trigger.schedule)
    except HostError as error:
        raise HostError(f"function {call.function.name}: {error}") from error


class TimerListener:
    """Calls one function by its schedule."""

    def __init__(self, *, trigger: TimerTrigger, call: Call) -> None:
        self._call = call
        self._next_after = _schedule_of(trigger, call)
        self._run_on_startup = trigger.run_on_startup
        self._last: datetime | None = None

    async def run(self, stopping: asyncio.Event) -> None:
        """Serve the schedule until the host stops."""
        if self._run_on_startup:
            await self._fire(datetime.now(UTC))
        while not stopping.is_set():
            due = self._next_after(datetime.now(UTC))
            while not stopping.is_set() and (left := (due - datetime.now(UTC)).total_seconds()) > 0:
                await pause(stopping, min(left, LONGEST_WAIT_SECONDS))
            if not stopping.is_set():
                await self._fire(due)

    async def _fire(self, due: datetime) -> None:
        now = datetime.now(UTC)
        late = (now - due).total_seconds() > PAST_DUE_SECONDS
        last, self._last = self._last, now
        status = {
            "Last": (last or now).isoformat(),
            "Next": self._next_after(now).isoformat(),
            "LastUpdated": now.isoformat(),
        }
        data = {"IsPastDue": late, "Schedule": {"AdjustForDST": True}, "ScheduleStatus": status}
        await self._call.succeeds(Datum(json.dumps(data), "json"), {})
