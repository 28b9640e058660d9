"""The decisions about a submission: record a new order, or compare it with the recorded one (SUB).

The message has been read: the order, as it is recorded, comes with its digest and its keys.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from core.business import Payload
from core.orders import OUTSIDE, OnFailure, Priority
from core.orders import Order as SubmittedOrder
from core.workflow import StepDefinition, Workflow
from engine.decisions.transitions import Transition, transition
from engine.domain.causes import Cause, Code
from engine.domain.events import SubmissionRefused, Submitted
from engine.domain.orders import Derived, Order
from engine.domain.states import ConditionPending, Waiting
from engine.domain.steps import Rules, Step, StepIn, StepKind


@dataclass(frozen=True, kw_only=True, slots=True)
class StepDefaults:
    """The settings of steps of which the workflow says nothing else."""

    timeout: timedelta
    threshold: int
    cooldown: timedelta


@dataclass(frozen=True, kw_only=True, slots=True)
class Wishes:
    """What the sender wishes for its order, beside what is ordered."""

    priority: Priority = Priority.NORMAL
    reply_to: str | None = None
    """The queue that gets status notifications; None for none (SUB-5)."""


@dataclass(frozen=True, slots=True)
class RefusedSubmission:
    """A message that changes nothing; the history of the recorded order keeps it once (SUB-3)."""

    note_id: str
    event: SubmissionRefused


def submit(
    submitted: SubmittedOrder,
    workflow: Workflow,
    wishes: Wishes,
    defaults: StepDefaults,
    now: datetime,
) -> Transition:
    """Record the order with all its steps in one write, then wake a scheduler (SUB-2, SUB-6).

    An order for a later time waits for a poll (SUB-9).
    """
    order = Order(
        submitted=submitted,
        workflow=workflow.name,
        workflow_version=workflow.version,
        priority=wishes.priority,
        reply_to=wishes.reply_to,
        steps=tuple(_steps(workflow, defaults)),
        updated_at=now,
        derived=Derived(ready_since=now),
    )
    at = submitted.not_before
    event = Submitted(workflow=workflow.name, not_before=at if at and at > now else None)
    return transition(None, order, now, (event,))


def submit_again(
    existing: Order, submitted: SubmittedOrder, payload: Payload, body: bytes
) -> RefusedSubmission | None:
    """Refuse a message that would overwrite the order; None if it has the same content (SUB-3)."""
    if is_same(existing.submitted, submitted, payload):
        return None
    digest = hashlib.sha256(body).hexdigest()[:16]
    refused = SubmissionRefused(cause=Cause(Code.SUBMISSION_CONFLICT))
    return RefusedSubmission(f"refused-{digest}", refused)


def is_same(recorded: SubmittedOrder, sent: SubmittedOrder, payload: Payload) -> bool:
    """Whether the message has the content that was submitted for the recorded order.

    The payload never changes, except for an erasure: then the message is compared after the same
    erasure, so no digest of personal data is kept.
    """
    is_erased = recorded.payload == payload.erased(recorded.payload)
    content = payload.erased(sent.payload) if is_erased else sent.payload
    # An operator may have changed the priority since, but not the digest.
    return recorded.payload == content and recorded.submission_digest == sent.submission_digest


def _steps(workflow: Workflow, defaults: StepDefaults) -> Iterator[Step]:
    for definition in workflow.steps:
        state = ConditionPending() if definition.judges else Waiting()
        yield StepIn(name=definition.name, rules=rules_of(definition, defaults), state=state)


def rules_of(definition: StepDefinition, defaults: StepDefaults) -> Rules:
    """Return the rules of a step: the copy of its definition that the order keeps."""
    cools_down = definition.on_failure is OnFailure.COOLDOWN
    return Rules(
        kind=StepKind.EXTERNAL if definition.capability == OUTSIDE else StepKind.AGENT,
        capability=definition.capability,
        title=definition.title,
        timeout=definition.timeout or defaults.timeout,
        threshold=definition.threshold or defaults.threshold,
        on_failure=definition.on_failure,
        after=definition.after,
        uses=tuple(step for step in definition.uses if step not in definition.may_lack),
        undoable=definition.compensation is not None,
        pivot=definition.pivot,
        cooldown=(definition.cooldown or defaults.cooldown) if cools_down else timedelta(),
        max_cooldowns=definition.max_cooldowns if cools_down else 0,
        late_effect_window=definition.late_effect_window,
        personal=definition.personal,
        fingerprint=definition.fingerprint,
    )
