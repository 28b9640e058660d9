"""The order as it was committed, carried along by the message that the commit sent: it saves the receiver a read.

It proves nothing. A change that is decided on it is written under its ETags, so a stale one only costs a conflict; and
nothing but such a change may follow from it (`Transitions.apply`). Who the customer is stays behind: no decision asks,
and messages may lie in a dead-letter queue for long.
"""

import re
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from core.orders import Snapshot

MOST_CHARACTERS = 16_000
"""A larger order is read by whoever needs it: a message of a few KiB is cheap to pass on, one of many is not."""

ETAG = re.compile(r"[^*\s]{1,200}")
"""Of one version of a row; `*` would match any."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Carried:
    schema: Literal[1] = 1
    snapshot: Snapshot


_CARRIED = TypeAdapter(_Carried)


def pack(snapshot: Snapshot) -> str | None:
    """Return the order as text, or None if that would be too long."""
    anonymous = replace(snapshot, order=snapshot.order.without_customer())
    text = _CARRIED.dump_json(_Carried(snapshot=anonymous)).decode()
    return text if len(text) <= MOST_CHARACTERS else None


def unpack(text: str | None) -> Snapshot | None:
    """Return the order that a message carried; None if it carries none that this version understands."""
    if not text:
        return None
    try:
        snapshot = _CARRIED.validate_json(text).snapshot
    except ValidationError:
        return None
    return snapshot if all(ETAG.fullmatch(etag) for etag in snapshot.etags.values()) else None
