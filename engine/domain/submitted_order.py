"""An order as it was submitted, and the values in which a workflow and a sender speak of it.

What becomes of it is the record `OrderAggregate` of `engine.domain.orders`. All times are in UTC.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pydantic import AwareDatetime


class Priority(StrEnum):
    """The priority of an order: high ones are claimed first (SCH-11)."""

    HIGH = "high"
    NORMAL = "normal"


class OnFailure(StrEnum):
    """The rule for an order when one of its steps has reached its failure threshold (SUP-3)."""

    ERROR = "error"
    """The order waits for an operator; completed steps stay completed."""
    UNDO = "undo"
    """The whole order is undone (UND-1)."""
    COOLDOWN = "cooldown"
    """The step cools down and is retried, up to a limit; then the order waits for an operator."""
    CONTINUE = "continue"
    """The step is skipped, and the order continues without it."""


MAX_KEPT = 10_000
"""Maximum UTF-16 units, as JSON, of the result that a step keeps; a row takes 32 Ki of them."""

ERASED = "erased"
"""The text in place of erased personal data."""

EXTERNAL_PARTY = "outside"
"""The name that an external step has in place of a capability, and its events of an agent."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """The order as it was submitted; except for an erasure it never changes."""

    order_id: str
    """The id of the order."""
    placed_at: AwareDatetime
    """When the order was placed."""
    payload: Mapping[str, Any]
    """A JSON object that only the business understands."""
    not_before: AwareDatetime | None = None
    """The time before which none of its steps begins, as it was submitted (SUB-9)."""
    submission_digest: str
    """The digest of what was submitted besides the payload, such as the priority (SUB-3).

    A repeated message is compared with it, since an operator may have changed the state.
    """
    key_rows: tuple[str, ...] = ()
    """The row keys of its business keys as they were written.

    So an app that knows another model of the payload removes the rows too.
    """
    more: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """Columns that a newer version of the app has added, written back unchanged (FLT-12)."""
