"""Copies of orders, customers' keys, alerts and poison messages, for a backup.

A copy consists of lines. A line holds all own rows of one order, or some rows of one partition of
another table, with the time just before they were read. The work index and the rows of business
keys are left out, because they follow from the orders.
"""

import logging
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter, ValidationError

from engine.concurrency import run_all
from engine.domain.causes import Cause, Code
from engine.domain.errors import InputFault, InvalidError, RefusedError
from engine.domain.keys import LAST, ORDER_ID, bucket_of, history_key, state_key
from engine.domain.messages import Moment
from engine.ports import Clock
from engine.storage.tables import Columns, Delete, Insert, Stored, Table, columns_of, first

log = logging.getLogger(__name__)

ORDERS, KEYS_OF_CUSTOMERS = "orders", "submissionkeys"

PAGE = 1000
"""The approximate number of rows in a page. An order is never divided."""

TRIES = 5
"""How often an order is read until all its rows belong to the same moment."""

AT_ONCE = 16
MARKS, MARK = "restoring", "copy"
"""The partition and key of the row in table `agents` that names the copy that is being restored."""

LARGEST_INT32 = 2**31 - 1
TIME = "time"
"""The key that marks a time in JSON: `{"time": "2026-01-31T08:15:00+00:00"}`. A plain string is
text."""
MOMENT: TypeAdapter[datetime] = TypeAdapter(Moment)
COPY_ID = re.compile(r"[0-9a-f]{32}")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")
ROW_KEY = re.compile(r"[A-Za-z0-9!_.:|=~-]{1,1000}")


@dataclass(frozen=True, kw_only=True, slots=True)
class CopiedLine:
    """Rows that were read together.

    They are all rows of an order, or some rows of a partition of another table.
    """

    table: str
    partition: str
    order_id: str | None = None
    at: datetime
    """The time just before the rows were read."""
    rows: Mapping[str, Columns]
    """The columns of each row by row key, including the row's schema version."""


class Copies:
    """Reads a copy page by page, and restores it into an empty store."""

    def __init__(
        self, tables: Mapping[str, Table], partitions: Mapping[str, Sequence[str]], clock: Clock
    ) -> None:
        self._tables = tables
        self._clock = clock
        self.partitions = partitions
        """The partitions of each table in the copy."""
        self._places = [
            (table, partition) for table, all_of in partitions.items() for partition in all_of
        ]

    async def page(self, place: str) -> tuple[list[CopiedLine], str]:
        """Return the lines from a place on, and the place of the next page.

        An empty place means the beginning, and in the result the end. Raises `InvalidError` for a
        place that did not come from a page.
        """
        number, start = self._at(place)
        lines: list[CopiedLine] = []
        while number < len(self._places) and sum(len(line.rows) for line in lines) < PAGE:
            table, partition = self._places[number]
            read = self._orders if table == ORDERS else self._others
            found, start = await read(table, partition, start)
            lines += found
            number += not start
        following = self._places[number : number + 1]
        return lines, "".join(f"{table}|{partition}|{start}" for table, partition in following)

    def _at(self, place: str) -> tuple[int, str]:
        """Return the number of the place's partition, and the row key at which to continue."""
        if not place:
            return 0, ""
        try:
            table, partition, start = place.split("|", 2)
            return self._places.index((table, partition)), start
        except ValueError:
            raise InvalidError([InputFault("continuation", "unknown-page")]) from None

    async def _orders(self, table: str, bucket: str, start: str) -> tuple[list[CopiedLine], str]:
        """Return whole orders of a bucket, and the order at which to continue."""
        at, end = self._clock(), f"{bucket}-{LAST}"
        stored = await self._tables[table].rows(bucket, start or f"{bucket}-", end, PAGE)
        by_order = _by_order(stored)
        rest = ""
        if len(stored) == PAGE:  # the last order may have rows behind this page
            rest = stored[-1].key.partition("|")[0]
            by_order.pop(rest, None)
            if not by_order:  # one order is larger than a page
                by_order, rest = _by_order(await self._rows_of(rest)), f"{rest}{LAST}"
        copied = [_order(order_id, at, rows) for order_id, rows in by_order.items()]
        return [await self._of_one_moment(line) for line in copied], rest

    async def _of_one_moment(self, line: CopiedLine) -> CopiedLine:
        """Return the order's line.

        It is read again if the order changed while its rows were read.
        """
        for _ in range(TRIES):
            if not _is_torn(line):
                break
            at = self._clock()
            line = _order(str(line.order_id), at, await self._rows_of(str(line.order_id)))
        return line

    async def _rows_of(self, order_id: str) -> list[Stored]:
        bucket = bucket_of(order_id)
        return await self._tables[ORDERS].rows(bucket, f"{order_id}|", f"{order_id}|{LAST}")

    async def _others(self, table: str, partition: str, start: str) -> tuple[list[CopiedLine], str]:
        """Return rows of a partition, and the key at which to continue."""
        at = self._clock()
        stored = await self._tables[table].rows(partition, start, LAST, PAGE)
        rest = f"{stored[-1].key}!" if len(stored) == PAGE else ""
        line = CopiedLine(table=table, partition=partition, at=at, rows=_columns(stored))
        return [line] if stored else [], rest

    async def begin(self, copy: str) -> None:
        """Begin to restore a copy, or continue a restore that was interrupted.

        Raises `RefusedError` if the store has orders or customers' keys that are not from this
        copy, or if another copy is being restored.
        """
        marks = self._tables["agents"]
        if await marks.get(MARKS, MARK) is None:
            await self._check_that_it_is_empty()
        begun = await first(marks, MARKS, {MARK: {"CopyID": copy, "At": self._clock()}})
        if begun["CopyID"] != copy:
            raise RefusedError(Cause(Code.OTHER_COPY_RESTORED, {"copy": begun["CopyID"]}))

    async def _check_that_it_is_empty(self) -> None:
        orders = (
            self._has_rows(ORDERS, partition, f"{partition}-")
            for partition in self.partitions[ORDERS]
        )
        of_customers = self.partitions[KEYS_OF_CUSTOMERS]
        keys = (self._has_rows(KEYS_OF_CUSTOMERS, partition, "") for partition in of_customers)
        if any(await run_all([*orders, *keys], at_most=AT_ONCE)):
            raise RefusedError(Cause(Code.STORE_NOT_EMPTY))

    async def _has_rows(self, table: str, partition: str, start: str) -> bool:
        return bool(await self._tables[table].rows(partition, start, LAST, 1))

    async def end(self, copy: str) -> None:
        """Record that the whole copy is restored. Raises `RefusedError` for another copy."""
        marks = self._tables["agents"]
        mark = await marks.get(MARKS, MARK)
        if mark is None:  # it was ended before
            return
        if columns_of(mark)["CopyID"] != copy:
            raise RefusedError(
                Cause(Code.OTHER_COPY_RESTORED, {"copy": columns_of(mark)["CopyID"]})
            )
        await marks.submit_separately(MARKS, [Delete(MARK)])

    async def put(self, line: CopiedLine) -> None:
        """Insert the rows of a line. Existing rows are not changed."""
        inserts = [Insert(key, columns) for key, columns in line.rows.items()]
        await self._tables[line.table].submit_separately(line.partition, inserts)


