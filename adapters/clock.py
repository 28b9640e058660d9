"""The time, and ids that no other call returns."""

import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from ulid import ULID

from core.keys import LAST, buckets

utc_now = partial(datetime.now, UTC)
"""Returns the current time, aware and in UTC."""

new_id = partial(secrets.token_hex, 13)
"""Returns 26 characters that cannot be guessed."""


def order_ids(bucket_count: int) -> Callable[[], str]:
    """Return what makes order ids, `b<NN>-<ULID>`, spread over this many buckets."""
    names = buckets(bucket_count)
    return lambda: f"{secrets.choice(names)}-{ULID()}"


def oldest_order_id(bucket: str, time: datetime | None) -> str:
    """Return what sorts before the id of every order of the bucket that was made at this time or later; None: after."""
    return f"{bucket}-{str(ULID.from_datetime(time))[:10] if time else LAST}"


def order_time(order_id: str) -> datetime:
    """Return when an order id was made, to the millisecond."""
    return ULID.from_str(order_id.partition("-")[2]).datetime
