"""The port of a table, the limits of rows, and the schema version of each row."""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, Generic, Literal, Protocol, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.alias_generators import to_pascal

from engine.domain import exact_json
from engine.domain.causes import Cause, Code
from engine.domain.errors import (
    ConflictError,
    InputFault,
    InvalidError,
    UnavailableError,
    UnreadableRowError,
)
from engine.domain.keys import SCHEMA_VERSION
from engine.domain.messages import faults_of, utf16_units

MAX_CHARACTERS = 32 * 1024
"""The longest text in one property, in characters: 64 KiB of UTF-16."""
MAX_ROW_BYTES = 1_000_000
"""The largest row in bytes. The table's limit is 1 MiB with its keys and property names."""

KEYS = {"PartitionKey", "RowKey", "SchemaVersion"}

MORE = "more"
"""The field of a record for columns that a newer version of the app has added (FLT-12)."""

log = logging.getLogger(__name__)

Columns = Mapping[str, Any]

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Insert:
    """Inserts a row. Conflicts if the row exists."""

    key: str
    row: Any


@dataclass(frozen=True, slots=True)
class Replace:
    """Overwrites a whole row. Conflicts unless the row still has this ETag."""

    key: str
    row: Any
    etag: str


@dataclass(frozen=True, slots=True)
class Put:
    """Inserts a row, or overwrites the whole row, unconditionally."""

    key: str
    row: Any


@dataclass(frozen=True, slots=True)
class Delete:
    """Removes a row. Conflicts if the row does not exist."""

    key: str


Operation = Insert | Replace | Put | Delete
"""A write. Its row is a record until `OrderStore` converts it to columns."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A row as it was read."""

    key: str
    row: Columns
    etag: str


ETags = Sequence[str | None]
"""The ETags of the written rows, in the order of the operations. None for a removed row."""


class Table(Protocol):
    """A table. Every method raises `UnavailableError` if the table cannot be reached."""

    async def submit(self, partition: str, operations: Sequence[Operation]) -> ETags:
        """Carry out all operations or none, and return the new ETags.

        A transaction has at most 100 operations, on different rows.

        Raises `ConflictError` if a row is not in the state that an operation requires. Raises
        `UnavailableError` if it is unknown whether the operations were carried out. Raises
        `InvalidError` for operations that a transaction cannot hold.
        """

    async def submit_separately(self, partition: str, operations: Sequence[Operation]) -> None:
        """Carry out independent operations. Operations that conflict are skipped."""

    async def get(self, partition: str, key: str) -> Stored | None:
        """Return a row, or None if it does not exist."""

    async def rows(
        self, partition: str, start: str, end: str, limit: int | None = None
    ) -> list[Stored]:
        """Return up to `limit` rows with start <= key < end, in key order."""


async def first(table: Table, partition: str, rows: Mapping[str, Columns]) -> Columns:
    """Insert these rows unless the first of them exists. Return the columns of the first row.

    Raises `UnavailableError`.
    """
    key = next(iter(rows))
    try:
        await table.submit(partition, [Insert(name, columns) for name, columns in rows.items()])
    except ConflictError as error:
        if (stored := await table.get(partition, key)) is None:
            raise UnavailableError("a row that exists cannot be read") from error
        return columns_of(stored)
    return rows[key]


def columns_of(stored: Stored) -> dict[str, Any]:
    """Return the columns of a row, except its keys and version. Raises `UnreadableRowError`."""
    version = stored.row.get("SchemaVersion")
    if not isinstance(version, int) or not 1 <= version <= SCHEMA_VERSION:
        facts = {"row": stored.key, "version": str(version), "readable": SCHEMA_VERSION}
        raise UnreadableRowError(Cause(Code.ROW_VERSION_UNKNOWN, facts))
    return {name: value for name, value in stored.row.items() if name not in KEYS}


