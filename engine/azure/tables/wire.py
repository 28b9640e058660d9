"""Requests to Table Storage and their answers, in the form that is sent.

For a transaction, the SDK builds the request and reads the answer with the standard library's
`email` package. Together with its handling of queries, this took nearly half of all CPU time of an
order. Our requests have few and fixed forms, so this module writes them itself. It sends them
through the SDK's pipeline, which signs, retries and logs them.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from azure.core.exceptions import HttpResponseError
from azure.core.rest import AsyncHttpResponse, HttpRequest
from azure.data.tables.aio import TableClient

from engine.storage.tables import (
    Columns,
    Delete,
    Insert,
    Operation,
    Put,
    Replace,
    Stored,
    entity,
    stored_form,
)

RANGE = "PartitionKey eq '{p}' and RowKey ge '{s}' and RowKey lt '{e}'"
"""The only query. Its cost depends on the number of returned rows, not on the size of the table."""

PAGE = 1000

ANSWER_SECONDS = 10.0
"""The time limit for an answer, with all retries and the token. Whole batches wait for it."""

_HEADERS = {
    "Accept": "application/json;odata=minimalmetadata",
    "DataServiceVersion": "3.0",
    "x-ms-version": "2019-02-02",
}

LARGEST_INT32 = 2**31 - 1

TYPE = "@odata.type"
"""The suffix of the annotation with a property's type, for types that JSON lacks."""

COMPACT = json.JSONEncoder(separators=(",", ":"))

PART = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
PART_HEADERS = "DataServiceVersion: 3.0\r\nAccept: application/json\r\n"
"""The headers of each part of a transaction. Azure requires the version, Azurite does not."""
STATUS = re.compile(rb"^HTTP/1\.[01] (\d{3})", re.MULTILINE)
ETAG = re.compile(rb"^ETag: (\S+)", re.MULTILINE | re.IGNORECASE)
INDEX = re.compile(r'"value"\s*:\s*"(\d+):')
CODE = re.compile(r'"code"\s*:\s*"([^"]+)"')


class TableError(HttpResponseError):
    """Table Storage refused a request.

    `index` is the number of the operation at fault in a transaction, or None if it is unknown.
    """

    def __init__(self, status: int, text: str) -> None:
        code, index = CODE.search(text), INDEX.search(text)
        super().__init__(message=f"{status} {code.group(1) if code else text[:200]}")
        self.status_code = status
        self.error_code = code.group(1) if code else None
        self.index = int(index.group(1)) if index else None


async def read_one(table: TableClient, partition: str, row: str) -> Stored | None:
    """Return one entity by its keys, or None if it does not exist."""
    url = _entity_url(_address(table), partition, row)
    answer = await _send(table, HttpRequest("GET", url, headers=_HEADERS))
    if answer.status_code == 404 and "TableNotFound" not in answer.text():
        return None
    return _stored(_json_of(answer))


async def read_range(
    table: TableClient, partition: str, start: str, end: str, limit: int | None
) -> AsyncIterator[Stored]:
    """Yield the entities with start <= row key < end in key order."""
    keys = {"p": partition, "s": start, "e": end}
    escaped = {name: text.replace("'", "''") for name, text in keys.items()}
    options = {"$filter": RANGE.format(**escaped)}
    if limit:
        options["$top"] = str(min(limit, PAGE))
    more: dict[str, str] | None = {}
    while more is not None:
        parameters = options | more
        query = "&".join(f"{name}={quote(value, safe='')}" for name, value in parameters.items())
        url = f"{_address(table)}()?{query}"
        answer = await _send(table, HttpRequest("GET", url, headers=_HEADERS))
        for found in _json_of(answer)["value"]:
            yield _stored(found)
        # A page may be short or empty without being the last one.
        more = _continuation(answer.headers)


def _continuation(headers: Mapping[str, str]) -> dict[str, str] | None:
    names = {name: f"x-ms-continuation-{name}" for name in ("NextPartitionKey", "NextRowKey")}
    found = {name: headers[header] for name, header in names.items() if header in headers}
    return found or None


def _stored(wire: Mapping[str, Any]) -> Stored:
    """Return the row with typed values, without the properties that Azure adds."""
    row: dict[str, Any] = {}
    times = []
    for name, value in wire.items():
        if "odata." not in name:
            row[name] = value
        elif value == "Edm.DateTime":
            times.append(name.removesuffix(TYPE))
    row.pop("Timestamp", None)
    for name in times:
        if name in row:  # not that of `Timestamp`
            row[name] = datetime.fromisoformat(row[name])
    return Stored(key=wire["RowKey"], row=row, etag=wire["odata.etag"])


