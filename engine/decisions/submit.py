"""The decisions about a submission: record a new order, or compare it with the recorded one (SUB).

The message was decoded before. The order comes as it is recorded, with its digest and its keys.
"""

# The pattern in an hour, 6 of 23: the first version of an order

from dataclasses import dataclass
from datetime import datetime

from engine.decisions.drafts import NextVersion, next_version
from engine.declarations.business import Payload
from engine.declarations.workflow import WorkflowDefinition
from engine.domain.events import Submitted
from engine.domain.orders import Derived, OrderAggregate
from engine.domain.steps import Step
from engine.domain.submitted_order import Order, Priority


@dataclass(frozen=True, kw_only=True, slots=True)
class Wishes:
    """The sender's options for an order, beside its payload."""

    priority: Priority = Priority.NORMAL
    reply_to: str | None = None
    """The queue that gets status notifications, or None for no notifications (SUB-5)."""


def submit(
    submitted: Order,
    workflow: WorkflowDefinition,
    steps: tuple[Step, ...],
    wishes: Wishes,
    now: datetime,
) -> NextVersion:
    """Record the order with all its steps in one write, then wake a scheduler (SUB-2, SUB-6).

    An order with a later start waits for a poll (SUB-9).
    """
    order = OrderAggregate(
        submitted=submitted,
        workflow=workflow.name,
        workflow_version=workflow.version,
        priority=wishes.priority,
        reply_to=wishes.reply_to,
        deadline=workflow.deadline(submitted),
        steps=steps,
        updated_at=now,
        derived=Derived(ready_since=now),
    )
    at = submitted.not_before
    event = Submitted(workflow=workflow.name, not_before=at if at and at > now else None)
    return next_version(None, order, now, (event,))


def is_same(recorded: Order, sent: Order, payload: Payload) -> bool:
    """Return whether the message has the content that was submitted for the recorded order."""
    # Only an erasure changes the payload. Then the message is compared after the same erasure, so
    # no digest of personal data is kept.
    is_erased = recorded.payload == payload.erased(recorded.payload)
    content = payload.erased(sent.payload) if is_erased else sent.payload
    # An operator may have changed the priority since, but not the digest.
    is_same_content = payload.text(recorded.payload) == payload.text(content)
    return is_same_content and recorded.submission_digest == sent.submission_digest
