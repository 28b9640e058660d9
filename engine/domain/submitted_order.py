"""An order as it was submitted, and the values that workflows and senders use.

The record of its processing is `OrderAggregate` in `engine.domain.orders`. All times are in UTC.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pydantic import AwareDatetime


class Priority(StrEnum):
    """The priority of an order. Orders with high priority are claimed first (SCH-11)."""

    HIGH = "high"
    NORMAL = "normal"


class OnFailure(StrEnum):
    """The rule for an order when one of its steps reaches its failure threshold (SUP-3)."""

    ERROR = "error"
    """The order waits for an operator. Completed steps stay completed."""
    UNDO = "undo"
    """The whole order is undone (UND-1)."""
    COOLDOWN = "cooldown"
    """The step cools down and is retried, up to a limit. Then the order waits for an operator."""
    CONTINUE = "continue"
    """The step is skipped, and the order continues without it."""


MAX_KEPT = 10_000
"""Maximum length of the result that a step keeps, as JSON in UTF-16 units. A row has room for 32 Ki
of them."""

ERASED = "erased"
"""The text in place of erased personal data."""

EXTERNAL_PARTY = "outside"
"""The text that an external step has as its capability, and that its events have as their agent."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """The order as it was submitted. Only an erasure changes it."""

    order_id: str
    """The id of the order."""
    placed_at: AwareDatetime
    """The time at which the order was placed."""
    payload: Mapping[str, Any]
    """A JSON object that only the business understands."""
    not_before: AwareDatetime | None = None
    """The submitted time before which no step of the order starts (SUB-9)."""
    submission_digest: str
    """A hash of the submitted values other than the payload, such as the priority (SUB-3).
    Submission compares a repeated message with this hash and not with the state, because an
    operator may have changed the state."""
    key_rows: tuple[str, ...] = ()
    """The row keys of the order's business keys. They are stored so that an app whose model of the
    payload has changed can still remove the rows."""
    more: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """Columns that a newer version of the app has added. They are written back unchanged
    (FLT-12)."""
