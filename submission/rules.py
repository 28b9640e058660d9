"""What a submission message becomes: a new order, or a refusal that names every fault."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pydantic import BaseModel, Field

from core import alerts
from core.business import MAX_PAYLOAD, Payload
from core.changes import Change, Event, HistoryEntry, Note, wake_up
from core.errors import InvalidError, NewerMessageError, UnknownNameError
from core.happenings import SubmissionRefused, Submitted
from core.keys import bucket_of, sortable
from core.messages import Moment, Submission, decode, json_text, payload_in, utf16_units
from core.orders import Order, OrderState, Snapshot
from core.workflow import Workflow, Workflows


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """What holds for every new order unless its workflow says otherwise."""

    workflows: Workflows
    default_workflow: str
    payload: Payload
    reply_to_prefix: str
    buckets: frozenset[str]
    timeout: timedelta
    threshold: int
    cooldown: timedelta


def read(body: bytes, terms: Terms) -> tuple[Submission, Workflow]:
    """Decode and check one message; raises `InvalidError` with all faults (SUB-4).

    That is `UnknownNameError` if a newer version of the app might know better (FLT-12), `NewerMessageError` if it does.
    """
    payload, errors = payload_in(body), list[InvalidError]()
    try:
        message = decode(Submission, body)
        workflow = _workflow_of(message, terms)
    except InvalidError as error:
        errors.append(error)
    try:
        terms.payload.check(payload)
        _check_form(payload, terms)
    except InvalidError as error:
        errors.append(error)
    if errors:
        raise _as_one(errors)
    return message, workflow


def _as_one(errors: Sequence[InvalidError]) -> InvalidError:
    """Return one error that names all faults; of a newer message this version cannot tell what is wrong."""
    faults = [fault for error in errors for fault in error.faults]
    if any(isinstance(error, NewerMessageError) for error in errors):
        return NewerMessageError(faults)
    unknown = all(isinstance(error, UnknownNameError) for error in errors)
    return UnknownNameError(faults) if unknown else InvalidError(faults)


class Placed(BaseModel):
    """What a submission of any version says: when the order was placed."""

    placed_at: Moment = Field(alias="placedAt")


SHORTEST_PAUSE, LONGEST_PAUSE = timedelta(seconds=5), timedelta(minutes=10)


def pause_of_newer(body: bytes, now: datetime, longest: timedelta) -> timedelta | None:
    """Return how long a message of a newer version is put off; None if its order was placed too long ago (FLT-12).

    `placedAt` tells the message's age however often it was put on its queue again; the pause grows with it.
    """
    try:
        age = now - decode(Placed, body).placed_at
    except InvalidError:
        return None
    return (
        max(SHORTEST_PAUSE, min(LONGEST_PAUSE, age / 10)) if timedelta() <= age < longest else None
    )


def _workflow_of(message: Submission, terms: Terms) -> Workflow:
    """Return the workflow that the order is to follow; raises `InvalidError` for names of which we know nothing."""
    name = message.workflow or terms.default_workflow
    unknown, workflow = [], terms.workflows.latest(name)
    if bucket_of(message.order_id) not in terms.buckets:
        unknown.append(f"orderId: the bucket is none of {', '.join(sorted(terms.buckets))}")
    if workflow is None:
        unknown.append(f"workflow: there is no workflow {name}")
    if message.reply_to and not message.reply_to.startswith(terms.reply_to_prefix):
        fault = f"replyTo: only queues whose names begin with {terms.reply_to_prefix} are accepted"  # SUB-5
        raise InvalidError([*unknown, fault])
    if unknown or workflow is None:
        raise UnknownNameError(unknown)
    return workflow


def _check_form(payload: Mapping[str, Any], terms: Terms) -> None:
    """Raise `InvalidError` for what a row cannot hold, now or once it is erased."""
    try:
        texts = [
            json_text(each, allow_nan=False) for each in (payload, terms.payload.erased(payload))
        ]
    except ValueError as fault:
        raise InvalidError([f"body: {fault}"]) from None
    length = max(map(utf16_units, texts))
    if length > MAX_PAYLOAD:
        raise InvalidError(
            [f"body: the order's content has {length} characters; it can have {MAX_PAYLOAD}"]
        )


def new_order(
    message: Submission, workflow: Workflow, terms: Terms, now: datetime, actor: str
) -> Change:
    """Return the order's first version: all its rows in one transaction, then a wake-up (SUB-2, SUB-6)."""
    snapshot = Snapshot(
        order=Order(
            order_id=message.order_id, placed_at=message.placed_at, payload=message.payload
        ),
        state=OrderState(
            order_id=message.order_id,
            workflow=workflow.name,
            workflow_version=workflow.version,
            priority=message.priority,
            waits_since=now,
            updated_at=now,
            reply_to=message.reply_to,
        ),
        steps=workflow.initial_steps(
            timeout=terms.timeout, threshold=terms.threshold, cooldown=terms.cooldown
        ),
    )
    return Change(
        before=None,
        after=snapshot,
        entry=HistoryEntry(at=now, actor=actor, happened=(Submitted(workflow=workflow.name),)),
        messages=(wake_up(snapshot),),
    )


def same_submission(existing: Snapshot, new: Snapshot, business: Payload) -> bool:
    """Whether a message that came again says what the recorded order says, as far as that is not erased (SUB-3)."""
    was, sent = existing.order.payload, new.order.payload
    same_payload = was == (business.erased(sent) if was == business.erased(was) else sent)

    def rest(snapshot: Snapshot) -> tuple[object, ...]:
        state = snapshot.state
        return snapshot.order.placed_at, state.workflow, state.priority, state.reply_to

    return same_payload and rest(existing) == rest(new)


OTHER_CONTENT = "an order with this id is recorded already, with other content"


def refusal_of(
    existing: Snapshot, body: bytes, arrived: datetime, now: datetime, actor: str
) -> Note:
    """Return the record of a message that would have overwritten an order (SUB-3), with one alert for the message."""
    digest = hashlib.sha256(body).hexdigest()[:16]
    state = existing.state
    event_id = f"{state.order_id}:refused:{digest}"
    return Note(
        note_id=f"refused-{digest}",
        order_id=state.order_id,
        version=state.version,
        entry=HistoryEntry(at=now, actor=actor, happened=(SubmissionRefused(why=OTHER_CONTENT),)),
        events=(alerts.submission_rejected(state.order_id, OTHER_CONTENT, event_id, arrived),),
    )


def rejection_of(body: bytes, fault: InvalidError, arrived: datetime) -> Event:
    """Return the alert for a message that cannot be used (SUB-4).

    The same message gives the same event, down to its time; one that was put back arrives anew, and is told of anew.
    """
    event_id = f"rejected:{hashlib.sha256(body).hexdigest()[:32]}:{sortable(arrived)}"
    return alerts.submission_rejected(None, str(fault)[:1000], event_id, arrived)