def _by_order(rows: Iterable[Stored]) -> dict[str, list[Stored]]:
    """Group the rows by order. A row that names no order is logged and left out."""
    by_order: dict[str, list[Stored]] = {}
    for row in rows:
        order_id = row.key.partition("|")[0]
        if ORDER_ID.fullmatch(order_id):
            by_order.setdefault(order_id, []).append(row)
        else:
            log.error("copies.row_passed_over", extra={"row": row.key})
    return by_order


def _order(order_id: str, at: datetime, rows: Iterable[Stored]) -> CopiedLine:
    bucket = bucket_of(order_id)
    return CopiedLine(table=ORDERS, partition=bucket, order_id=order_id, at=at, rows=_columns(rows))


def _columns(rows: Iterable[Stored]) -> dict[str, Columns]:
    return {row.key: _without_keys(row.row) for row in rows}


def _without_keys(columns: Columns) -> Columns:
    return {name: columns[name] for name in columns if name not in ("PartitionKey", "RowKey")}


def _is_torn(line: CopiedLine) -> bool:
    """Whether the state is newer than the history.

    Rows are read in key order, so the history is read before the state.
    """
    order_id = str(line.order_id)
    state = line.rows.get(state_key(order_id))
    version = state.get("Version") if state else None
    return isinstance(version, int) and history_key(order_id, version) not in line.rows


def history_of(line: CopiedLine) -> CopiedLine:
    """Return the line with only the rows of the order's history."""
    kept = {key: columns for key, columns in line.rows.items() if "|history|" in key}
    return replace(line, rows=kept)


def as_json(rows: Mapping[str, Columns]) -> list[dict[str, Any]]:
    """Return rows as JSON objects, each with its key.

    A time becomes an object with the key `time`.
    """
    return [_row(key, columns) for key, columns in rows.items()]


def _row(key: str, columns: Columns) -> dict[str, Any]:
    return {"RowKey": key} | {name: _written(value) for name, value in columns.items()}


def _written(value: Any) -> Any:
    return {TIME: value.isoformat()} if isinstance(value, datetime) else value


def from_json(rows: Iterable[Mapping[str, Any]]) -> dict[str, Columns]:
    """Read the rows that `as_json` wrote.

    Raises ValueError for values that our tables cannot hold.
    """
    read: dict[str, Columns] = {}
    for row in rows:
        key = row.get("RowKey")
        if not isinstance(key, str) or not ROW_KEY.fullmatch(key):
            raise ValueError("a row has no key, or an invalid one")
        named = {name: value for name, value in row.items() if name != "RowKey"}
        read[key] = {_checked(name): _read(name, value) for name, value in named.items()}
    return read


def _checked(name: str) -> str:
    if not NAME.fullmatch(name) or name == "PartitionKey":
        raise ValueError("a column has an invalid name")
    return name


def _read(name: str, value: Any) -> Any:
    match value:
        case bool() | str():
            return value
        case float() if math.isfinite(value):
            return value
        case int() if abs(value) <= LARGEST_INT32:
            return value
        case {"time": str(text)} if len(value) == 1:
            return _time(name, text)
    raise ValueError(f"{name}: not a valid value of a column")


def _time(name: str, text: str) -> datetime:
    try:
        return MOMENT.validate_python(text)
    except ValidationError:
        raise ValueError(f"{name}: not a valid time of a column") from None
