"""App settings as the Functions host sees them: plain environment variables."""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from functions_alone.faults import LocalCode, StackFault
from functions_alone.host.cors import origins_in
from functions_alone.host.errors import HostError

SHORT_LIFE = "LOCAL_SHORT_LIFE_SECONDS"
SHORT_LIFE_SECONDS = 5.0
"""After a process with a shorter life the next one waits, so that the machine can do other work too."""

_PLACEHOLDER = re.compile(r"%([^%]+)%")


@dataclass(frozen=True, kw_only=True)
class AppSettings:
    """Looks up settings and records the missing ones, so that all can be reported at once."""

    values: Mapping[str, str]
    missing: dict[str, None] = field(default_factory=dict)

    def substitute(self, text: str) -> str:
        """Replace each `%NAME%`. A missing one is recorded and stays as it is."""
        return _PLACEHOLDER.sub(self._value_of, text)

    def connection(self, name: str) -> str:
        """Return the connection string in the setting `name` or `AzureWebJobs<name>`."""
        found = self.values.get(name) or self.values.get(f"AzureWebJobs{name}")
        if not found:
            self.missing[name] = None
        return found or ""

    def is_disabled(self, function: str) -> bool:
        """Return whether `AzureWebJobs.<function>.Disabled` switches a function off."""
        return self.values.get(f"AzureWebJobs.{function}.Disabled", "").lower() in ("true", "1")

    def is_true(self, name: str) -> bool:
        return self.values.get(name, "").lower() == "true"

    def require_complete(self) -> None:
        """Raise `HostError` with every setting that was missing so far."""
        if self.missing:
            raise HostError(*(StackFault(LocalCode.SETTING_MISSING, name) for name in self.missing))

    def _value_of(self, match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in self.values:
            self.missing[name] = None
        return self.values.get(name, match.group(0))


IN_AZURE = {"LOCAL_QUEUE_LOCK_SECONDS": 600.0, "LOCAL_TIMER_LOCK_SECONDS": 60.0}
"""Settings that may shorten a time, with the default, which is the time in Azure, in seconds.

In both places host.json may set another time for a timer's lock.
"""
DEFAULT_SECONDS = {
    **IN_AZURE,
    "LOCAL_SHUTDOWN_SECONDS": 10,
    SHORT_LIFE: SHORT_LIFE_SECONDS,
}


@dataclass(frozen=True, kw_only=True)
class HostSettings:
    """Settings of this host alone. Azure has only `host_id` and `origins`. Times are in seconds."""

    function_key: str
    origins: Collection[str]
    """The origins of other sites whose pages may call."""
    host_id: str
    queue_lock_seconds: int
    timer_lock_seconds: int
    shutdown_seconds: float
    short_life_seconds: float
    process_per_function: bool
    shortened: Sequence[str]
    """The times that are shorter than in Azure, in words."""

    @classmethod
    def read(cls, values: Mapping[str, str], *, timer_lock_seconds: float = 60.0) -> Self:
        """Read the settings from the environment. Raises `HostError` for a value that makes no sense.

        `timer_lock_seconds` is the value of host.json. A setting can only shorten it.
        """
        in_azure = IN_AZURE | {"LOCAL_TIMER_LOCK_SECONDS": timer_lock_seconds}
        given = {name: min(seconds_in(values, name), usual) for name, usual in in_azure.items()}
        return cls(
            function_key=values.get("LOCAL_FUNCTION_KEY", ""),
            origins=origins_in(values.get("Host__CORS", "")),
            queue_lock_seconds=max(1, int(given["LOCAL_QUEUE_LOCK_SECONDS"])),
            host_id=values.get("AzureFunctionsWebHost__hostid", "local"),
            timer_lock_seconds=max(1, int(given["LOCAL_TIMER_LOCK_SECONDS"])),
            shutdown_seconds=seconds_in(values, "LOCAL_SHUTDOWN_SECONDS"),
            short_life_seconds=seconds_in(values, SHORT_LIFE),
            process_per_function=_process_per_function(values),
            shortened=[
                f"{name} is {given[name]:g} instead of {seconds:g}"
                for name, seconds in in_azure.items()
                if given[name] < seconds
            ],
        )


def _process_per_function(values: Mapping[str, str]) -> bool:
    name, choices = "LOCAL_FUNCTION_PROCESSES", ("one", "each")
    chosen = values.get(name, "one")
    if chosen not in choices:
        facts = {"value": chosen, "choices": ", ".join(choices)}
        raise HostError(StackFault(LocalCode.SETTING_NOT_A_CHOICE, name, facts))
    return chosen == "each"


def seconds_in(values: Mapping[str, str], name: str) -> float:
    """Return a time of the host's settings, or its default. Raises `HostError` if it is not finite."""
    text = values.get(name, DEFAULT_SECONDS[name])
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds):
        raise HostError(StackFault(LocalCode.SETTING_NOT_A_NUMBER, name, {"value": text}))
    return seconds