class RowMapper(Generic[Made]):
    """Maps a kind of record to columns: one for each field that is not None, named in PascalCase.

    Unknown columns are kept in the record's field `more`, if it has one, and are written back.
    """

    def __init__(self, kind: type[Made], *, texts: Collection[str] = (), **names: str) -> None:
        defaults = {field.name: field.default for field in fields(kind)}  # type: ignore[arg-type]
        known = {name: names.get(name, to_pascal(name)) for name in defaults}
        self.kind = kind
        """The record."""
        self.names: Mapping[str, str] = known
        """The column of each field."""
        self._texts = {known[name] for name in texts}
        """The columns that hold JSON."""
        self._needed = {
            known[name]
            for name, default in defaults.items()
            if default is not None and name != MORE
        }
        self._more = known.get(MORE)
        self._known = set(known.values()) - {self._more}

        def alias(name: str) -> str:
            # A field of a record inside this one is not known: `names` may give its name too.
            return known.get(name) or names.get(name) or to_pascal(name)

        config = ConfigDict(alias_generator=alias, ser_json_timedelta="float")
        kind_or_none: Any = kind | None  # for a class alone pydantic takes no configuration
        self._adapter: TypeAdapter[Any] = TypeAdapter(kind_or_none, config=config)

    def columns(self, record: Made, mode: Literal["python", "json"] = "python") -> dict[str, Any]:
        """Return the columns of a record.

        In mode `json`, times are text and durations are seconds.
        """
        columns: dict[str, Any] = self._adapter.dump_python(
            record, mode=mode, by_alias=True, exclude_none=True
        )
        columns |= {name: exact_json.write(columns[name]) for name in self._texts & columns.keys()}
        if self._more is None:
            return columns
        del columns[self._more]
        return {**getattr(record, MORE), **columns}

    def record(self, columns: Columns) -> Made:
        """Read a record. Raises ValueError with all faults. The message repeats no values."""
        if not isinstance(columns, Mapping):
            raise ValueError("there are no columns")  # noqa: TRY004 - as for all faults of a row
        if missing := self._needed - columns.keys():
            raise ValueError(f"there is no {', '.join(sorted(missing))}")
        try:
            texts = {name: exact_json.read(columns[name]) for name in self._texts & columns.keys()}
            known = {**columns, **texts, **self._unknown(columns)}
            record: Made = self._adapter.validate_python(known)
        except ValidationError as error:
            raise ValueError("; ".join(map(str, faults_of(error)))) from None
        return record

    def _unknown(self, columns: Columns) -> dict[str, Any]:
        """Return the columns that only a newer version knows, as the value of the field `more`."""
        if self._more is None:
            return {}
        unknown = {name: value for name, value in columns.items() if name not in self._known}
        return {self._more: unknown}


def read_rows(rows: Iterable[Stored], read: Callable[[Stored], Made]) -> list[Made]:
    """Call `read` for each row, and return the results.

    An unreadable row is logged and left out.
    """
    made = []
    for row in rows:
        try:
            made.append(read(row))
        except (UnreadableRowError, LookupError, ValueError, TypeError):
            log.exception("rows.passed_over", extra={"row": row.key})
    return made


def stored_form(columns: Columns) -> dict[str, Any]:
    """Return the stored properties of a row. None is stored as an absent property.

    Raises `InvalidError` for values that no row can hold, and ValueError for a time without a zone.
    """
    if faults := list(_too_large(columns)):
        raise InvalidError(faults)
    return {name: _stored(value) for name, value in columns.items() if value is not None}


def entity(partition: str, key: str, row: Columns) -> Columns:
    """Return the entity that the table stores: the row with its keys and the schema version."""
    return {"PartitionKey": partition, "RowKey": key, "SchemaVersion": SCHEMA_VERSION, **row}


def _too_large(columns: Columns) -> Iterator[InputFault]:
    total = 0
    for name, value in columns.items():
        size = utf16_units(value) if isinstance(value, str) else 8
        total += 2 * size
        if size > MAX_CHARACTERS:
            yield InputFault(name, "property-too-long", {"length": size, "limit": MAX_CHARACTERS})
    if total > MAX_ROW_BYTES:
        yield InputFault("", "row-too-long", {"length": total, "limit": MAX_ROW_BYTES})


def _stored(value: Any) -> Any:
    if isinstance(value, datetime):
        return aware(value).astimezone(UTC)
    return str(value) if isinstance(value, str) else value


def aware(time: datetime) -> datetime:
    """Return the time unchanged. Raises ValueError if it has no zone."""
    if time.tzinfo is None:
        raise ValueError("a time without a zone means nothing to another machine")
    return time
