"""Table Storage as this app uses it: entity group transactions, point reads, and one shape of query."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.data.tables import UpdateMode
from azure.data.tables.aio import TableClient

from adapters.coalesce import Coalescer
from adapters.failures import azure_errors
from core.errors import ConflictError, InvalidError, UnavailableError

Entity = Mapping[str, Any]
Operation = tuple[str, Entity] | tuple[str, Entity, Mapping[str, Any]]
"""As the SDK takes it: what to do, the entity, and the conditions."""

RANGE = "PartitionKey eq @partition and RowKey ge @start and RowKey lt @end"
"""The only query there is: what it costs depends on how much it returns, never on the size of the table."""

MOST_OPERATIONS = 100
MOST_BYTES = 3_000_000
"""Azure takes 4 MiB; the rest is for what our estimate misses."""

PAGE = 1000


def create(entity: Entity) -> Operation:
    """Insert; conflicts if the row exists."""
    return ("create", entity)


def replace(entity: Entity, etag: str) -> Operation:
    """Overwrite the whole row; conflicts unless it is as it was under this ETag."""
    return (
        "update",
        entity,
        {"mode": UpdateMode.REPLACE, "etag": etag, "match_condition": MatchConditions.IfNotModified},
    )


def put(entity: Entity) -> Operation:
    """Overwrite the whole row or insert it, whatever is there."""
    return ("upsert", entity, {"mode": UpdateMode.REPLACE})


def delete(partition: str, row: str) -> Operation:
    """Remove a row; conflicts if it is gone."""
    return ("delete", {"PartitionKey": partition, "RowKey": row})


class TableTransactions:
    """One table. What is submitted to a partition at the same time shares an entity group transaction."""

    def __init__(self, table: Callable[[], TableClient]) -> None:
        self._table = table
        self._commits: Coalescer[Sequence[Operation], None] = Coalescer(self._flush)

    async def submit(self, partition: str, operations: Sequence[Operation]) -> None:
        """Carry out all the operations or none: at most 100, each on another row.

        Raises `ConflictError` when a row is not as the operations expect it, `UnavailableError` when it is unknown
        whether they were carried out, and `InvalidError` for operations that no transaction can hold.
        """
        rows = {_row(operation) for operation in operations}
        if not len(rows) == len(operations) <= MOST_OPERATIONS:
            raise InvalidError([f"a transaction takes at most {MOST_OPERATIONS} operations, each on another row"])
        if operations:
            await self._commits.submit(partition, operations)

    async def get(self, partition: str, row: str) -> Entity | None:
        """Return one entity by its keys; None if there is none."""
        try:
            with azure_errors("reading a row"):
                return await self._table().get_entity(partition, row)
        except ConflictError as error:
            if isinstance(error.__cause__, ResourceNotFoundError):
                return None
            raise

    async def rows(self, partition: str, start: str, end: str, limit: int | None = None) -> list[Entity]:
        """Return the rows with start <= key < end in key order, up to `limit`."""
        if limit is not None and limit <= 0:
            return []
        found: list[Entity] = []
        pages = self._table().query_entities(
            RANGE,
            parameters={"partition": partition, "start": start, "end": end},
            results_per_page=min(limit or PAGE, PAGE),
        )
        with azure_errors("querying rows"):
            async for entity in pages:  # pages may be short or empty and yet not be the last
                found.append(entity)
                if len(found) == limit:
                    break
        return found

    async def _flush(self, partition: str, waiting: Sequence[Sequence[Operation]]) -> list[Exception | None]:
        del partition  # each entity names it
        return await self._commit(_fitting(waiting))

    async def _commit(self, group: Sequence[Sequence[Operation]]) -> list[Exception | None]:
        """Commit all together; if one conflicts, all the others together; if one of those does, each by itself.

        Many conflicts in one group mean that another process does the same work: then to leave out one after the other
        would take as many round trips as there are orders, and the others would wait for all of them.
        """
        error = await self._try(group)
        if error is None or isinstance(error, UnavailableError) or len(group) == 1:
            return [error] * len(group)
        guilty = _owner(group, error)
        others = [*group[:guilty], *group[guilty + 1 :]]
        outcomes = [await self._try(others)]
        if outcomes == [None] or isinstance(outcomes[0], UnavailableError):
            outcomes *= len(others)
        else:
            outcomes = list(await asyncio.gather(*(self._try([operations]) for operations in others)))
        return [*outcomes[:guilty], error, *outcomes[guilty:]]

    async def _try(self, group: Sequence[Sequence[Operation]]) -> Exception | None:
        try:
            await self._write([operation for operations in group for operation in operations])
        except (UnavailableError, ConflictError, HttpResponseError) as error:
            return error
        return None

    async def _write(self, operations: Sequence[Operation]) -> None:
        with azure_errors("writing rows"):
            if len(operations) == 1:
                await self._single(operations[0])
            else:
                await self._table().submit_transaction(operations)

    async def _single(self, operation: Operation) -> None:
        table, (kind, entity) = self._table(), operation[:2]
        conditions = operation[2] if len(operation) == 3 else {}
        match kind:
            case "create":
                await table.create_entity(entity)
            case "update":
                await table.update_entity(entity, **conditions)
            case "upsert":
                await table.upsert_entity(entity, **conditions)
            case _:  # a single delete passes over a missing row, a transaction does not
                await table.submit_transaction([operation])


def etag_of(entity: Entity) -> str:
    """Return the ETag under which the SDK has read an entity."""
    metadata: Mapping[str, str] = getattr(entity, "metadata", {})
    return metadata["etag"]


async def submit_each(table: TableTransactions, partition: str, operations: Iterable[Operation]) -> None:
    """Carry out operations that do not depend on each other, grouped where possible; pass over those that conflict."""
    outcomes = await asyncio.gather(
        *(table.submit(partition, [operation]) for operation in operations), return_exceptions=True
    )
    for outcome in outcomes:
        if isinstance(outcome, BaseException) and not isinstance(outcome, ConflictError):
            raise outcome


def _row(operation: Operation) -> str:
    return str(operation[1]["RowKey"])


def _fitting(waiting: Sequence[Sequence[Operation]]) -> Sequence[Sequence[Operation]]:
    """Return the first submissions, as many as one transaction can hold; no row may occur in it twice."""
    rows: set[str] = set()
    size = 0
    for number, operations in enumerate(waiting):
        own = {_row(operation) for operation in operations}
        size += sum(_bytes(operation[1]) for operation in operations)
        if number and (own & rows or len(own) + len(rows) > MOST_OPERATIONS or size > MOST_BYTES):
            return waiting[:number]
        rows |= own
    return waiting


def _bytes(entity: Entity) -> int:
    """Estimate generously what the entity takes in the request, where JSON escapes what is not ASCII."""
    texts = [value for value in entity.values() if isinstance(value, str)]
    return 1000 + sum(len(text) * (2 if text.isascii() else 12) for text in texts)


def _owner(group: Sequence[Sequence[Operation]], error: Exception) -> int:
    """Return the number of the submission at fault; the first one if Azure does not say."""
    index = getattr(error.__cause__ or error, "index", 0)
    for number, operations in enumerate(group):
        index -= len(operations)
        if index < 0:
            return number
    return 0
