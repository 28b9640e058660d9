"""Row and partition keys of table `orders`, sorted for its queries, and the version of its rows."""

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from zlib import crc32

from ulid import ULID

ORDER_ID = re.compile(r"b\d{2}-[0-9A-HJKMNP-TV-Z]{26}")
"""`b<NN>-<ULID>`: the bucket, and a part that sorts by time and cannot be guessed."""

SCHEMA_VERSION = 1
"""The version of the rows that this app writes, and the newest that it reads."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FAR_FUTURE = 10**18
MICROSECOND = timedelta(microseconds=1)

LAST = "~"
"""A character that sorts after all characters of our keys."""

KEYED = "="
"""The prefix of the rows of business keys; those of orders and work items begin otherwise."""

ABOUT_ORDER = "orders/"
"""The prefix of the subject of an event about an order; the order's id follows."""


def made_at(order_id: str) -> datetime | None:
    """Return the time at which the id was made; None if it is no id, or its time is none."""
    if not ORDER_ID.fullmatch(order_id):
        return None
    with suppress(ValueError):
        return ULID.from_str(order_id.partition("-")[2]).datetime
    return None


CHECK_LENGTH = 4
"""Number of check characters at the end of an id: one in a million other endings is right."""
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def with_check(order_id: str) -> str:
    """Return the id with check characters in place of its last ones.

    By them an id that this app has made is known before its order is recorded.
    """
    start = order_id[:-CHECK_LENGTH]
    number = int.from_bytes(sha256(start.encode()).digest())
    return start + "".join(CROCKFORD[number >> 5 * place & 31] for place in range(CHECK_LENGTH))


def is_checked(order_id: str) -> bool:
    """Whether the id has the form, a time and the check characters of an id of this app."""
    return made_at(order_id) is not None and order_id == with_check(order_id)


def bucket_of(order_id: str) -> str:
    """Return the partition that holds the order: an order keeps its bucket for life."""
    return order_id.partition("-")[0]


def order_in(key: str) -> str:
    """Return the id of the order in a key of the work index; empty if it has none."""
    found = ORDER_ID.search(key)
    return found[0] if found else ""


def key_part(text: str) -> str:
    """Return the text with characters that are unfit for a row key escaped as `=<hex>=`."""
    return re.sub(r"[^A-Za-z0-9_.:|-]", lambda found: f"={ord(found[0]):x}=", text)


def buckets(count: int) -> list[str]:
    """Return the partitions over which `count` buckets spread new orders."""
    return [f"b{number:02d}" for number in range(count)]


def spread_over(buckets: Sequence[str], name: str) -> str:
    """Return the bucket for a row that belongs to no order, always the same for one name."""
    return buckets[crc32(name.encode()) % len(buckets)]


def order_key(order_id: str) -> str:
    """Row key of the submitted order."""
    return f"{order_id}|order"


def state_key(order_id: str) -> str:
    """Row key of the state record, with the steps."""
    return f"{order_id}|state"


def history_key(order_id: str, version: int, note: str = "") -> str:
    """Row key of one transition; the key of a note follows that of the version it was seen at."""
    return f"{order_id}|history|{version:06d}" + (f"|{note}" if note else "")


def order_range(order_id: str) -> tuple[str, str]:
    """Row-key range [from, to) that loads the order and its state, but not the history."""
    return f"{order_id}|order", f"{order_id}|{LAST}"


def history_range(order_id: str, version: int | None = None) -> tuple[str, str]:
    """Row-key range [from, to) of the order's history; up to this version, if it is given."""
    end = "" if version is None else f"{version:06d}|"
    return f"{order_id}|history|", f"{order_id}|history|{end}{LAST}"


def business_key(key: str, order_id: str) -> str:
    """Row key by which the order is found under this name of its business."""
    return f"{KEYED}{key_part(key)}|{order_id}"


def business_keys(beginning: str) -> tuple[str, str]:
    """Row-key range [from, to) of all business keys that begin so."""
    start = f"{KEYED}{key_part(beginning)}"
    return start, f"{start}{LAST}"


def same_business_keys(key: str) -> tuple[str, str]:
    """Row-key range [from, to) of the orders with exactly this business key.

    It may hold rows of longer keys that have a `|` and a text like the beginning of an order id.
    """
    return business_key(key, "b0"), business_key(key, "b:")  # ":" follows "9"


def order_keyed(row_key: str) -> str:
    """Return the id of the order in the row key of a business key."""
    return row_key.rpartition("|")[2]


def key_in(row_key: str) -> str:
    """Return the business key in such a row key, as the business wrote it."""
    part = row_key.removeprefix(KEYED).rpartition("|")[0]
    return re.sub("=([0-9a-f]+)=", lambda found: chr(int(found[1], 16)), part)


def sortable(time: datetime) -> str:
    """Return the time as text that sorts as the time does, e.g. 2026-01-31T08:15:00.000000Z."""
    if time.tzinfo is None:
        raise ValueError("a time without a zone means nothing to another machine")
    return f"{time.astimezone(UTC).isoformat(timespec='microseconds').removesuffix('+00:00')}Z"


def newest_first(time: datetime) -> str:
    """Return the time as fixed-width digits that sort the latest first; none is before 1970."""
    return f"{FAR_FUTURE - max((time - EPOCH) // MICROSECOND, 1):018d}"


def time_of(text: str) -> datetime:
    """Return the time in a text that `sortable` made; raises ValueError for any other text."""
    time = datetime.fromisoformat(text)
    if time.tzinfo != UTC or sortable(time) != text:
        raise ValueError(f"{text!r} is no time of a row key")
    return time
