"""The parts on Azure, on its emulators, or on the embedded stack: only the settings differ."""

from functools import partial

from adapters import Adapters
from adapters.clock import new_ulid, utc_now
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


def connect(settings: Settings, connections: Connections | None = None) -> Adapters:
    """Return all parts; no I/O happens, and no client is made, before the first of them is used."""
    pool = connections or Connections(settings)
    bus = ServiceBus(pool.service_bus)

    async def close() -> None:
        await bus.close()
        await pool.close()

    orders = TableTransactions(partial(pool.table, "orders"))
    agents = TableTransactions(partial(pool.table, "agents"))
    return Adapters(
        store=TableStateStore(orders, AS_COLUMNS),
        archive=TableArchive(orders, AS_COLUMNS, agents),
        bus=bus,
        submissions=StorageQueue(partial(pool.queue, "order-submissions")),
        alert_queue=StorageQueue(partial(pool.queue, "operator-alerts")),
        poison=TablePoison(TableTransactions(partial(pool.table, "poison"))),
        events=EventGrid(pool.event_grid),
        alerts=TableAlertLog(TableTransactions(partial(pool.table, "alerts"))),
        keys=TableSubmissionKeys(TableTransactions(partial(pool.table, "submissionkeys")), utc_now),
        agent_health=TableAgentHealthLog(agents),
        sweeps=TableSweepLog(agents),
        known_workflows=TableWorkflowLog(agents),
        leadership=BlobLeadership(partial(pool.container, CONTAINER), settings.lease_seconds),
        services={agent: HttpRemoteService(url, pool.http) for agent, url in settings.addresses.items()},
        ledger=TableLedger(TableTransactions(partial(pool.table, "simulator"))),
        clock=utc_now,
        new_id=new_ulid,
        close=close,
    )
