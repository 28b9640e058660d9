"""Makes the tables, queues and containers of the app, like Bicep on Azure. A repeat changes nothing."""

import asyncio
import contextlib
import json
from collections.abc import Awaitable

from azure.core.exceptions import ResourceExistsError
from azure.data.tables.aio import TableServiceClient
from azure.storage.blob.aio import BlobServiceClient
from azure.storage.queue.aio import QueueServiceClient

from development.servicebus_config import ROOT, queues


async def provision(connection_string: str) -> None:
    """Make everything that `infra/queues.json` and `infra/storage.json` name."""
    storage = json.loads((ROOT / "infra/storage.json").read_text())
    async with (
        TableServiceClient.from_connection_string(connection_string) as tables,
        QueueServiceClient.from_connection_string(connection_string) as storage_queues,
        BlobServiceClient.from_connection_string(connection_string) as blobs,
    ):
        await asyncio.gather(
            *(tables.create_table_if_not_exists(name) for name in storage["tables"]),
            *(
                _unless_there(storage_queues.create_queue(queue["name"]))
                for queue in queues()["storageQueues"]
            ),
            *(_unless_there(blobs.create_container(name)) for name in storage["containers"]),
        )


async def _unless_there(creation: Awaitable[object]) -> None:
    with contextlib.suppress(ResourceExistsError):
        await creation
