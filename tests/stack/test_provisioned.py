"""What the app wants to be there is made, and what it says of its settings is heard."""

import json

import pytest
from azure.data.tables.aio import TableServiceClient
from azure.storage.blob.aio import BlobServiceClient
from azure.storage.queue.aio import QueueServiceClient

from development.provision import provision
from development.servicebus_config import ROOT, queues
from development.stack import AppStack, AppStackConfig
from functions_alone.faults import LocalCode
from functions_alone.ports import StackError

WRONG = {"LEASE_SECONDS": "3", "BUCKETS": "none"}


async def names(listing):
    return {item["name"] if not hasattr(item, "name") else item.name async for item in listing}


async def test_everything_is_provisioned_and_once_more_changes_nothing(tmp_path):
    """Tables, queues and containers are those of infra/."""
    stack = AppStack(AppStackConfig.for_tests(tmp_path))
    connection = stack.storage_connection_string
    wanted = json.loads((ROOT / "infra/storage.json").read_text())
    try:
        await stack.start_azurite()
        await provision(connection)
        await provision(connection)
        async with TableServiceClient.from_connection_string(connection) as tables:
            assert await names(tables.list_tables()) == set(wanted["tables"])
        async with QueueServiceClient.from_connection_string(connection) as storage_queues:
            assert await names(storage_queues.list_queues()) == {
                queue["name"] for queue in queues()["storageQueues"]
            }
        async with BlobServiceClient.from_connection_string(connection) as blobs:
            assert await names(blobs.list_containers()) == set(wanted["containers"])
    finally:
        await stack.stop()


async def test_a_wrong_setting_of_the_app_ends_its_start_with_its_name(services):
    """What the app says about its settings reaches the person who started the stack."""
    with pytest.raises(StackError) as raised:
        await services.start_host(**WRONG)
    services.hosts.clear()
    [fault] = raised.value.faults
    assert (fault.code, fault.place) == (LocalCode.PART_ENDED, "host-1")
    assert fault.facts["exit"] == "exit code 1"
    assert all(name in fault.facts["output"] for name in WRONG)
