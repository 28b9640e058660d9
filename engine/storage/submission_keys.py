"""Maps clients' `Idempotency-Key`s to orders, in table `submissionkeys`.

Each key has a second row that sorts by the time of its first use, so that old keys are a range.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any

from engine.concurrency import run_all
from engine.domain import exact_json
from engine.domain.keys import sortable
from engine.ports import Clock
from engine.storage.tables import Columns, Delete, Table, columns_of, first

PARTITIONS = [f"{number:02x}" for number in range(256)]
AGE = "!"
"""The prefix of the row keys that sort by time."""

MOST = 200
"""How many keys of a partition are removed in one call."""
AT_ONCE = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Binding:
    """The message that was made when an `Idempotency-Key` was first used."""

    order_id: str
    """The order that was made."""
    fingerprint: str = ""
    """A digest of the client's request."""
    offer: Mapping[str, Any] = field(default_factory=dict)
    """What the app added to the request, such as prices. It never contains personal data."""


class SubmissionKeys:
    """Maps clients' `Idempotency-Key`s to orders."""

    def __init__(self, table: Table, clock: Clock) -> None:
        self._table = table
        self._clock = clock

    async def find(self, key: str) -> Binding | None:
        row = _row_of(key)
        stored = await self._table.get(row[:2], row)
        return _binding(columns_of(stored)) if stored else None

    async def claim(self, key: str, binding: Binding) -> Binding:
        """Bind the key unless it is already bound. Return its binding, new or old."""
        row, now = _row_of(key), self._clock()
        columns = {"OrderID": binding.order_id, "Fingerprint": binding.fingerprint, "At": now}
        if binding.offer:
            columns["Offer"] = exact_json.write(binding.offer)
        rows: dict[str, Columns] = {row: columns, f"{AGE}{sortable(now)}|{row}": {}}
        return _binding(await first(self._table, row[:2], rows))

    async def remove_before(self, time: datetime) -> int:
        """Remove keys that were bound before this time, up to `MOST` in each partition.

        Returns the number of removed keys.
        """
        removals = (self._remove(partition, time) for partition in PARTITIONS)
        return sum(await run_all(removals, at_most=AT_ONCE))

    async def _remove(self, partition: str, time: datetime) -> int:
        old = await self._table.rows(partition, AGE, f"{AGE}{sortable(time)}", MOST)
        ages = [row.key for row in old]
        keys = [age.partition("|")[2] for age in ages]
        for part in (keys, ages):  # a key whose removal is cut short is found again
            await self._table.submit_separately(partition, [Delete(key) for key in part])
        return len(old)


def _row_of(key: str) -> str:
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def _binding(columns: Columns) -> Binding:
    return Binding(
        order_id=columns["OrderID"],
        fingerprint=columns["Fingerprint"],
        offer=exact_json.read(columns.get("Offer", "{}")),
    )
