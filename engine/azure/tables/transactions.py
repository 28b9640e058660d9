"""The operations on Table Storage that this app uses.

They are entity group transactions, point reads and range queries.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, islice

from azure.data.tables.aio import TableClient

from engine.azure.failures import azure_errors
from engine.azure.tables import wire
from engine.azure.tables.budget import RateLimiter
from engine.concurrency import GroupCommit
from engine.domain.errors import ConflictError, InputFault, InvalidError, UnavailableError
from engine.storage.tables import ETags, Operation, Stored

Outcome = ETags | Exception

Parts = Mapping[str, str]
"""A submission as it is sent: the part of each operation by row key."""

MAX_OPERATIONS = 100
MAX_BYTES = 1_500_000
"""The largest content of a transaction, in bytes. Table Storage accepts 4 MiB including headers."""


class TableTransactions:
    """One table. Concurrent submissions to a partition share an entity group transaction."""

    def __init__(
        self,
        table: Callable[[], TableClient],
        budget: RateLimiter | None = None,
    ) -> None:
        self._table = table
        # With a budget, each operation waits for its turn.
        self._budget = budget
        self._commits: GroupCommit[Parts, ETags] = GroupCommit(self._flush)

    async def submit(self, partition: str, operations: Sequence[Operation]) -> ETags:
        # An invalid row is refused here, before it can share a transaction with others.
        parts = wire.parts_of(self._table(), partition, operations)
        if not len(parts) == len(operations) <= MAX_OPERATIONS:
            raise InvalidError([InputFault("", "too-many-operations", {"limit": MAX_OPERATIONS})])
        return await self._commits.submit(partition, parts) if parts else []

    async def submit_separately(self, partition: str, operations: Sequence[Operation]) -> None:
        """Carry out operations that do not depend on each other.

        They are grouped where possible.
        """
        outcomes = await asyncio.gather(
            *(self.submit(partition, [operation]) for operation in operations),
            return_exceptions=True,
        )
        for outcome in outcomes:
            if isinstance(outcome, BaseException) and not isinstance(outcome, ConflictError):
                raise outcome

    async def get(self, partition: str, key: str) -> Stored | None:
        await self._turn()
        with azure_errors("reading a row"):
            return await wire.read_one(self._table(), partition, key)

    async def rows(
        self, partition: str, start: str, end: str, limit: int | None = None
    ) -> list[Stored]:
        if limit is not None and limit <= 0:
            return []
        found: list[Stored] = []
        await self._turn()
        with azure_errors("querying rows"):
            async for entity in wire.read_range(self._table(), partition, start, end, limit):
                found.append(entity)
                if len(found) == limit:
                    break
        return found

    async def _turn(self) -> None:
        if self._budget:
            await self._budget.turn()

    async def _flush(self, _partition: str, waiting: Sequence[Parts]) -> list[Outcome]:
        """Commit all submissions together.

        After a refusal, leave the refused one out, then try each alone.
        """
        group = _fitting(waiting)
        outcomes, error = await self._try(group)
        if error is None or isinstance(error, UnavailableError) or len(group) == 1:
            return outcomes
        guilty = _owner(group, error)
        # Tried one by one, so that no submission is refused for the fault of another.
        if guilty is None:
            return await self._try_separately(group)
        others = [*group[:guilty], *group[guilty + 1 :]]
        # Many conflicts in one group mean that another process does the same work. To leave them
        # out one by one would take as many round trips as there are orders, while the others wait.
        outcomes, again = await self._try(others)
        if again and not isinstance(again, UnavailableError):
            outcomes = await self._try_separately(others)
        return [*outcomes[:guilty], error, *outcomes[guilty:]]

    async def _try_separately(self, group: Sequence[Parts]) -> list[Outcome]:
        """Commit each submission in its own transaction."""
        tries = await asyncio.gather(*(self._try([parts]) for parts in group))
        return [outcomes[0] for outcomes, _ in tries]

    async def _try(self, group: Sequence[Parts]) -> tuple[list[Outcome], Exception | None]:
        """Return the outcome of each submission, and the error that all share, if there is one."""
        all_parts = list(chain.from_iterable(parts.values() for parts in group))
        await self._turn()
        try:
            with azure_errors("writing rows"):
                etags = iter(await wire.transact(self._table(), all_parts))
        except Exception as error:  # noqa: BLE001 - any error is the outcome of its submission
            return [error] * len(group), error
        return [list(islice(etags, len(parts))) for parts in group], None


def _fitting(waiting: Sequence[Parts]) -> Sequence[Parts]:
    """Return the first submissions that fit into one transaction. No row may occur twice."""
    keys: set[str] = set()
    size = 0
    for number, parts in enumerate(waiting):
        size += sum(map(len, parts.values()))
        too_many = len(parts) + len(keys) > MAX_OPERATIONS or size > MAX_BYTES
        if number and (too_many or parts.keys() & keys):
            return waiting[:number]
        keys |= parts.keys()
    return waiting


def _owner(group: Sequence[Parts], error: Exception) -> int | None:
    """Return the index of the submission at fault. None if the error has no index."""
    index = getattr(error.__cause__ or error, "index", None)
    if index is None:
        return None
    for number, parts in enumerate(group):
        index -= len(parts)
        if index < 0:
            return number
    return None
