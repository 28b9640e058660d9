"""The parts of a stack: made once, stopped and started."""

import json
import socket
import time

from azure.data.tables.aio import TableServiceClient
from azure.storage.blob.aio import BlobServiceClient
from azure.storage.queue.aio import QueueServiceClient

from local.ports import HOST
from local.provision import provision
from local.servicebus_config import ROOT, queues
from local.stack import Stack, StackConfig


async def names(listing):
    return {item["name"] if not hasattr(item, "name") else item.name async for item in listing}


async def test_everything_is_provisioned_and_once_more_changes_nothing(parts):
    """Tables, queues and containers are those of infra/."""
    connection = parts.storage_connection_string
    await provision(connection)
    wanted = json.loads((ROOT / "infra/storage.json").read_text())
    async with TableServiceClient.from_connection_string(connection) as tables:
        assert await names(tables.list_tables()) == set(wanted["tables"])
    async with QueueServiceClient.from_connection_string(connection) as storage_queues:
        assert await names(storage_queues.list_queues()) == {each["name"] for each in queues()["storageQueues"]}
    async with BlobServiceClient.from_connection_string(connection) as blobs:
        assert await names(blobs.list_containers()) == set(wanted["containers"])


async def test_azurite_ends_and_keeps_its_data_although_somebody_holds_a_connection(tmp_path):
    """A connection on which nothing was asked keeps a plain Azurite alive for ever."""
    async with Stack(StackConfig.for_tests(tmp_path, hosts=0, in_memory=False)) as stack:
        async with TableServiceClient.from_connection_string(stack.storage_connection_string) as tables:
            await tables.get_table_client("orders").create_entity({"PartitionKey": "b00", "RowKey": "row"})
        began = time.monotonic()
        with socket.create_connection((HOST, stack.ports.blob_port)):
            await stack.stop_azurite()
        assert stack.azurite.how_it_ended == "exit code 0"
        assert time.monotonic() - began < 10
        await stack.start_azurite()
        async with TableServiceClient.from_connection_string(stack.storage_connection_string) as tables:
            assert await tables.get_table_client("orders").get_entity("b00", "row")
