"""All access to Azure SDKs and to the environment.

`testkit/memory.py` has the same ports in memory.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from engine.ports import (
    Bus,
    Channel,
    Clock,
    ClockCheck,
    EventPublisher,
    Leadership,
    NewId,
    RemoteService,
    Slowdown,
    TextQueue,
)
from engine.storage.tables import Table


def _as_configured() -> float:
    return 1.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Adapters:
    """One implementation of each port, from `engine.azure.connect` or `testkit.memory`."""

    table: Callable[[str], Table]
    """Returns the table with this name. It is the same object in each call."""
    background_table: Callable[[str], Table] | None = None
    """Returns the same table for work on alerts, whose operations are limited in number.

    None if there is no limit.
    """
    queue: Callable[[str], TextQueue]
    """Returns the Storage Queue with this name. It is the same object in each call."""
    bus: Bus
    events: EventPublisher
    leadership: Leadership
    services: Mapping[str, RemoteService]
    """The remote services, by the name of their agent."""
    clock: Clock
    clock_check: ClockCheck
    new_id: NewId
    new_callback_token: NewId
    """Returns 128 random bits, which nobody can guess, as text that a URL may contain."""
    slowdown: Slowdown = _as_configured
    """The factor by which time limits are stretched. Always 1 except in the embedded run."""
    channels: Mapping[str, Channel] = field(default_factory=dict)
    """The configured channels to people, by name."""
    close: Callable[[], Awaitable[None]]
    """Closes all connections at the end of the process."""
