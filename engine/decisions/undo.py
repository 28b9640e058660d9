"""The decision to undo an order because of a failed step (UND-1).

It rewrites all steps, so the supervisor does not make it: it leaves the failed step to a scheduler,
whose claim comes here (SUP-6).
"""

from engine.decisions.drafts import Draft, NextVersion, asks_for_undo, end_failed
from engine.domain.causes import step_failed
from engine.domain.events import UndoRequested
from engine.domain.states import AtWork, Failed
from engine.domain.steps import StepIn
from engine.features.external_events.steps import cancel_requests


def after_failure(draft: Draft) -> NextVersion:
    """Start no more steps (SCH-12): agents answer or expire, then the order ends or is undone."""
    return draft.commit() if draft.order.has_any(AtWork) else end_or_undo(draft)


def end_or_undo(draft: Draft) -> NextVersion:
    """End an order on which no agent works, or undo it if a failed step asks for that."""
    step = asks_for_undo(draft.order)
    return _undo(draft, step) if step else end_failed(draft)


def _undo(draft: Draft, step: StepIn[Failed]) -> NextVersion:
    order, cancelled = cancel_requests(draft.order)
    after = order.request_undo(step_failed(step.name, step.state.cause))
    requested = UndoRequested(step=step.name, cause=step.state.cause)
    return draft.but(after, *cancelled, requested).commit()
