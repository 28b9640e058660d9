"""An entity group transaction as it goes over the wire, and what came of it.

The SDK builds the request with the standard library's `email` package and reads the answer with it too, which was a
third of all the CPU time that an order cost. The body is plain text of a fixed form, so it is written here, and sent
through the SDK's own pipeline, which signs it, retries it and logs it.
"""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from azure.core.exceptions import HttpResponseError
from azure.core.rest import HttpRequest
from azure.data.tables.aio import TableClient

from adapters.operations import Delete, Entity, Insert, Operation, Put, Replace

LARGEST_INT32 = 2**31 - 1

PART = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
JSON_BODY = "Content-Type: application/json\r\nPrefer: return-no-content\r\nAccept: application/json\r\n"
STATUS = re.compile(rb"^HTTP/1\.[01] (\d{3})", re.MULTILINE)
ETAG = re.compile(rb"^ETag: (\S+)", re.MULTILINE | re.IGNORECASE)
INDEX = re.compile(r'"value"\s*:\s*"(\d+):')
CODE = re.compile(r'"code"\s*:\s*"([^"]+)"')


class TransactionError(HttpResponseError):
    """The transaction was refused: `index` is the operation at fault, 0 if the answer does not say."""

    def __init__(self, status: int, text: str) -> None:
        code, index = CODE.search(text), INDEX.search(text)
        super().__init__(message=f"{status} {code.group(1) if code else text[:200]}")
        self.status_code = status
        self.error_code = code.group(1) if code else None
        self.index = int(index.group(1)) if index else 0


async def transact(table: TableClient, operations: Sequence[Operation]) -> list[str | None]:
    """Carry out all operations or none; return the new ETag of each, None for a deletion.

    Raises `TransactionError`, and whatever the SDK's pipeline raises for an outage.
    """
    boundary = f"batch_{uuid4()}"
    request = HttpRequest(
        "POST",
        f"{table.url}/$batch",
        headers={
            "Content-Type": f"multipart/mixed; boundary={boundary}",
            "Accept": "application/json",
            "DataServiceVersion": "3.0",
            "x-ms-version": table.api_version,
        },
        content=body_of(f"{table.url}/{table.table_name}", boundary, operations),
    )
    response = await table._client.send_request(request, stream=True)  # noqa: SLF001 - the SDK has no public way to send a request
    answer = await response.read()
    if response.status_code != 202:
        raise TransactionError(response.status_code, answer.decode(errors="replace"))
    return _etags(answer, len(operations))


def body_of(address: str, boundary: str, operations: Sequence[Operation]) -> bytes:
    """Return the body of the request: one change set with one part for each operation."""
    parts = "".join(f"--changes\r\n{PART}{_part(address, operation)}\r\n" for operation in operations)
    head = f"--{boundary}\r\nContent-Type: multipart/mixed; boundary=changes\r\n\r\n"
    return f"{head}{parts}--changes--\r\n\r\n--{boundary}--\r\n".encode()


def _part(address: str, operation: Operation) -> str:
    match operation:
        case Insert(entity):
            return _with_body(f"POST {address} HTTP/1.1\r\n", entity)
        case Replace(entity, etag):
            return _with_body(f"PUT {_place(address, operation)} HTTP/1.1\r\nIf-Match: {etag}\r\n", entity)
        case Put(entity):
            return _with_body(f"PUT {_place(address, operation)} HTTP/1.1\r\n", entity)
        case Delete():
            return f"DELETE {_place(address, operation)} HTTP/1.1\r\nIf-Match: *\r\nAccept: application/json\r\n\r\n"


def _with_body(head: str, entity: Entity) -> str:
    body = json.dumps(wire_form(entity), separators=(",", ":"))
    return f"{head}{JSON_BODY}Content-Length: {len(body)}\r\n\r\n{body}"


def _place(address: str, operation: Operation) -> str:
    partition, row = (quote(key.replace("'", "''"), safe="") for key in (operation.partition, operation.row))
    return f"{address}(PartitionKey='{partition}',RowKey='{row}')"


def wire_form(entity: Entity) -> dict[str, Any]:
    """Return the entity with the types that JSON lacks beside their values; raises TypeError for one we do not use."""
    wire: dict[str, Any] = {}
    for name, value in entity.items():
        match value:
            case bool():
                wire[name] = value
            case str():
                wire[name] = str(value)
            case int() if abs(value) <= LARGEST_INT32:
                wire[name] = value
            case datetime():
                wire[name] = f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
                wire[f"{name}@odata.type"] = "Edm.DateTime"
            case float():
                wire[name] = value
                wire[f"{name}@odata.type"] = "Edm.Double"
            case _:
                raise TypeError(f"{name}: a table row here holds no {type(value).__name__} such as {value!r}")
    return wire


def _etags(answer: bytes, count: int) -> list[str | None]:
    """Read the answer: one part for each operation, or, if nothing was carried out, one for the operation at fault."""
    parts = STATUS.split(answer)[1:]
    statuses, rest = [int(status) for status in parts[::2]], parts[1::2]
    for status, text in zip(statuses, rest, strict=True):
        if not 200 <= status < 300:
            raise TransactionError(status, text.decode(errors="replace"))
    if len(statuses) != count:
        raise TransactionError(500, f"{len(statuses)} answers to {count} operations")
    return [found.group(1).decode() if (found := ETAG.search(text)) else None for text in rest]
