"""The time, and ids that no other call returns."""

import secrets
from collections.abc import Callable
from datetime import UTC, datetime

from ulid import ULID

from core.keys import buckets


def utc_now() -> datetime:
    """Return the current time, aware and in UTC."""
    return datetime.now(UTC)


def new_ulid() -> str:
    """Return a ULID: 26 characters that sort by time and cannot be guessed."""
    return str(ULID())


def order_ids(bucket_count: int) -> Callable[[], str]:
    """Return what makes order ids, `b<NN>-<ULID>`, spread over this many buckets."""
    names = buckets(bucket_count)
    return lambda: f"{secrets.choice(names)}-{ULID()}"


def order_time(order_id: str) -> datetime:
    """Return when an order id was made, to the millisecond."""
    return ULID.from_str(order_id.partition("-")[2]).datetime
