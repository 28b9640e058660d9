"""The timer trigger: one run at a time.

As in Azure, the next time counts from the start of a run.
"""

import asyncio
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from azure.functions.meta import Datum
from cronsim import CronSim, CronSimError

from functions_alone.faults import LocalCode, StackFault
from functions_alone.host.errors import HostError
from functions_alone.host.host_json import seconds_of
from functions_alone.host.index import TimerTrigger
from functions_alone.host.invoke import FunctionCall
from functions_alone.host.outage import pause

# A longer wait is cut, so that a machine that slept or whose clock was set is noticed.
LONGEST_WAIT_SECONDS = 10.0

NO_SCHEDULE_STATUS = Datum(
    json.dumps({"Schedule": {"AdjustForDST": True}, "ScheduleStatus": None, "IsPastDue": False}),
    "json",
)
"""The status for a function whose past times are not kept (`use_monitor=False`)."""

Schedule = Callable[[datetime], datetime]


_STEP = "(?:/[1-9][0-9]?)?"
_NUMBER = "[0-9]{1,2}"
_MONTH = "(?:JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC)"
_DAY = "(?:SUN|MON|TUE|WED|THU|FRI|SAT)"


def _lists_of(*terms: str) -> str:
    term = "|".join([rf"\*{_STEP}", *terms])
    return rf"(?:{term})(?:,(?:{term}))*"


_NUMBERS = (rf"{_NUMBER}{_STEP}", rf"{_NUMBER}-{_NUMBER}{_STEP}")
_MONTHS = (*_NUMBERS, rf"{_MONTH}{_STEP}", rf"{_MONTH}-{_MONTH}{_STEP}")
_DAYS = ("[0-6]", rf"[0-6]-[0-6]{_STEP}", _DAY, rf"{_DAY}-{_DAY}{_STEP}")
_READ_ALIKE = re.compile(
    rf" *(?:{_lists_of(*_NUMBERS)} +)?{_lists_of(*_NUMBERS)} +{_lists_of(*_NUMBERS)}"
    rf" +(?P<day_of_month>{_lists_of(*_NUMBERS)}) +{_lists_of(*_MONTHS)}"
    rf" +(?P<day_of_week>{_lists_of(*_DAYS)}) *",
    re.IGNORECASE | re.ASCII,
)
"""Schedules that CronSim may read as Azure's parser does.

CronSim has a seventh day, so `1/2` would end on a Sunday.
"""
_ENDLESS = re.compile(r"\b0?(\w+)-0?\1/", re.IGNORECASE | re.ASCII)
"""A range of one value with a step, such as `1-1/2`. CronSim reads it as `1/2`, and Azure as `1`."""


def parse_schedule(text: str) -> Schedule:
    """Return a function from a time to the next due time.

    Raises `HostError` for a wrong schedule, and for one that Azure's parser reads in another way.
    """
    if ":" in text:
        return _every(text)
    try:
        CronSim(text, datetime.now(UTC))
    except CronSimError as error:
        raise HostError(_invalid(text, str(error))) from error
    match = _READ_ALIKE.fullmatch(text)
    if match is None or _ENDLESS.search(text):
        raise HostError(_invalid(text, "Azure refuses it, or reads it otherwise"))
    if not any(match[day].startswith("*") for day in ("day_of_month", "day_of_week")):
        # Azure fires where both match, CronSim where one does.
        raise HostError(_invalid(text, "it limits both the day of the month and that of the week"))
    return lambda now: next(CronSim(text, now))


def _every(text: str) -> Schedule:
    try:
        interval = timedelta(seconds=seconds_of(text))
    except ValueError as error:
        raise HostError(_invalid(text, str(error))) from error
    if not interval:
        raise HostError(_invalid(text, "the interval is zero"))
    return lambda now: now + interval


def _invalid(text: str, reason: str) -> StackFault:
    return StackFault(LocalCode.SCHEDULE_INVALID, f"schedule {text!r}", {"reason": reason})


def _schedule_of(trigger: TimerTrigger, call: FunctionCall) -> Schedule:
    try:
        return parse_schedule(trigger.schedule)
    except HostError as error:
        raise error.within(f"function {call.function.name}") from error


class TimerListener:
    """Calls one function by its schedule."""

    def __init__(self, *, trigger: TimerTrigger, call: FunctionCall) -> None:
        self._call = call
        self._next_after = _schedule_of(trigger, call)
        self._run_on_startup = trigger.run_on_startup

    async def run(self, stopping: asyncio.Event) -> None:
        """Run the schedule until `stopping` is set.

        If a run lasted beyond the next time, another run follows at once.
        """
        now = datetime.now(UTC)
        due = now if self._run_on_startup else self._next_after(now)
        while await self._comes(due, stopping):
            began = max(due, datetime.now(UTC))
            await self._call.succeeds(NO_SCHEDULE_STATUS, {})
            due = self._next_after(began)

    async def _comes(self, due: datetime, stopping: asyncio.Event) -> bool:
        """Wait until the time is due. Return False if the host stops first.

        If the clock is set back, the time is due earlier. No schedule stands still because the clock was set back.
        """
        now = datetime.now(UTC)
        while not stopping.is_set() and now < due:
            await pause(stopping, min((due - now).total_seconds(), LONGEST_WAIT_SECONDS))
            now = datetime.now(UTC)
            due = min(due, self._next_after(now)) if now < due else due
        return not stopping.is_set()
