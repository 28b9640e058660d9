"""The events of the history as today's rows have them."""

from collections.abc import Callable, Mapping
from typing import Any

from core import happenings as today
from engine.domain import events
from engine.domain.events import Action, HistoryEvent

SAME: Mapping[type[HistoryEvent], type[Any]] = {
    events.StepCompleted: today.StepCompleted,
    events.StepUndone: today.StepUndone,
    events.RequestCancelled: today.Withdrawn,
    events.ExternalEventRecorded: today.Answered,
    events.OptionalStepFailed: today.PassedOver,
    events.CooldownStarted: today.CoolsDown,
    events.AttemptExpired: today.Expired,
    events.AttemptDeferred: today.Accepted,
    events.Submitted: today.Submitted,
    events.Restored: today.Restored,
    events.Claimed: today.Claimed,
    events.Recovered: today.Recovered,
    events.OrderProcessed: today.Processed,
    events.WorkflowChanged: today.WorkflowChanged,
}
"""Events that have the same fields."""


def happening_of(event: HistoryEvent) -> Any:
    """Return the event as today's history has it."""
    if kind := SAME.get(type(event)):
        names = type(event).__dataclass_fields__
        return kind(**{name: getattr(event, name) for name in names})
    return _OTHERS[type(event)](event)


def _started(event: events.StepStarted) -> today.StepStarted:
    return today.StepStarted(
        step=event.step,
        attempt=event.attempt,
        capability=event.capability,
        agent=event.agent,
        complete_by=event.complete_by,
        undo=event.is_undo,
        round=event.generation or None,
    )


def _failed(event: events.StepFailed) -> today.StepFailed:
    return today.StepFailed(step=event.step, attempt=event.attempt, cause=event.cause)


def _not_tried(event: events.NotAttempted) -> today.NotTried:
    return today.NotTried(step=event.step, attempt=event.attempt, cause=event.cause)


def _requeued(event: events.Requeued) -> today.Waits | today.PutBack:
    if event.held_by:
        return today.Waits(held_by=event.held_by)
    return (today.Waits if event.is_chosen else today.PutBack)(until=event.until)


def _ended(event: events.OrderEnded) -> today.Ended:
    return today.Ended(what=event.outcome.value, step=event.step, cause=event.cause)


def _reply_refused(event: events.ReplyRefused) -> today.ReplyRefused:
    return today.ReplyRefused(step=event.step, attempt=event.attempt, cause=event.cause)


# What operators do

_TAKEN: Mapping[Action, Any] = {
    Action.CANCEL: "cancelled",
    Action.HOLD: "held",
    Action.RELEASE: "released",
    Action.EXPEDITE: "hurried",
    Action.RESUBMIT: "resubmitted",
}
_ON_STEP: Mapping[Action, tuple[Callable[..., Any], str | None, str]] = {
    Action.SKIP: (today.Skipped, "skipped", "step-skipped"),
    Action.RETRY_WITH_NEW_KEY: (today.Renewed, "renewed", "step-renewed"),
    Action.REMIND: (today.AskedOtherwise, None, "reminded"),
    Action.NEW_CALLBACK_URL: (today.AskedOtherwise, None, "link-renewed"),
}
"""For each action on a step its event, and its name if the order goes on by it, and if not."""


def _acted_on_step(event: events.StepActionTaken) -> Any:
    kind, resuming, otherwise = _ON_STEP[event.action]
    return kind(what=resuming if event.resumes else otherwise, step=event.step, note=event.note)


def _settled(event: events.StepSettled) -> today.Settled:
    return today.Settled(
        what="settled" if event.resumes else "step-settled",
        step=event.step,
        was_done=event.was_done,
        late_effect=event.late_effect_possible,
        note=event.note,
    )


_OTHERS: Mapping[type[HistoryEvent], Callable[[Any], Any]] = {
    events.SubmissionRefused: lambda it: today.SubmissionRefused(cause=it.cause),
    events.StepStarted: _started,
    events.StepFailed: _failed,
    events.EarlyRefusalRecorded: lambda it: today.RefusedEarly(step=it.step, cause=it.cause),
    events.NotAttempted: _not_tried,
    events.SkippedByCondition: lambda it: today.NotNeeded(step=it.step, predicate=it.condition),
    events.StepScheduled: lambda it: today.BeginsLater(step=it.step, until=it.until, by=it.by),
    events.Requeued: _requeued,
    events.UndoRequested: lambda it: today.UndoRequested(step=it.step, cause=it.cause),
    events.OrderEnded: _ended,
    events.ActionTaken: lambda it: today.ActedOn(what=_TAKEN[it.action], note=it.note),
    events.StepActionTaken: _acted_on_step,
    events.StepSettled: _settled,
    events.DeadlineMoved: lambda it: today.AskedOtherwise(
        what="wait-extended", step=it.step, note=it.note, until=it.until
    ),
    events.ReplyRefused: _reply_refused,
}
