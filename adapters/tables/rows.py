"""What the row of a table can hold, and how its properties are written."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from core.errors import InvalidError
from core.messages import utf16_units
from stores.tables import SCHEMA_VERSION, Columns

MAX_CHARACTERS = 32 * 1024
"""What one property can hold: 64 KiB of UTF-16."""
MAX_ROW_BYTES = 1_000_000
"""A row holds 1 MiB, and its keys and the names of its properties count too."""


def stored_form(columns: Columns) -> dict[str, Any]:
    """Return the properties of a row; None becomes an absent one.

    Raises `InvalidError` for what no row can hold, and ValueError for a time without a zone.
    """
    if faults := list(_too_large(columns)):
        raise InvalidError(faults)
    return {name: _stored(value) for name, value in columns.items() if value is not None}


def entity(partition: str, key: str, row: Columns) -> Columns:
    """Return the row as the table holds it: with its keys, and the version of the app's layout."""
    return {"PartitionKey": partition, "RowKey": key, "SchemaVersion": SCHEMA_VERSION, **row}


def _too_large(columns: Columns) -> Iterator[str]:
    total = 0
    for name, value in columns.items():
        size = utf16_units(value) if isinstance(value, str) else 8
        total += 2 * size
        if size > MAX_CHARACTERS:
            yield f"{name}: {size} characters; a property can hold {MAX_CHARACTERS}"
    if total > MAX_ROW_BYTES:
        yield f"{total} bytes in one row; it can hold {MAX_ROW_BYTES}"


def _stored(value: Any) -> Any:
    if isinstance(value, datetime):
        return aware(value).astimezone(UTC)
    return str(value) if isinstance(value, str) else value


def aware(time: datetime) -> datetime:
    """Return the time as it is; raises ValueError if it has no zone."""
    if time.tzinfo is None:
        raise ValueError("a time without a zone means nothing to another machine")
    return time
