"""The conditions that last, or ended lately, in table `alerts`: a row for each."""

from engine.alerts.conditions import Condition
from engine.domain.keys import key_part
from engine.storage.tables import (
    Delete,
    Insert,
    Operation,
    Replace,
    RowMapper,
    Table,
    columns_of,
    read_rows,
)

PARTITION = "conditions"
FORM = RowMapper(Condition, texts=("orders", "reason"))

Known = tuple[Condition, str]
"""A condition, and the ETag of its row."""


class ConditionLog:
    """The conditions by key; every method raises `UnavailableError`."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def all(self) -> dict[str, Known]:
        """Return the conditions by their keys; an unreadable row is logged and left out."""
        stored = await self._table.rows(PARTITION, "", "~")
        read = read_rows(stored, lambda row: (FORM.record(columns_of(row)), row.etag))
        return {condition.key: (condition, etag) for condition, etag in read}

    async def put(self, condition: Condition, etag: str | None) -> str | None:
        """Write a condition, and return its ETag; raises `ConflictError` if another was first."""
        key, columns = key_part(condition.key), FORM.columns(condition)
        operation: Operation = Replace(key, columns, etag) if etag else Insert(key, columns)
        (written,) = await self._table.submit(PARTITION, [operation])
        return written

    async def forget(self, condition: Condition) -> None:
        """Remove the row of a condition that ended long ago."""
        await self._table.submit_separately(PARTITION, [Delete(key_part(condition.key))])
