"""All Azure SDK and environment access; the same ports in memory are `tests/support/memory.py`."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from core.ports import Bus, Clock, EventPublisher, Leadership, NewId, RemoteService, TextQueue
from stores.agent_health import AgentHealthLog
from stores.alert_log import AlertLog
from stores.archive import Archive
from stores.figures import FiguresLog
from stores.orders import OrderStore
from stores.poison import PoisonStore
from stores.submission_keys import SubmissionKeys
from stores.sweeps import SweepLog
from stores.tables import Table


@dataclass(frozen=True, kw_only=True, slots=True)
class Adapters:
    """One part for each port: from `adapters.azure.connect`, or, in tests, from `memory.in_memory`."""

    store: OrderStore
    archive: Archive
    bus: Bus
    submissions: TextQueue
    alert_queue: TextQueue
    poison: PoisonStore
    events: EventPublisher
    alerts: AlertLog
    keys: SubmissionKeys
    agent_health: AgentHealthLog
    sweeps: SweepLog
    figures: FiguresLog
    known_workflows: Table
    """For what each version of a workflow was at first."""
    leadership: Leadership
    services: Mapping[str, RemoteService]
    """The remote services by the name of their agent."""
    simulator: Table
    """For what the simulated services remember."""
    clock: Clock
    new_id: NewId
    close: Callable[[], Awaitable[None]]
    """Closes all connections, at the end of the process."""
