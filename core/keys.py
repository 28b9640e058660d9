"""Row and partition keys of table `orders` (design: one partition per bucket, sorted by what is asked for)."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from zlib import crc32

ORDER_ID = re.compile(r"b\d{2}-[0-9A-HJKMNP-TV-Z]{26}")
"""`b<NN>-<ULID>`: the bucket, and a part that sorts by time and cannot be guessed."""

SORTABLE = "%Y-%m-%dT%H:%M:%S.%fZ"

LAST = "~"
"""Sorts after every character that our keys use."""

ABOUT_ORDER = "orders/"
"""How the subject of an event about an order begins; its id follows."""


def bucket_of(order_id: str) -> str:
    """Return the partition that holds the order: an order keeps its bucket for life."""
    return order_id.partition("-")[0]


def order_in(key: str) -> str:
    """Return the order that a row of the agenda is about, by its key; empty if that names none."""
    found = ORDER_ID.search(key)
    return found[0] if found else ""


def key_part(text: str) -> str:
    """Return the text with what a row key cannot hold, or what would upset its order, escaped as `=<hex>=`."""
    return re.sub(r"[^A-Za-z0-9_.:|-]", lambda found: f"={ord(found[0]):x}=", text)


def buckets(count: int) -> list[str]:
    """Return the partitions over which `count` buckets spread new orders."""
    return [f"b{number:02d}" for number in range(count)]


def spread_over(buckets: Sequence[str], name: str) -> str:
    """Return the bucket for what belongs to no order: always the same for one name, another one for others."""
    return buckets[crc32(name.encode()) % len(buckets)]


def order_key(order_id: str) -> str:
    """Row of what was submitted."""
    return f"{order_id}|order"


def state_key(order_id: str) -> str:
    """Row of the state record, with the steps."""
    return f"{order_id}|state"


def history_key(order_id: str, version: int, note: str = "") -> str:
    """Row of one transition; a note about something that changed no state follows the version it was seen at."""
    return f"{order_id}|history|{version:06d}" + (f"|{note}" if note else "")


def order_range(order_id: str) -> tuple[str, str]:
    """Row-key range [from, to) that loads the order and its state, but not the history."""
    return f"{order_id}|order", f"{order_id}|{LAST}"


def history_range(order_id: str) -> tuple[str, str]:
    """Row-key range [from, to) of the order's history."""
    return f"{order_id}|history|", f"{order_id}|history|{LAST}"


def sortable(time: datetime) -> str:
    """Return the time as fixed-width text that sorts as the time does, e.g. 2026-01-31T08:15:00.000000Z."""
    if time.tzinfo is None:
        raise ValueError("a time without a zone means nothing to another machine")
    return time.astimezone(UTC).strftime(SORTABLE)


def time_of(text: str) -> datetime:
    """Return the time that `sortable` made the text of; raises ValueError for any other text."""
    return datetime.strptime(text, SORTABLE).replace(tzinfo=UTC)
