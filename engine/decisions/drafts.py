"""The draft of an order during a decision, and the next version that results from it."""

# The pattern in an hour, 7 of 23: the next version and its wake-up

from dataclasses import dataclass, replace
from datetime import datetime

from engine.domain import verbs, work_index
from engine.domain.causes import Cause, Code
from engine.domain.deadlines import WhenLate
from engine.domain.derive import changed
from engine.domain.events import (
    CooldownStarted,
    HistoryEvent,
    OptionalStepFailed,
    OrderEnded,
    StepFailed,
)
from engine.domain.messages import BusMessage, OrderReady, later
from engine.domain.orders import OrderAggregate, Pending
from engine.domain.states import CoolingDown, Failed, Running, Skipped
from engine.domain.statuses import Outcome
from engine.domain.steps import Step, StepIn
from engine.domain.submitted_order import OnFailure
from engine.features.external_events.steps import cancel_requests


@dataclass(frozen=True, slots=True)
class NextVersion:
    """The next version of an order. `before` is None for a new order."""

    before: OrderAggregate | None
    after: OrderAggregate
    events: tuple[HistoryEvent, ...]
    messages: tuple[BusMessage, ...] = ()
    """The messages to send after the commit: wake-ups of a scheduler, and requests to agents."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Draft:
    """An order as a decision has changed it so far, with its new events."""

    before: OrderAggregate
    order: OrderAggregate
    now: datetime
    events: tuple[HistoryEvent, ...] = ()

    def but(self, order: OrderAggregate, *events: HistoryEvent) -> "Draft":
        """Return the draft with this order and with further events."""
        return replace(self, order=order, events=(*self.events, *events))

    def commit(self, *messages: BusMessage) -> NextVersion:
        """Return the next version, with these messages and a wake-up if one is due."""
        return next_version(self.before, self.order, self.now, self.events, messages)


def next_version(
    before: OrderAggregate | None,
    order: OrderAggregate,
    now: datetime,
    events: tuple[HistoryEvent, ...],
    messages: tuple[BusMessage, ...] = (),
) -> NextVersion:
    """Return the next version of an order. `before` is None for a new order.

    A pending order that a claim could continue now gets a wake-up. An order that pauses gets its
    wake-up at the end of the pause.
    """
    after = changed(before, order, now)
    until = after.derived.not_before
    is_pending = isinstance(after.state, Pending)
    if is_pending and after.blocked() is None and until is None:
        messages = (*messages, order_ready(before, after))
    elif until and work_index.is_pause(after, after.ready, until):
        messages = (*messages, later(order_ready(before, after), until))
    return NextVersion(before, after, events, messages)


def order_ready(before: OrderAggregate | None, after: OrderAggregate) -> BusMessage:
    """Return the wake-up of the order, which names the steps that have become ready.

    Polling finds the order too, but later (SUB-6, SUP-3).
    """
    known = before.ready if before else ()
    needs = work_index.first_need(after, after.derived.ready_since)
    return OrderReady(
        order_id=after.order_id,
        steps=tuple(step.name for step in after.ready if step not in known),
        needs=None if needs == work_index.NO_AGENT else needs,
        priority=after.priority,
        since=after.derived.ready_since,
    ).to_bus()


# The answer to a step


def after_answer(
    order: OrderAggregate, before: Step, answered: Step, event: HistoryEvent, now: datetime
) -> Draft:
    """Return the draft of an order after an agent's reply or an external event (ANS-6).

    If an undo was requested while the step ran, the step is undone from now on (UND-1). Only an
    order that is not being undone continues without an optional step (SCH-13).
    """
    events: tuple[HistoryEvent, ...] = (event,)
    if order.is_undo and isinstance(before.state, Running):
        answered = verbs.request_undo(answered)
    elif isinstance(answered.state, Skipped):
        events = (event, OptionalStepFailed(step=answered.name))
    return Draft(before=order, order=order.with_steps(answered), now=now, events=events)


# The end of an order


def lateness(order: OrderAggregate) -> Cause:
    """Return the cause of an order that was still open at its deadline (SCH-17)."""
    due_by = order.deadline.due_by.isoformat() if order.deadline else ""
    return Cause(Code.DEADLINE_PASSED, {"due_by": due_by})


def is_to_be_undone(order: OrderAggregate) -> bool:
    """Return whether a failed step or the passed deadline requires the undo (UND-1, SCH-17)."""
    rule = order.deadline.when_late if order.deadline and order.is_late else None
    is_undone_late = rule is WhenLate.UNDO and not order.passed_pivots()
    return asks_for_undo(order) is not None or is_undone_late


def asks_for_undo(order: OrderAggregate) -> StepIn[Failed] | None:
    """Return the failed step that requires the undo of the order, or None (UND-1).

    A failure that an operator has to decide (`operator_decides`) does not require the undo. Once
    the order has passed its pivot, no failure does (UND-6).
    """
    if order.passed_pivots():
        return None
    for step in order.in_state(Failed):
        # An operator decides first about some failures, for example a gateway's error.
        if step.rules.on_failure is OnFailure.UNDO and not step.state.operator_decides:
            return step
    return None


def end_failed(draft: Draft) -> NextVersion:
    """Set an order that is not undone to `Error`: a step failed, or it is late (SCH-8)."""
    for failed in draft.order.in_state(Failed):
        return end(draft, Outcome.FAILED, failed.name, failed.state.cause)
    return end(draft, Outcome.FAILED, None, lateness(draft.order))


def end(draft: Draft, outcome: Outcome, step: str | None, cause: Cause | None) -> NextVersion:
    """Set an order on which no agent works to `Error` (SCH-8).

    `step` is the step that caused the end, or None.
    """
    order, cancelled = cancel_requests(draft.order)
    ended = OrderEnded(outcome=outcome, step=step, cause=cause)
    return draft.but(order.end(outcome, cause), *cancelled, ended).commit()


def failure_of(step: Step, cause: Cause) -> tuple[HistoryEvent, ...]:
    """Return the events of a step that has just failed, with the whole cause."""
    failed = StepFailed(step=step.name, attempt=step.counts.attempts, cause=cause)
    is_optional = isinstance(step.state, Skipped)
    return (failed, OptionalStepFailed(step=step.name)) if is_optional else (failed,)


def consequence_of(step: Step, cause: Cause) -> tuple[HistoryEvent, ...]:
    """Return the events of a step that cools down or has failed."""
    if not isinstance(step.wait, CoolingDown):
        return failure_of(step, cause)
    number, most, until = step.counts.cooldowns, step.rules.max_cooldowns, step.wait.until
    return (CooldownStarted(step=step.name, number=number, most=most, until=until),)
