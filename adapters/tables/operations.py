"""What a table can do; its rows are records, or the columns that they are stored as."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

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
