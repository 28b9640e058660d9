"""Table Storage as this app uses it: entity group transactions, point reads, and one shape of query."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice

from azure.data.tables.aio import TableClient

from adapters.failures import azure_errors
from adapters.tables import wire
from core.errors import ConflictError, InvalidError, UnavailableError
from core.gathering import GroupCommit
from stores.tables import Delete, ETags, Operation, Stored, stored_form

Outcome = ETags | Exception

MAX_OPERATIONS = 100
MAX_BYTES = 1_500_000
"""Cosmos DB takes 2 MB, Table Storage 4 MiB; the rest is for what our estimate misses."""


class TableTransactions:
    """One table. What is submitted to a partition at the same time shares an entity group transaction."""

    def __init__(self, table: Callable[[], TableClient]) -> None:
        self._table = table
        self._commits: GroupCommit[Sequence[Operation], ETags] = GroupCommit(self._flush)

    async def submit(self, partition: str, operations: Sequence[Operation]) -> ETags:
        """See `Table.submit`."""
        keys = {operation.key for operation in operations}
        if not len(keys) == len(operations) <= MAX_OPERATIONS:
            raise InvalidError([f"a transaction takes at most {MAX_OPERATIONS} operations, each on another row"])
        stored = [_as_stored(operation) for operation in operations]  # what no row can hold, never meets its neighbours
        return await self._commits.submit(partition, stored) if stored else []

    async def submit_each(self, partition: str, operations: Sequence[Operation]) -> None:
        """See `Table.submit_each`; they are grouped where possible."""
        outcomes = await asyncio.gather(
            *(self.submit(partition, [operation]) for operation in operations), return_exceptions=True
        )
        for outcome in outcomes:
            if isinstance(outcome, BaseException) and not isinstance(outcome, ConflictError):
                raise outcome

    async def get(self, partition: str, key: str) -> Stored | None:
        """See `Table.get`."""
        with azure_errors("reading a row"):
            return await wire.read_one(self._table(), partition, key)

    async def rows(self, partition: str, start: str, end: str, limit: int | None = None) -> list[Stored]:
        """See `Table.rows`."""
        if limit is not None and limit <= 0:
            return []
        found: list[Stored] = []
        with azure_errors("querying rows"):
            async for entity in wire.read_range(self._table(), partition, start, end, limit):
                found.append(entity)
                if len(found) == limit:
                    break
        return found

    async def _flush(self, partition: str, waiting: Sequence[Sequence[Operation]]) -> list[Outcome]:
        """Commit all together; if one is refused, all the others together; if one of those is, each by itself.

        Many conflicts in one group mean that another process does the same work: then to leave out one after the other
        would take as many round trips as there are orders, and the others would wait for all of them. Who is refused
        is refused for what it did itself: if nobody says which one that was, each is tried by itself.
        """
        group = _fitting(waiting)
        outcomes, error = await self._try(partition, group)
        if error is None or isinstance(error, UnavailableError) or len(group) == 1:
            return outcomes
        guilty = _owner(group, error)
        if guilty is None:
            return await self._each(partition, group)
        others = [*group[:guilty], *group[guilty + 1 :]]
        outcomes, again = await self._try(partition, others)
        if again and not isinstance(again, UnavailableError):
            outcomes = await self._each(partition, others)
        return [*outcomes[:guilty], error, *outcomes[guilty:]]

    async def _each(self, partition: str, group: Sequence[Sequence[Operation]]) -> list[Outcome]:
        """Commit each by itself."""
        alone = await asyncio.gather(*(self._try(partition, [operations]) for operations in group))
        return [outcome for each, _ in alone for outcome in each]

    async def _try(
        self, partition: str, group: Sequence[Sequence[Operation]]
    ) -> tuple[list[Outcome], Exception | None]:
        """Return the outcome of each submission, and the error that they share, if there was one."""
        try:
            with azure_errors("writing rows"):
                operations = [operation for each in group for operation in each]
                etags = iter(await wire.transact(self._table(), partition, operations))
        except Exception as error:  # noqa: BLE001 - it belongs to whoever caused it, whatever it is
            return [error] * len(group), error
        return [list(islice(etags, len(operations))) for operations in group], None


def _fitting(waiting: Sequence[Sequence[Operation]]) -> Sequence[Sequence[Operation]]:
    """Return the first submissions, as many as one transaction can hold; no row may occur in it twice."""
    keys: set[str] = set()
    size = 0
    for number, operations in enumerate(waiting):
        own = {operation.key for operation in operations}
        size += sum(_bytes(operation) for operation in operations)
        if number and (own & keys or len(own) + len(keys) > MAX_OPERATIONS or size > MAX_BYTES):
            return waiting[:number]
        keys |= own
    return waiting


def _as_stored(operation: Operation) -> Operation:
    return operation if isinstance(operation, Delete) else replace(operation, row=stored_form(operation.row))


def _bytes(operation: Operation) -> int:
    """Estimate generously what the operation takes in the request, where JSON escapes what is not ASCII."""
    values = () if isinstance(operation, Delete) else operation.row.values()
    texts = [value for value in values if isinstance(value, str)]
    return 1000 + sum(len(text) * (2 if text.isascii() else 12) for text in texts)


def _owner(group: Sequence[Sequence[Operation]], error: Exception) -> int | None:
    """Return the number of the submission at fault; None if the error does not say."""
    index = getattr(error.__cause__ or error, "index", None)
    if index is None:
        return None
    for number, operations in enumerate(group):
        index -= len(operations)
        if index < 0:
            return number
    return None
