"""What a transaction can do to the rows of one partition; a row is a record, or the columns that it is stored as."""

from dataclasses import dataclass
from typing import Generic, TypeVar

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
