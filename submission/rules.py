"""What a submission message becomes: a new order, or a refusal that names every fault."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from core import alerts
from core.changes import Change, Event, HistoryEntry, Note
from core.errors import InvalidError, UnknownNameError
from core.keys import bucket_of, sortable
from core.messages import Submission, WakeUp, decode
from core.orders import Item, Order, OrderState, Snapshot
from core.workflow import Workflow, Workflows


@dataclass(frozen=True, kw_only=True, slots=True)
class Terms:
    """What holds for every new order unless its workflow says otherwise."""

    workflows: Workflows
    skus: frozenset[str]
    reply_to_prefix: str
    buckets: frozenset[str]
    allowance: timedelta
    threshold: int
    rest: timedelta


def read(body: bytes, terms: Terms) -> tuple[Submission, Workflow]:
    """Decode and check one message; raises `InvalidError` with all faults (SUB-4).

    That is `UnknownNameError` if a newer version of the app might know better (FLT-12).
    """
    message = decode(Submission, body)
    workflow = terms.workflows.latest(message.workflow)
    unknown = list(_unknown_names(message, terms))
    if message.reply_to and not message.reply_to.startswith(terms.reply_to_prefix):
        fault = f"replyTo: only queues whose names begin with {terms.reply_to_prefix} are accepted"  # SUB-5
        raise InvalidError([*unknown, fault])
    if unknown or workflow is None:
        raise UnknownNameError(unknown)
    return message, workflow


def _unknown_names(message: Submission, terms: Terms) -> Iterator[str]:
    """Say what the message names that this version does not know."""
    for place, line in enumerate(message.items):
        if line.sku not in terms.skus:
            yield f"items.{place}.sku: there is no product {line.sku}"
    if bucket_of(message.order_id) not in terms.buckets:
        yield f"orderId: the bucket is none of {', '.join(sorted(terms.buckets))}"
    if terms.workflows.latest(message.workflow) is None:
        yield f"workflow: there is no workflow {message.workflow}"


def new_order(message: Submission, workflow: Workflow, terms: Terms, now: datetime, actor: str) -> Change:
    """Return the order's first version: all its rows in one transaction, then a wake-up (SUB-2, SUB-6)."""
    snapshot = Snapshot(
        order=Order(
            order_id=message.order_id,
            placed_at=message.placed_at,
            customer_name=message.customer.name,
            customer_email=message.customer.email,
            items=tuple(
                Item(sku=line.sku, quantity=line.quantity, unit_price=line.unit_price) for line in message.items
            ),
        ),
        state=OrderState(
            order_id=message.order_id,
            workflow=workflow.name,
            workflow_version=workflow.version,
            priority=message.priority,
            not_before=now,
            updated_at=now,
            reply_to=message.reply_to,
        ),
        steps=workflow.initial_steps(allowance=terms.allowance, threshold=terms.threshold, rest=terms.rest),
    )
    return Change(
        before=None,
        after=snapshot,
        entry=HistoryEntry(at=now, actor=actor, event="submitted", detail=f"workflow {workflow.name}"),
        messages=(WakeUp(order_id=message.order_id).to_bus(),),
    )


def same_submission(existing: Snapshot, new: Snapshot) -> bool:
    """Whether a message that came again says what the recorded order says, as far as that is not erased (SUB-3)."""
    erased = existing.order == existing.order.without_customer()

    def content(snapshot: Snapshot) -> tuple[object, ...]:
        order, state = snapshot.order, snapshot.state
        return order.without_customer() if erased else order, state.workflow, state.priority, state.reply_to

    return content(existing) == content(new)


OTHER_CONTENT = "an order with this id is recorded already, with other content"


def refusal_of(existing: Snapshot, body: bytes, arrived: datetime, now: datetime, actor: str) -> Note:
    """Return the record of a message that would have overwritten an order (SUB-3), with one alert for the message."""
    digest = hashlib.sha256(body).hexdigest()[:16]
    state = existing.state
    event_id = f"{state.order_id}:refused:{digest}"
    return Note(
        note_id=f"refused-{digest}",
        order_id=state.order_id,
        version=state.version,
        entry=HistoryEntry(at=now, actor=actor, event="submission-refused", detail=OTHER_CONTENT),
        events=(alerts.submission_rejected(state.order_id, OTHER_CONTENT, event_id, arrived),),
    )


def rejection_of(body: bytes, fault: InvalidError, arrived: datetime) -> Event:
    """Return the alert for a message that cannot be used (SUB-4).

    The same message gives the same event, down to its time; one that was put back arrives anew, and is told of anew.
    """
    event_id = f"rejected:{hashlib.sha256(body).hexdigest()[:32]}:{sortable(arrived)}"
    return alerts.submission_rejected(None, str(fault)[:1000], event_id, arrived)
