"""The order as it was committed, carried along by the message that the commit sent: it saves the receiver a read.

It proves nothing. A change that is decided on it is written under its ETags, so a stale one only costs a conflict; and
nothing but such a change may follow from it (`Transitions.apply`).
"""

from dataclasses import dataclass
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from core.orders import Snapshot

MOST_CHARACTERS = 16_000
"""A larger order is read by whoever needs it: Service Bus takes 64 KiB of properties, 32 KiB each."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Carried:
    schema: Literal[1] = 1
    snapshot: Snapshot


_CARRIED = TypeAdapter(_Carried)


def pack(snapshot: Snapshot) -> str | None:
    """Return the order as text, or None if that would be too long."""
    text = _CARRIED.dump_json(_Carried(snapshot=snapshot)).decode()
    return text if len(text) <= MOST_CHARACTERS else None


def unpack(text: str | None) -> Snapshot | None:
    """Return the order that a message carried; None if it carries none that this version understands."""
    if not text:
        return None
    try:
        return _CARRIED.validate_json(text).snapshot
    except ValidationError:
        return None