async def _send(table: TableClient, request: HttpRequest) -> AsyncHttpResponse:
    """Send the request like the SDK's own requests. The SDK has no public method for this."""
    client: Any = table._client  # noqa: SLF001 - see above
    async with asyncio.timeout(ANSWER_SECONDS):
        response: AsyncHttpResponse = await client.send_request(request, stream=True)
        await response.read()
    return response


def _json_of(response: AsyncHttpResponse) -> Any:
    if response.status_code != 200:
        raise TableError(response.status_code, response.text())
    return json.loads(response.content)


def _address(table: TableClient) -> str:
    return f"{table.url}/{table.table_name}"


def parts_of(table: TableClient, partition: str, operations: Sequence[Operation]) -> dict[str, str]:
    """Return the part of each operation by row key, in ASCII.

    Raises `InvalidError`, ValueError or TypeError for a row that the table cannot hold.
    """
    address = _address(table)
    return {operation.key: part_of(address, partition, operation) for operation in operations}


async def transact(table: TableClient, parts: Sequence[str]) -> list[str | None]:
    """Carry out the operations of all parts or none, and return their new ETags.

    The ETag of a deletion is None. Raises `TableError`, and the errors of the SDK's pipeline for an
    outage.
    """
    boundary = f"batch_{uuid4()}"
    request = HttpRequest(
        "POST",
        f"{table.url}/$batch",
        headers={**_HEADERS, "Content-Type": f"multipart/mixed; boundary={boundary}"},
        content=body_of(boundary, parts),
    )
    response = await _send(table, request)
    if response.status_code != 202:
        raise TableError(response.status_code, response.text())
    return _etags(response.content, len(parts))


def body_of(boundary: str, parts: Sequence[str]) -> bytes:
    """Return the body of the request: one change set with these parts."""
    head = f"--{boundary}\r\nContent-Type: multipart/mixed; boundary=changes\r\n\r\n"
    return f"{head}{''.join(parts)}--changes--\r\n\r\n--{boundary}--\r\n".encode()


def part_of(address: str, partition: str, operation: Operation) -> str:
    return f"--changes\r\n{PART}{_request(address, partition, operation)}\r\n"


def _request(address: str, partition: str, operation: Operation) -> str:
    if isinstance(operation, Insert):
        head = f"POST {address} HTTP/1.1\r\nPrefer: return-no-content\r\n"
        return _with_body(head, partition, operation.key, operation.row)
    url = _entity_url(address, partition, operation.key)
    match operation:
        case Replace(key, row, etag):
            return _with_body(f"PUT {url} HTTP/1.1\r\nIf-Match: {etag}\r\n", partition, key, row)
        case Put(key, row):
            return _with_body(f"PUT {url} HTTP/1.1\r\n", partition, key, row)
        case Delete():
            return f"DELETE {url} HTTP/1.1\r\nIf-Match: *\r\n{PART_HEADERS}\r\n"


def _with_body(head: str, partition: str, key: str, row: Columns) -> str:
    body = COMPACT.encode(wire_form(entity(partition, key, stored_form(row))))
    about = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return f"{head}{PART_HEADERS}{about}\r\n{body}"


def _entity_url(address: str, *keys: str) -> str:
    partition, row = (quote(key.replace("'", "''"), safe="") for key in keys)
    return f"{address}(PartitionKey='{partition}',RowKey='{row}')"


def wire_form(columns: Columns) -> dict[str, Any]:
    """Return the entity, with annotations for types that JSON lacks.

    Raises TypeError for other types.
    """
    wire: dict[str, Any] = {}
    for name, value in columns.items():
        match value:
            case bool():
                wire[name] = value
            case str():
                wire[name] = str(value)
            case int() if abs(value) <= LARGEST_INT32:
                wire[name] = value
            case datetime():
                wire[name] = f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
                wire[f"{name}{TYPE}"] = "Edm.DateTime"
            case float():
                wire[name] = value
                wire[f"{name}{TYPE}"] = "Edm.Double"
            case _:
                raise TypeError(
                    f"{name}: a table row here holds no {type(value).__name__} such as {value!r}"
                )
    return wire


def _etags(answer: bytes, count: int) -> list[str | None]:
    """Return the ETags in the answer, which has one part for each operation.

    If nothing was carried out, the answer has one part for the operation at fault. Then
    `TableError` is raised.
    """
    parts = STATUS.split(answer)[1:]
    statuses, rest = [int(status) for status in parts[::2]], parts[1::2]
    for status, text in zip(statuses, rest, strict=True):
        if not 200 <= status < 300:
            raise TableError(status, text.decode(errors="replace"))
    if len(statuses) != count:
        raise TableError(500, f"{len(statuses)} answers to {count} operations")
    found = [ETAG.search(text) for text in rest]
    return [match.group(1).decode() if match else None for match in found]
