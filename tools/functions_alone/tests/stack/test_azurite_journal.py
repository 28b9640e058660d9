"""What Azurite has answered outlives a SIGKILL of it, and of everything but the disk."""

import asyncio
from pathlib import Path

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.data.tables import TableTransactionError, UpdateMode
from azure.data.tables.aio import TableServiceClient
from azure.storage.blob.aio import BlobServiceClient
from azure.storage.queue.aio import QueueServiceClient

from functions_alone.tests.support.broker_process import NODE


@pytest.fixture
async def clients(own_parts):
    connection = own_parts.storage_connection_string
    async with (
        TableServiceClient.from_connection_string(connection) as tables,
        QueueServiceClient.from_connection_string(connection) as queues,
        BlobServiceClient.from_connection_string(connection) as blobs,
    ):
        yield tables, queues, blobs


async def killed_and_started(own_parts):
    """Returns how many files of the journal the kill has left."""
    await own_parts.azurite.kill()
    left = list((own_parts.config.data / "azurite").glob("*.journal.*"))
    await own_parts.start_azurite()
    return left


def row(name, **more):
    return {"PartitionKey": "p", "RowKey": name, **more}


async def content_of(table):
    return {entity["RowKey"]: dict(entity) async for entity in table.list_entities()}


async def test_rows_are_as_they_were_answered(own_parts, clients):
    """Made, replaced, merged, removed, and changed in one transaction; after a second kill too."""
    table = await clients[0].create_table("kept")
    for number in range(30):
        await table.create_entity(row(f"r{number:02}", a=number))
    await table.update_entity(row("r01", b="é🍵"), UpdateMode.REPLACE)
    await table.update_entity(row("r02", b=2), UpdateMode.MERGE)
    await table.upsert_entity(row("r03", b=3))
    await table.delete_entity(row("r04"))
    await table.submit_transaction(
        [("create", row("t1")), ("delete", row("r05")), ("upsert", row("r06", c=1))]
    )
    with pytest.raises(TableTransactionError):
        await table.submit_transaction([("upsert", row("r07", c=1)), ("create", row("r08"))])
    before = await content_of(table)
    assert await killed_and_started(own_parts)
    assert await content_of(table) == before
    await table.upsert_entity(row("r09", d=1))
    again = await content_of(table)
    await killed_and_started(own_parts)
    assert await content_of(table) == again
    assert len(again) == 29


@pytest.mark.soak
async def test_a_condition_holds_after_a_kill(own_parts, clients):
    """Indexes and etags are those of before."""
    table = await clients[0].create_table("conditions")
    old = await table.create_entity(row("one"))
    await table.update_entity(row("one", a=1), UpdateMode.REPLACE)
    await killed_and_started(own_parts)
    with pytest.raises(HttpResponseError) as raised:
        await table.update_entity(
            row("one", a=2),
            UpdateMode.REPLACE,
            etag=old["etag"],
            match_condition=MatchConditions.IfNotModified,
        )
    assert raised.value.status_code == 412
    with pytest.raises(HttpResponseError, match="EntityAlreadyExists"):
        await table.create_entity(row("one"))


@pytest.mark.soak
async def test_messages_and_tables_are_there_or_gone(own_parts, clients):
    """A message that was put, one that was taken and hidden, one that was removed; a table that was deleted."""
    tables, queues, _ = clients
    queue = await queues.create_queue("kept")
    for text in ("removed", "hidden", "waits"):
        await queue.send_message(text)
    removed, hidden = [await queue.receive_message(visibility_timeout=600) for _ in range(2)]
    await queue.delete_message(removed)
    gone = await tables.create_table("gone")
    await gone.create_entity(row("one"))
    await tables.delete_table("gone")
    await killed_and_started(own_parts)
    assert [message.content async for message in queue.receive_messages()] == ["waits"]
    assert hidden.content == "hidden"
    assert (await queue.get_queue_properties()).approximate_message_count == 2
    with pytest.raises(ResourceNotFoundError):
        await gone.create_entity(row("two"))


@pytest.mark.soak
async def test_a_blob_and_its_lease_are_kept(own_parts, clients):
    """By the lease a supervisor is elected, and under it a timer fires."""
    container = await clients[2].create_container("kept")
    blob = await container.upload_blob("one", b"content")
    lease = await blob.acquire_lease(60)
    await killed_and_started(own_parts)
    assert await (await blob.download_blob()).readall() == b"content"
    await lease.renew()


async def test_a_line_that_was_cut_short_is_no_change(own_parts, clients):
    """It was never answered; what stands before it counts."""
    table = await clients[0].create_table("cut")
    await table.create_entity(row("one"))
    await own_parts.azurite.kill()
    journals = (own_parts.config.data / "azurite").glob("__azurite_db_table__.json.journal.*")
    with max(journals, key=lambda path: int(path.suffix[1:])).open("ab") as journal:
        journal.write(b'[["drop","devstoreaccount1$cut"')
    await own_parts.start_azurite()
    assert set(await content_of(table)) == {"one"}


@pytest.mark.soak
async def test_a_save_takes_the_place_of_the_journal(own_parts, clients):
    """An end in order leaves none behind; nothing is carried out twice."""
    table = await clients[0].create_table("saved")
    await table.create_entity(row("one"))
    await own_parts.stop_azurite()
    assert list((own_parts.config.data / "azurite").glob("*.journal.*")) == []
    await own_parts.start_azurite()
    assert set(await content_of(table)) == {"one"}


async def test_what_the_journal_changes_in_lokijs_holds():
    """Every test of the file in JavaScript passes."""
    pipe = asyncio.subprocess.PIPE
    rules = Path(__file__).with_name("azurite_journal.test.mjs")
    process = await asyncio.create_subprocess_exec(NODE, "--test", rules, stdout=pipe, stderr=pipe)
    output, error = await process.communicate()
    assert process.returncode == 0, (output + error).decode()
