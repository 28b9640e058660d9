"""The orders to which clients' `Idempotency-Key`s are bound, in table `submissionkeys`.

Each key has a second row that sorts by the time at which the key was bound, so that old keys are a
range.
"""

from datetime import datetime
from hashlib import sha256

from engine.concurrency import run_all
from engine.domain.keys import sortable
from engine.ports import Clock
from engine.storage.tables import Delete, Table, first

PARTITIONS = [f"{number:02x}" for number in range(256)]
AGE = "!"
"""The prefix of the keys of the rows that sort by time."""

MOST = 200
"""How many keys of one partition are removed at a time."""
AT_ONCE = 16


class SubmissionKeys:
    """The orders to which clients' `Idempotency-Key`s are bound."""

    def __init__(self, table: Table, clock: Clock) -> None:
        self._table = table
        self._clock = clock

    async def claim(self, key: str, order_id: str, fingerprint: str) -> tuple[str, str]:
        """Bind the key to the order unless it is bound; return its order id and fingerprint."""
        row = sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        now = self._clock()
        rows = {
            row: {"OrderID": order_id, "Fingerprint": fingerprint, "At": now},
            f"{AGE}{sortable(now)}|{row}": {},
        }
        bound = await first(self._table, row[:2], rows)
        return bound["OrderID"], bound["Fingerprint"]

    async def remove_before(self, time: datetime) -> int:
        """Remove keys bound before that time, up to `MOST` per partition; return their number."""
        removals = (self._remove(partition, time) for partition in PARTITIONS)
        return sum(await run_all(removals, at_most=AT_ONCE))

    async def _remove(self, partition: str, time: datetime) -> int:
        old = await self._table.rows(partition, AGE, f"{AGE}{sortable(time)}", MOST)
        ages = [row.key for row in old]
        keys = [age.partition("|")[2] for age in ages]
        for part in (keys, ages):  # a key whose removal is cut short is found again
            await self._table.submit_separately(partition, [Delete(key) for key in part])
        return len(old)
