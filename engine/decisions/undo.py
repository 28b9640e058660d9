"""The decision to undo an order because a step failed or the order is late (UND-1, SCH-17).

The decision changes all steps, so the supervisor does not make it. The supervisor leaves the failed
step to a scheduler, whose claim calls this module (SUP-6).
"""

# The pattern in an hour, 21 of 23: the undo

from engine.decisions.drafts import (
    Draft,
    NextVersion,
    asks_for_undo,
    end_failed,
    is_to_be_undone,
    lateness,
)
from engine.domain.causes import Cause, step_failed
from engine.domain.events import UndoRequested
from engine.domain.states import AtWork
from engine.features.external_events.steps import cancel_requests


def after_failure(draft: Draft) -> NextVersion:
    """Start no more steps (SCH-12).

    Agents reply, or their attempts expire. Then the order ends or is undone.
    """
    return draft.commit() if draft.order.has_any(AtWork) else end_or_undo(draft)


def end_or_undo(draft: Draft) -> NextVersion:
    """End an order on which no agent works, or undo it if its rules require that."""
    if step := asks_for_undo(draft.order):
        requested = UndoRequested(step=step.name, cause=step.state.cause)
        return _undo(draft, requested, step_failed(step.name, step.state.cause))
    if is_to_be_undone(draft.order):
        cause = lateness(draft.order)
        return _undo(draft, UndoRequested(cause=cause), cause)
    return end_failed(draft)


def _undo(draft: Draft, requested: UndoRequested, cause: Cause) -> NextVersion:
    order, cancelled = cancel_requests(draft.order)
    return draft.but(order.request_undo(cause), *cancelled, requested).commit()
