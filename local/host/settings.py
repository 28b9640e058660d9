"""App settings as the Functions host sees them: plain environment variables."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from local.host.errors import HostError

LEASE_SECONDS = 15
"""Of a timer's lock: the shortest that Blob Storage gives, and what Azure's host takes."""

_PLACEHOLDER = re.compile(r"%([^%]+)%")


@dataclass(frozen=True, kw_only=True)
class AppSettings:
    """Looks settings up and remembers the missing ones, so that all can be named at once."""

    values: Mapping[str, str]
    missing: dict[str, None] = field(default_factory=dict)

    def substitute(self, text: str) -> str:
        """Replace each `%NAME%`; a missing one is noted and left as it stands."""
        return _PLACEHOLDER.sub(self._value_of, text)

    def connection(self, name: str) -> str:
        """Return the connection string in setting `name` (or `AzureWebJobs<name>`)."""
        found = self.values.get(name) or self.values.get(f"AzureWebJobs{name}")
        if not found:
            self.missing[name] = None
        return found or ""

    def is_disabled(self, function: str) -> bool:
        """Tell whether `AzureWebJobs.<function>.Disabled` switches a function off."""
        return self.values.get(f"AzureWebJobs.{function}.Disabled", "").lower() in ("true", "1")

    def is_true(self, name: str) -> bool:
        """Tell whether a switch is on."""
        return self.values.get(name, "").lower() in ("true", "1")

    def require_complete(self) -> None:
        """Raise `HostError` with every setting found missing so far."""
        if self.missing:
            raise HostError(f"missing app settings: {', '.join(self.missing)}")

    def _value_of(self, match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in self.values:
            self.missing[name] = None
        return self.values.get(name, match.group(0))


@dataclass(frozen=True, kw_only=True)
class HostSettings:
    """Settings of this host alone; but for `host_id` Azure has no counterpart. Times in seconds."""

    operator_key: str
    host_id: str
    queue_lock_seconds: int
    timer_lock_seconds: int
    shutdown_seconds: float

    @classmethod
    def read(cls, values: Mapping[str, str]) -> Self:
        """Read them from the environment; raises `HostError` for a value that is no number."""
        try:
            return cls(
                operator_key=values.get("OPERATOR_KEY", ""),
                host_id=values.get("AzureFunctionsWebHost__hostid", "local"),
                queue_lock_seconds=max(1, int(values.get("LOCAL_QUEUE_LOCK_SECONDS", "5"))),
                timer_lock_seconds=min(max(1, int(values.get("LOCAL_TIMER_LOCK_SECONDS", "15"))), LEASE_SECONDS),
                shutdown_seconds=float(values.get("LOCAL_SHUTDOWN_SECONDS", "10")),
            )
        except ValueError as error:
            raise HostError(f"settings that begin with LOCAL_ must be numbers: {error}") from error
