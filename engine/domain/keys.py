"""Row and partition keys of the table `orders`, and the version of its rows.

The keys sort in the order in which the queries need them.
"""

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
"""The version of the rows that this app writes, and the newest version that it reads."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FAR_FUTURE = 10**18
MICROSECOND = timedelta(microseconds=1)

LAST = "~"
"""A character that sorts after all other characters of the keys."""

KEYED = "="
"""The prefix of the rows of business keys. The rows of orders and work items begin with other
characters."""

ABOUT_ORDER = "orders/"
"""The prefix of the subject of an event about an order. The order id follows."""


def made_at(order_id: str) -> datetime | None:
    """Return the time at which the id was made.

    Returns None if the text is no order id, or has no valid time.
    """
    if not ORDER_ID.fullmatch(order_id):
        return None
    with suppress(ValueError):
        return ULID.from_str(order_id.partition("-")[2]).datetime
    return None


CHECK_LENGTH = 4
"""The number of check characters at the end of an id. A random ending is right once in a
million."""
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def with_check(order_id: str) -> str:
    """Return the id with check characters in place of its last characters.

    The check characters show that this app made the id, even before its order is recorded.
    """
    start = order_id[:-CHECK_LENGTH]
    number = int.from_bytes(sha256(start.encode()).digest())
    return start + "".join(CROCKFORD[number >> 5 * place & 31] for place in range(CHECK_LENGTH))


def is_checked(order_id: str) -> bool:
    """Return whether the id has a valid form, time and check characters."""
    return made_at(order_id) is not None and order_id == with_check(order_id)


def bucket_of(order_id: str) -> str:
    """Return the partition of the order, which never changes."""
    return order_id.partition("-")[0]


def order_in(key: str) -> str:
    """Return the order id in a key of the work index, or an empty text if there is none."""
    found = ORDER_ID.search(key)
    return found[0] if found else ""


def key_part(text: str) -> str:
    """Return the text with characters that are not allowed in a row key escaped as `=<hex>=`."""
    return re.sub(r"[^A-Za-z0-9_.:|-]", lambda found: f"={ord(found[0]):x}=", text)


def buckets(count: int) -> list[str]:
    """Return the partitions over which `count` buckets spread new orders."""
    return [f"b{number:02d}" for number in range(count)]


def spread_over(buckets: Sequence[str], name: str) -> str:
    """Return the bucket for a row that belongs to no order. It is always the same for one name."""
    return buckets[crc32(name.encode()) % len(buckets)]


def order_key(order_id: str) -> str:
    return f"{order_id}|order"


def state_key(order_id: str) -> str:
    """Return the row key of the state record, which includes the steps."""
    return f"{order_id}|state"


def history_key(order_id: str, version: int, note: str = "") -> str:
    """Return the row key of one transition.

    The key of a note sorts after the key of the version at which the note was made.
    """
    return f"{order_id}|history|{version:06d}" + (f"|{note}" if note else "")


def order_range(order_id: str) -> tuple[str, str]:
    """Return the row-key range [from, to) of the order and its state, without the history."""
    return f"{order_id}|order", f"{order_id}|{LAST}"


def history_range(order_id: str, version: int | None = None) -> tuple[str, str]:
    """Return the row-key range [from, to) of the order's history, up to `version` if given."""
    end = "" if version is None else f"{version:06d}|"
    return f"{order_id}|history|", f"{order_id}|history|{end}{LAST}"


def business_key(key: str, order_id: str) -> str:
    """Return the row key by which the order is found under this business key."""
    return f"{KEYED}{key_part(key)}|{order_id}"


def business_keys(beginning: str) -> tuple[str, str]:
    """Return the row-key range [from, to) of all business keys with this beginning."""
    start = f"{KEYED}{key_part(beginning)}"
    return start, f"{start}{LAST}"


def same_business_keys(key: str) -> tuple[str, str]:
    """Return the row-key range [from, to) of the orders with exactly this business key.

    The range may also contain longer keys that continue with a `|` and a text like the beginning of
    an order id.
    """
    return business_key(key, "b0"), business_key(key, "b:")  # ":" follows "9"


def order_keyed(row_key: str) -> str:
    """Return the order id in the row key of a business key."""
    return row_key.rpartition("|")[2]


def key_in(row_key: str) -> str:
    """Return the business key in the row key, as the business wrote it."""
    part = row_key.removeprefix(KEYED).rpartition("|")[0]
    return re.sub("=([0-9a-f]+)=", lambda found: chr(int(found[1], 16)), part)


def sortable(time: datetime) -> str:
    """Return the time as text that sorts by time, for example 2026-01-31T08:15:00.000000Z.

    Raises `ValueError` for a time without a zone.
    """
    if time.tzinfo is None:
        raise ValueError("a time without a zone means nothing to another machine")
    return f"{time.astimezone(UTC).isoformat(timespec='microseconds').removesuffix('+00:00')}Z"


def newest_first(time: datetime) -> str:
    """Return the time as digits of a fixed width that sort the latest first.

    A time before 1970 counts as 1970.
    """
    return f"{FAR_FUTURE - max((time - EPOCH) // MICROSECOND, 1):018d}"


def time_of(text: str) -> datetime:
    """Return the time in a text of `sortable`.

    Raises `ValueError` for any other text.
    """
    time = datetime.fromisoformat(text)
    if time.tzinfo != UTC or sortable(time) != text:
        raise ValueError(f"{text!r} is no time of a row key")
    return time
