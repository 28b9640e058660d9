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
from adapters.tables.agent_health import TableAgentHealthLog
from adapters.tables.alert_log import TableAlertLog
from adapters.tables.archive import TableArchive
from adapters.tables.ledger import TableLedger
from adapters.tables.orders import AS_COLUMNS, TableStateStore
from adapters.tables.poison import TablePoison
from adapters.tables.submission_keys import TableSubmissionKeys
from adapters.tables.sweeps import TableSweepLog
from adapters.tables.transactions import TableTransactions
from adapters.tables.workflow_log import TableWorkflowLog
from core.keys import buckets


def connect(settings: Settings, connections: Connections | None = None) -> Adapters:
    """Return all parts; no I/O happens, and no client is made, before the first of them is used."""
    pool = connections or Connections(settings)
    bus = ServiceBus(pool.service_bus)

    async def close() -> None:
        await bus.close()
        await pool.close()

    def table(name: str) -> TableTransactions:
        return TableTransactions(cache(partial(pool.table, name)))

    orders, agents, http = table("orders"), table("agents"), cache(pool.http)
    store = TableStateStore(orders, AS_COLUMNS, buckets(settings.buckets))
    return Adapters(
        store=store,
        archive=TableArchive(orders, AS_COLUMNS, store.buckets, agents),
        bus=bus,
        submissions=StorageQueue(partial(pool.queue, "order-submissions")),
        alert_queue=StorageQueue(partial(pool.queue, "operator-alerts")),
        poison=TablePoison(table("poison")),
        events=EventGrid(pool.event_grid),
        alerts=TableAlertLog(table("alerts")),
        keys=TableSubmissionKeys(table("submissionkeys"), utc_now),
        agent_health=TableAgentHealthLog(agents),
        sweeps=TableSweepLog(agents),
        known_workflows=TableWorkflowLog(agents),
        leadership=BlobLeadership(partial(pool.container, CONTAINER), settings.lease_seconds),
        services={agent: HttpRemoteService(url, http) for agent, url in settings.addresses.items()},
        ledger=TableLedger(table("simulator")),
        clock=utc_now,
        new_id=new_id,
        close=close,
    )
