"""Which order a client's `Idempotency-Key` stands for, in table `submissionkeys`."""

from hashlib import sha256

from adapters.operations import Insert
from adapters.rows import columns_of, entity
from adapters.tables import TableTransactions
from core.errors import ConflictError, UnavailableError
from core.ports import Clock


class TableSubmissionKeys:
    """`SubmissionKeys` on a table; keys are hashed, because a client may put anything into them."""

    def __init__(self, table: TableTransactions, clock: Clock) -> None:
        self._table = table
        self._clock = clock

    async def claim(self, key: str, order_id: str, fingerprint: str) -> tuple[str, str]:
        """See `SubmissionKeys.claim`."""
        row = sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        columns = {"OrderID": order_id, "Fingerprint": fingerprint, "At": self._clock()}
        try:
            await self._table.submit(row[:2], [Insert(entity(row[:2], row, columns))])
        except ConflictError:
            return await self._bound(row)
        return order_id, fingerprint

    async def _bound(self, row: str) -> tuple[str, str]:
        stored = await self._table.get(row[:2], row)
        if stored is None:
            raise UnavailableError("a submission key that exists cannot be read")
        columns = columns_of(stored)
        return columns["OrderID"], columns["Fingerprint"]
