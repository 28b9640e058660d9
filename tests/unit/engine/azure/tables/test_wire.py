"""What goes to Table Storage: Azure is stricter than the emulator of the contract tests."""

import asyncio
import socket
from email.parser import Parser

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from azure.core.pipeline.transport import AioHttpTransport
from azure.data.tables.aio import TableClient

from engine.azure.tables.transactions import TableTransactions
from engine.azure.tables.wire import body_of, part_of
from engine.domain.errors import UnavailableError
from engine.storage.tables import Delete, Insert, Put, Replace
from functions_alone.ports import HOST

OPERATIONS = [
    Insert("a", {"X": "1"}),
    Replace("b", {"X": "1"}, "etag"),
    Put("c", {"X": "1"}),
    Delete("d"),
]


def table_at(address):
    """A client of the table `orders` of an account at this address."""
    account = f"AccountName=a;AccountKey=YWJj;TableEndpoint={address}/a"
    return TableClient.from_connection_string(account, "orders", transport=AioHttpTransport())


def parts(body):
    """The method and headers of every part of a transaction."""
    for part in body.decode().split("Content-Transfer-Encoding: binary\r\n\r\n")[1:]:
        line, _, rest = part.partition("\r\n")
        yield line.split()[0], Parser().parsestr(rest)


def test_every_part_of_a_transaction_says_what_azure_demands():
    """It sets the version of the protocol, the form of the answer, and that none is wanted."""
    found = list(
        parts(
            body_of(
                "batch", [part_of("http://x/orders", "p", operation) for operation in OPERATIONS]
            )
        )
    )
    assert [method for method, _ in found] == ["POST", "PUT", "PUT", "DELETE"]
    assert {headers["DataServiceVersion"] for _, headers in found} == {"3.0"}
    assert {headers["Accept"] for _, headers in found} == {"application/json"}
    assert [headers["Prefer"] for _, headers in found] == ["return-no-content", None, None, None]
    assert [headers["If-Match"] for _, headers in found] == [None, "etag", None, "*"]
    with_body = [headers for method, headers in found if method != "DELETE"]
    assert all(headers["Content-Type"] == "application/json" for headers in with_body)
    assert all(
        int(headers["Content-Length"]) == len(headers.get_payload().split("\r\n")[0])
        for headers in with_body
    )


REQUESTS = {
    "a transaction": lambda table: table.submit("p", OPERATIONS),
    "a row": lambda table: table.get("p", "a"),
    "a range": lambda table: table.rows("p", "a", "b"),
}


@pytest.mark.proves("FLT-7")
@pytest.mark.parametrize("what", REQUESTS)
async def test_a_partition_that_says_nothing_is_away_soon(what, monkeypatch):
    """A batch or a look that waits for it keeps orders waiting that lie elsewhere."""
    monkeypatch.setattr("engine.azure.tables.wire.ANSWER_SECONDS", 0.05)
    with socket.create_server((HOST, 0)) as silent:  # takes connections, and says nothing
        async with table_at(f"http://{HOST}:{silent.getsockname()[1]}") as client:
            with pytest.raises(UnavailableError):
                async with asyncio.timeout(10):
                    await REQUESTS[what](TableTransactions(lambda: client))


PAGES = ["", "a", "", "", "bc", "", "d", ""]
"""The keys of the rows of each page: Azure ends a page anywhere, even before the first row."""
MORE = "x-ms-continuation-Next"


async def page_of(request):
    """Answer as Azure does, with a page and the beginning of the next one, if there is one."""
    number = int(request.query.get("NextRowKey", "0&").partition("&")[0])
    assert request.query.get("NextPartitionKey", "1!8!p+/=") == "1!8!p+/="
    rows = [{"PartitionKey": "p", "RowKey": key, "odata.etag": "e"} for key in PAGES[number]]
    last = number == len(PAGES) - 1
    more = {} if last else {f"{MORE}PartitionKey": "1!8!p+/=", f"{MORE}RowKey": f"{number + 1}&+/="}
    return web.json_response({"value": rows}, headers=more)


@pytest.mark.proves("SUP-2")
@pytest.mark.parametrize(
    ("limit", "found"), [(None, "abcd"), (1, "a"), (2, "ab"), (3, "abc"), (4, "abcd"), (9, "abcd")]
)
async def test_a_range_ends_with_the_last_page_and_not_with_one_that_is_empty_or_short(
    limit, found
):
    """This is the only query: nobody would ever see what lies behind such a page."""
    azure = web.Application()
    azure.router.add_get("/a/orders()", page_of)
    async with (
        TestServer(azure, host=HOST) as server,
        table_at(str(server.make_url("")).rstrip("/")) as client,
    ):
        rows = await TableTransactions(lambda: client).rows("p", "a", "z", limit)
    assert "".join(row.key for row in rows) == found
