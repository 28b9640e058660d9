"""What goes over the wire to Table Storage: Azure is stricter than the emulator that the contract tests run on."""

import asyncio
import socket
from email.parser import Parser

import pytest
from azure.core.pipeline.transport import AioHttpTransport
from azure.data.tables.aio import TableClient

from adapters.tables.transactions import TableTransactions
from adapters.tables.wire import body_of, part_of
from core.errors import UnavailableError
from local.ports import HOST
from stores.tables import Delete, Insert, Put, Replace

OPERATIONS = [Insert("a", {"X": "1"}), Replace("b", {"X": "1"}, "etag"), Put("c", {"X": "1"}), Delete("d")]


def parts(body):
    """The method and headers of every part of a transaction."""
    for each in body.decode().split("Content-Transfer-Encoding: binary\r\n\r\n")[1:]:
        line, _, rest = each.partition("\r\n")
        yield line.split()[0], Parser().parsestr(rest)


def test_each_part_of_a_transaction_says_what_azure_demands():
    """The version of the protocol, the form of the answer; that no answer is wanted, where it has a meaning."""
    found = list(parts(body_of("batch", [part_of("http://x/orders", "p", each) for each in OPERATIONS])))
    assert [method for method, _ in found] == ["POST", "PUT", "PUT", "DELETE"]
    assert {headers["DataServiceVersion"] for _, headers in found} == {"3.0"}
    assert {headers["Accept"] for _, headers in found} == {"application/json"}
    assert [headers["Prefer"] for _, headers in found] == ["return-no-content", None, None, None]
    assert [headers["If-Match"] for _, headers in found] == [None, "etag", None, "*"]
    with_body = [headers for method, headers in found if method != "DELETE"]
    assert all(headers["Content-Type"] == "application/json" for headers in with_body)
    assert all(int(headers["Content-Length"]) == len(headers.get_payload().split("\r\n")[0]) for headers in with_body)


REQUESTS = {
    "a transaction": lambda table: table.submit("p", OPERATIONS),
    "a row": lambda table: table.get("p", "a"),
    "a range": lambda table: table.rows("p", "a", "b"),
}


@pytest.mark.proves("FLT-7")
@pytest.mark.parametrize("what", REQUESTS)
async def test_a_partition_that_says_nothing_is_away_soon(what, monkeypatch):
    """A batch or a look that waits for it keeps orders waiting that lie elsewhere."""
    monkeypatch.setattr("adapters.tables.wire.ANSWER_SECONDS", 0.05)
    with socket.create_server((HOST, 0)) as silent:  # takes connections, and says nothing
        address = f"http://{HOST}:{silent.getsockname()[1]}"
        account = f"AccountName=a;AccountKey=YWJj;TableEndpoint={address}/a"
        async with TableClient.from_connection_string(account, "orders", transport=AioHttpTransport()) as client:
            with pytest.raises(UnavailableError):
                async with asyncio.timeout(10):
                    await REQUESTS[what](TableTransactions(lambda: client))
