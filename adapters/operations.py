"""What a transaction on a table can do to a row."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Entity = Mapping[str, Any]
"""Columns by name, the keys `PartitionKey` and `RowKey` among them."""


@dataclass(frozen=True, slots=True)
class _OnEntity:
    entity: Entity

    @property
    def partition(self) -> str:
        """Its partition key."""
        return str(self.entity["PartitionKey"])

    @property
    def row(self) -> str:
        """Its row key."""
        return str(self.entity["RowKey"])


@dataclass(frozen=True, slots=True)
class Insert(_OnEntity):
    """Insert; conflicts if the row exists."""


@dataclass(frozen=True, slots=True)
class Replace(_OnEntity):
    """Overwrite the whole row; conflicts unless it is as it was under this ETag."""

    etag: str


@dataclass(frozen=True, slots=True)
class Put(_OnEntity):
    """Overwrite the whole row or insert it, whatever is there."""


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a row; conflicts if it is gone."""

    partition: str
    row: str


Operation = Insert | Replace | Put | Delete
