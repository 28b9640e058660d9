"""The conditions that last or have recently ended, in table `alerts`: one row for each."""

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
"""A condition with the ETag of its row."""


class ConditionLog:
    """The conditions by key. Every method raises `UnavailableError`."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def all(self) -> dict[str, Known]:
        """Return all conditions by key. An unreadable row is logged and left out."""
        stored = await self._table.rows(PARTITION, "", "~")
        read = read_rows(stored, lambda row: (FORM.record(columns_of(row)), row.etag))
        return {condition.key: (condition, etag) for condition, etag in read}

    async def put(self, condition: Condition, etag: str | None) -> str | None:
        """Write a condition, and return its ETag.

        Raises `ConflictError` if another writer was first.
        """
        key, columns = key_part(condition.key), FORM.columns(condition)
        operation: Operation = Replace(key, columns, etag) if etag else Insert(key, columns)
        (written,) = await self._table.submit(PARTITION, [operation])
        return written

    async def forget(self, condition: Condition) -> None:
        """Remove the row of a condition."""
        await self._table.submit_separately(PARTITION, [Delete(key_part(condition.key))])
