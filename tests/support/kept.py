"""What is kept as poison, and what operators do with it."""

from engine.storage.poison import QUEUES
from operations.api.poison import PoisonService

SUBMISSIONS = "order-submissions"


async def kept(poison):
    """All messages that are kept in memory, by the names of their queues, oldest first."""
    return [
        message
        for source in sorted(poison._table.partitions)
        if source != QUEUES
        for message in await poison.page(source, 1000)
    ]


def poison_on(made, *bus_queues):
    """The operators' poison messages: of the submissions, and of these queues on the bus."""
    return PoisonService(
        poison=made.engine.poison_store,
        bus=made.engine.adapters.bus,
        storage_queues={SUBMISSIONS: made.operations.storage_queues[SUBMISSIONS]},
        bus_queues=bus_queues,
    )
