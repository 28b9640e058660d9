"""The ports on Azure, its emulators or the embedded stack. Only the settings differ."""

from functools import cache, partial

from engine.azure import Adapters
from engine.azure.channels.opening import open_channels
from engine.azure.clock import new_callback_token, new_id, utc_now
from engine.azure.connections import Connections
from engine.azure.lease import CONTAINER, BlobLeadership
from engine.azure.messaging.bus import ServiceBus
from engine.azure.messaging.event_grid import EventGrid
from engine.azure.messaging.queues import StorageQueue
from engine.azure.services import services
from engine.azure.settings import Settings
from engine.azure.slowdown import slowdown_in
from engine.azure.tables.budget import RateLimiter
from engine.azure.tables.transactions import TableTransactions


def connect(settings: Settings, connections: Connections | None = None) -> Adapters:
    """Make all ports. No client is made, and nothing connects, before a port is used."""
    pool = connections or Connections(settings)
    bus = ServiceBus(lambda: pool.service_bus)

    async def close() -> None:
        await bus.close()
        await pool.close()

    @cache
    def table(name: str) -> TableTransactions:
        return TableTransactions(cache(partial(pool.table, name)))

    budget = RateLimiter(settings.alert_operations_per_second)

    @cache
    def background_table(name: str) -> TableTransactions:
        return TableTransactions(cache(partial(pool.table, name)), budget)

    @cache
    def queue(name: str) -> StorageQueue:
        return StorageQueue(cache(partial(pool.queue, name)))

    return Adapters(
        table=table,
        background_table=background_table,
        queue=queue,
        bus=bus,
        events=EventGrid(lambda: pool.event_grid),
        leadership=BlobLeadership(partial(pool.container, CONTAINER), settings.lease_seconds),
        services=services(settings, pool),
        channels=open_channels(settings.channels, pool),
        clock=utc_now,
        slowdown=partial(slowdown_in, settings.slowdown_file),
        clock_check=partial(pool.store_clock.skew, partial(table("agents").get, "clock", "-")),
        new_id=new_id,
        new_callback_token=new_callback_token,
        close=close,
    )
