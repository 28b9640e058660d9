"""The parts on Azure, on its emulators, or on the embedded stack: only the settings differ."""

from functools import cache, partial

from adapters import Adapters
from adapters.clock import new_id, utc_now
from adapters.connections import Connections
from adapters.lease import CONTAINER, BlobLeadership
from adapters.messaging.bus import ServiceBus
from adapters.messaging.event_grid import EventGrid
from adapters.messaging.queues import StorageQueue
from adapters.remote import HttpRemoteService
from adapters.settings import Settings
from adapters.tables.transactions import TableTransactions
from core.keys import buckets
from stores.agent_health import AgentHealthLog
from stores.alert_log import AlertLog
from stores.archive import Archive
from stores.figures import FiguresLog
from stores.orders import OrderStore
from stores.poison import PoisonStore
from stores.submission_keys import SubmissionKeys
from stores.sweeps import SweepLog


def connect(settings: Settings, connections: Connections | None = None) -> Adapters:
    """Return all parts; no I/O happens, and no client is made, before the first of them is used."""
    pool = connections or Connections(settings)
    bus = ServiceBus(lambda: pool.service_bus)

    async def close() -> None:
        await bus.close()
        await pool.close()

    def table(name: str) -> TableTransactions:
        return TableTransactions(cache(partial(pool.table, name)))

    def queue(name: str) -> StorageQueue:
        return StorageQueue(cache(partial(pool.queue, name)))

    orders, agents, http = table("orders"), table("agents"), cache(lambda: pool.http)
    tokens = {agent: partial(pool.token, scope) for agent, scope in settings.scopes.items()}
    store = OrderStore(orders, buckets(settings.buckets))
    return Adapters(
        store=store,
        archive=Archive(store, agents),
        bus=bus,
        submissions=queue("order-submissions"),
        alert_queue=queue("operator-alerts"),
        poison=PoisonStore(table("poison")),
        events=EventGrid(lambda: pool.event_grid),
        alerts=AlertLog(table("alerts")),
        keys=SubmissionKeys(table("submissionkeys"), utc_now),
        agent_health=AgentHealthLog(agents),
        sweeps=SweepLog(agents),
        figures=FiguresLog(agents, new_id),
        known_workflows=agents,
        leadership=BlobLeadership(partial(pool.container, CONTAINER), settings.lease_seconds),
        services={agent: HttpRemoteService(url, http, tokens.get(agent)) for agent, url in settings.addresses.items()},
        simulator=table("simulator"),
        clock=utc_now,
        new_id=new_id,
        close=close,
    )
