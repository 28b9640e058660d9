"""The time, and unique ids."""

import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from ulid import ULID

from engine.domain.keys import CROCKFORD, buckets, with_check

utc_now = partial(datetime.now, UTC)
"""Returns the current time in UTC, with its zone."""

new_id = partial(secrets.token_hex, 13)
"""Returns 26 characters that nobody can guess."""

new_callback_token = partial(secrets.token_urlsafe, 16)
"""Returns 128 random bits as 22 characters that a URL may contain."""


def order_ids(bucket_count: int) -> Callable[[], str]:
    """Return a function that makes order ids, `b<NN>-<ULID>`, for random buckets.

    The last characters of an id are check characters for the others.
    """
    names = buckets(bucket_count)

    def new_order_id() -> str:
        # Of one millisecond, ULIDs differ in their last characters alone, which the check replaces.
        time, rest = str(ULID())[:10], "".join(secrets.choice(CROCKFORD) for _ in range(16))
        return with_check(f"{secrets.choice(names)}-{time}{rest}")

    return new_order_id


def order_time(order_id: str) -> datetime:
    """Return the time when an order id was made, to the millisecond."""
    return ULID.from_str(order_id.partition("-")[2]).datetime
