"""Which order a client's `Idempotency-Key` stands for, in table `submissionkeys`.

Beside each key stands a row that sorts by the time at which the key was bound: so what is old is a range.
"""

from datetime import datetime
from hashlib import sha256

from core.gathering import run_all
from core.keys import sortable
from core.ports import Clock
from stores.tables import Delete, Table, first

PARTITIONS = [f"{number:02x}" for number in range(256)]
AGE = "!"
"""Begins the keys of the rows that sort by time."""

MOST = 200
"""Of one partition at a time."""
AT_ONCE = 16


class SubmissionKeys:
    """Which order a client's `Idempotency-Key` stands for."""

    def __init__(self, table: Table, clock: Clock) -> None:
        self._table = table
        self._clock = clock

    async def claim(self, key: str, order_id: str, fingerprint: str) -> tuple[str, str]:
        """Bind the key to the order unless it is bound; return the order id and fingerprint that it is bound to."""
        row = sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        now = self._clock()
        rows = {
            row: {"OrderID": order_id, "Fingerprint": fingerprint, "At": now},
            f"{AGE}{sortable(now)}|{row}": {},
        }
        bound = await first(self._table, row[:2], rows)
        return bound["OrderID"], bound["Fingerprint"]

    async def remove_before(self, time: datetime) -> int:
        """Forget keys that were bound before that time, so many of each partition at most; return how many."""
        return sum(
            await run_all(
                (self._remove(partition, time) for partition in PARTITIONS), at_most=AT_ONCE
            )
        )

    async def _remove(self, partition: str, time: datetime) -> int:
        old = await self._table.rows(partition, AGE, f"{AGE}{sortable(time)}", MOST)
        ages = [row.key for row in old]
        keys = [age.partition("|")[2] for age in ages]
        for part in (keys, ages):  # a key whose removal is cut short is found again
            await self._table.submit_each(partition, [Delete(key) for key in part])
        return len(old)
