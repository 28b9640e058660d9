"""Turns a submission message into a new order, or into a refusal with all faults."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import BaseModel, Field

from engine.alerts import events as alerts
from engine.decisions.submit import Wishes, is_same, submit
from engine.decisions.transitions import (
    HistoryEntry,
    Note,
    OperatorEvent,
    Transition,
    transition_of,
)
from engine.declarations.business import Payload
from engine.declarations.workflow import StepDefaults, WorkflowDefinition, Workflows
from engine.domain import exact_json
from engine.domain.causes import Cause, Code
from engine.domain.errors import InputFault, InvalidError, UnknownNameError, as_one
from engine.domain.events import SubmissionRefused
from engine.domain.keys import bucket_of, business_key, sortable
from engine.domain.messages import Moment, Submission, decode_queued, payload_in
from engine.domain.orders import OrderAggregate
from engine.domain.submitted_order import Order


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """The settings of new orders. A workflow may override the defaults of its steps."""

    workflows: Workflows
    default_workflow: str
    payload: Payload
    reply_to_prefix: str
    buckets: frozenset[str]
    defaults: StepDefaults


def read(body: bytes, terms: Terms) -> tuple[Submission, WorkflowDefinition]:
    """Decode and check a message. Raises `InvalidError` with all faults (SUB-4).

    The error is `OtherVersionError` for a message of a newer version of the app. It is
    `UnknownNameError` if a newer version might know the unknown names in it (FLT-12).
    """
    payload, errors = payload_in(body), list[InvalidError]()
    try:
        message = decode_queued(Submission, body)
        workflow = _workflow_of(message, terms)
    except InvalidError as error:
        errors.append(error)
    try:
        terms.payload.accept(payload)
    except InvalidError as error:
        errors.append(error)
    if errors:
        raise as_one(errors)
    return message, workflow


class PlacedAt(BaseModel):
    """The time of the order's placement, which submissions of all versions contain."""

    placed_at: Moment = Field(alias="placedAt")


SHORTEST_PAUSE, LONGEST_PAUSE = timedelta(seconds=5), timedelta(minutes=10)


def pause_of_newer(body: bytes, now: datetime, longest: timedelta) -> timedelta | None:
    """Return how long to postpone a message of a newer version. None if it is too old (FLT-12).

    The pause grows with the age of the message. The age comes from `placedAt`, which stays the same
    however often the message was returned to its queue.
    """
    try:
        age = now - decode_queued(PlacedAt, body).placed_at
    except InvalidError:
        return None
    if not timedelta() <= age < longest:
        return None
    return max(SHORTEST_PAUSE, min(LONGEST_PAUSE, age / 10))


def _workflow_of(message: Submission, terms: Terms) -> WorkflowDefinition:
    """Return the workflow of the order. Raises `InvalidError` for unknown names."""
    name = message.workflow or terms.default_workflow
    unknown, workflow = list[InputFault | str](), terms.workflows.latest(name)
    if bucket_of(message.order_id) not in terms.buckets:
        facts = {"buckets": ", ".join(sorted(terms.buckets))}
        unknown.append(InputFault("orderId", "unknown-bucket", facts))
    if workflow is None:
        unknown.append(InputFault("workflow", "unknown-workflow", {"workflow": name}))
    prefix = terms.reply_to_prefix
    if message.reply_to and not message.reply_to.startswith(prefix):  # SUB-5
        fault = InputFault("replyTo", "queue-not-allowed", {"prefix": prefix})
        raise InvalidError([*unknown, fault])
    if unknown or workflow is None:
        raise UnknownNameError(unknown)
    return workflow


def new_order(
    message: Submission, workflow: WorkflowDefinition, terms: Terms, now: datetime, actor: str
) -> Transition:
    """Return the first version of the order: its rows in one transaction, then a wake-up.

    Implements SUB-2 and SUB-6. An order for a later time waits for a poll (SUB-9).
    """
    steps = workflow.initial_steps(terms.defaults)
    wishes = Wishes(priority=message.priority, reply_to=message.reply_to)
    submitted = submit(_recorded(message, terms), workflow, steps, wishes, now)
    return transition_of(submitted, actor)


def _recorded(message: Submission, terms: Terms) -> Order:
    """Return the recorded order, with the rows by which its business finds it."""
    keys = terms.payload.distinct_keys(message.payload)
    return Order(
        order_id=message.order_id,
        placed_at=message.placed_at,
        payload=message.payload,
        not_before=message.not_before,
        submission_digest=digest_of(message),
        key_rows=tuple(business_key(key, message.order_id) for key in keys),
    )


def digest_of(message: Submission) -> str:
    """Return a digest of the fields that the engine reads, as they were sent, without the payload.

    Equal values have the same digest: spacing, order, time zones, and explicit defaults make no
    difference. A message without a workflow differs from a message that names the default workflow,
    because a newer version may change the default. Rows keep the digest, so its form must never
    change.
    """
    sent = {
        name: _canonical(value)
        for name, field in sorted(Submission.model_fields.items())
        if name != "schema_version" and (value := getattr(message, name)) != field.default
    }
    return hashlib.sha256(exact_json.write(sent).encode()).hexdigest()[:32]


def _canonical(value: object) -> str:
    return value.astimezone(UTC).isoformat() if isinstance(value, datetime) else str(value)


def same_submission(existing: OrderAggregate, new: OrderAggregate, business: Payload) -> bool:
    """Whether a repeated message has the same content as the recorded order (SUB-3)."""
    return is_same(existing.submitted, new.submitted, business)


OTHER_CONTENT = Cause(Code.SUBMISSION_CONFLICT)


def refusal_of(
    existing: OrderAggregate, body: bytes, arrived: datetime, now: datetime, actor: str
) -> Note:
    """Return a note, with an alert, about a message that would overwrite an order (SUB-3)."""
    digest = hashlib.sha256(body).hexdigest()[:16]
    order_id = existing.order_id
    event_id = f"{order_id}:refused:{digest}"
    return Note(
        note_id=f"refused-{digest}",
        order_id=order_id,
        version=existing.version,
        entry=HistoryEntry(at=now, actor=actor, events=(SubmissionRefused(cause=OTHER_CONTENT),)),
        events=(alerts.submission_rejected(order_id, OTHER_CONTENT, event_id, arrived),),
    )


def rejection_of(body: bytes, fault: InvalidError, arrived: datetime) -> OperatorEvent:
    """Return the alert for a message that cannot be used (SUB-4).

    The same message gives the same event with the same time. A message that was returned to its
    queue arrives again, and gives a new event.
    """
    event_id = f"rejected:{hashlib.sha256(body).hexdigest()[:32]}:{sortable(arrived)}"
    why = Cause(Code.SUBMISSION_INVALID, {"faults": _first(fault.as_facts(), MAX_OF_REASON)})
    return alerts.submission_rejected(None, why, event_id, arrived)


MAX_OF_REASON = 1000
"""The most characters of faults in an alert."""


def _first(faults: Sequence[Any], most: int) -> list[Any]:
    """Return the first faults, with at most this many characters in all. A text is shortened."""
    found = []
    for fault in faults:
        most -= len(shown := fault[:most] if isinstance(fault, str) else exact_json.write(fault))
        if most < 0 or not shown:
            break
        found.append(shown if isinstance(fault, str) else fault)
    return found


def invalid(fault: InvalidError) -> Cause:
    """Return the cause for which a message is kept as poison."""
    return Cause(Code.SUBMISSION_INVALID, {"faults": fault.as_facts()})
