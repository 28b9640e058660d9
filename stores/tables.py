"""The port of a table, and what holds for all rows: their columns, and which version of the app wrote them.

Its rows are records, or the columns that they are stored as.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from core.errors import UnreadableRowError

SCHEMA_VERSION = 3
OLDEST_ORDERS = 3
"""In table `orders`: before it an order had other columns, and owed other rows. The other tables are as they were."""
KEYS = {"PartitionKey", "RowKey", "SchemaVersion"}

log = logging.getLogger(__name__)

Columns = Mapping[str, Any]

Made = TypeVar("Made")
Row = TypeVar("Row")
Row_co = TypeVar("Row_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Insert(Generic[Row_co]):
    """Insert; conflicts if the row exists."""

    key: str
    row: Row_co


@dataclass(frozen=True, slots=True)
class Replace(Generic[Row_co]):
    """Overwrite the whole row; conflicts unless it is as it was under this ETag."""

    key: str
    row: Row_co
    etag: str


@dataclass(frozen=True, slots=True)
class Put(Generic[Row_co]):
    """Overwrite the whole row or insert it, whatever is there."""

    key: str
    row: Row_co


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a row; conflicts if it is gone."""

    key: str


Operation = Insert[Row_co] | Replace[Row_co] | Put[Row_co] | Delete


@dataclass(frozen=True, slots=True)
class Stored(Generic[Row_co]):
    """A row as it was read."""

    key: str
    row: Row_co
    etag: str


ETags = Sequence[str | None]
"""Of the rows that were written, in the order of the operations; None for a row that was removed."""


class Table(Protocol[Row]):
    """One table. Every method raises `UnavailableError` when it cannot be reached."""

    async def submit(self, partition: str, operations: Sequence[Operation[Row]]) -> ETags:
        """Carry out all the operations or none: at most 100, each on another row; return the new ETag of each.

        Raises `ConflictError` when a row is not as the operations expect it, `UnavailableError` when it is unknown
        whether they were carried out, and `InvalidError` for operations that no transaction can hold.
        """

    async def submit_each(self, partition: str, operations: Sequence[Operation[Row]]) -> None:
        """Carry out operations that do not depend on each other; pass over those that conflict."""

    async def get(self, partition: str, key: str) -> Stored[Row] | None:
        """Return one row; None if there is none."""

    async def rows(self, partition: str, start: str, end: str, limit: int | None = None) -> list[Stored[Row]]:
        """Return the rows with start <= key < end in key order, up to `limit`."""


class UnknownSchemaError(UnreadableRowError):
    """The row was written by a version of the app that this one cannot read."""


def columns_of(stored: Stored[Columns], oldest: int = 1) -> dict[str, Any]:
    """Return the columns of a row without what all rows have; raises `UnknownSchemaError`."""
    version = stored.row.get("SchemaVersion", 1)
    if not oldest <= version <= SCHEMA_VERSION:
        readable = f"this app reads {oldest} to {SCHEMA_VERSION}"
        raise UnknownSchemaError(f"row {stored.key} has schema version {version}; {readable}")
    return {name: value for name, value in stored.row.items() if name not in KEYS}


def read_each(rows: Iterable[Stored[Columns]], read: Callable[[Stored[Columns]], Made]) -> list[Made]:
    """Return what can be read of each row; one that cannot is logged, and takes no other along."""
    made = []
    for row in rows:
        try:
            made.append(read(row))
        except (UnreadableRowError, LookupError, ValueError, TypeError):
            log.exception("rows.passed_over", extra={"row": row.key})
    return made
