"""The words of history events for people. Nothing reads them: programs use the values.

This module goes to the operators' side with `engine.words`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from engine.domain import events
from engine.domain.causes import Cause, Code
from engine.domain.events import HistoryEvent
from engine.domain.submitted_order import OUTSIDE
from engine.words.causes import CLOCK, last_answer, words_of


def in_words(happened: Sequence[HistoryEvent]) -> str:
    """Return the events of an entry in words; the reason of a failed step appears once."""
    ends = any(isinstance(event, events.OrderEnded | events.UndoRequested) for event in happened)
    failed = {event.step for event in happened if isinstance(event, events.StepFailed)}

    def is_repeated(event: HistoryEvent) -> bool:
        if isinstance(event, events.StepFailed):
            return ends
        return isinstance(event, events.AttemptExpired) and event.step in failed

    shown = (words_of_event(event) for event in happened if not is_repeated(event))
    return "; ".join(filter(None, shown))


def words_of_event(event: HistoryEvent) -> str:
    """Return the event in words; empty where its name is enough."""
    words = _WORDS.get(type(event))
    return words(event) if words else ""


def _submitted(event: events.Submitted) -> str:
    later = f", not before {event.not_before:{CLOCK}}" if event.not_before else ""
    return f"workflow {event.workflow}{later}"


def _step_started(event: events.StepStarted) -> str:
    if event.capability == OUTSIDE:
        until = f"{event.complete_by:{CLOCK}}"
        return f"the answer to {event.step} is awaited until {until}, attempt {event.attempt}"
    what = f"{'undo of ' if event.is_undo else ''}{event.step} attempt {event.attempt}"
    which = f" of round {event.generation + 1}" if event.generation else ""
    where = "" if event.agent == event.capability else f" at {event.agent}"
    return f"{what}{which} started{where}"


def _recorded(event: events.ExternalEventRecorded) -> str:
    return f"{event.step} was answered{'' if event.attempt else ' before its turn'}"


def _deferred(event: events.AttemptDeferred) -> str:
    again = f"{event.until:{CLOCK}}"
    return f"{event.agent} accepted {event.step}; it is asked again at {again}"


def _expired(event: events.AttemptExpired) -> str:
    if event.failure is None:
        cause = Cause(Code.NOT_BEGUN, {"agent": event.agent})
        return f"{event.step} attempt {event.attempt} came to nothing: {words_of(cause)}"
    if event.agent == OUTSIDE:
        return f"nobody has answered {event.step} in time, {event.failure} of {event.threshold}"
    failure = f"failure {event.failure} of {event.threshold}"
    return f"{event.step} timed out, {failure}{last_answer(event.fault)}"


def _requeued(event: events.Requeued) -> str:
    if event.held_by:
        return f"{event.held_by} holds it"
    return f"waits until {event.until:{CLOCK}}" if event.until else "no agent has room"


def _ended(event: events.OrderEnded) -> str:
    reason = words_of(event.cause) if event.cause else "None"
    return f"{event.step}: {reason}" if event.step else reason


def _settled(event: events.StepSettled) -> str:
    outcome = "was done" if event.was_done else "was not done"
    late = ", though a call may still take effect" if event.late_effect_possible else ""
    return f"{event.step} {outcome}{late}: {event.note}"


def _workflow_changed(event: events.WorkflowChanged) -> str:
    name = f"{event.workflow} v{event.version}"
    return f"{name} was changed without a new version: {event.steps}"


_WORDS: Mapping[type[HistoryEvent], Callable[[Any], str]] = {
    events.UnknownEvent: lambda event: event.words,
    events.Submitted: _submitted,
    events.SubmissionRefused: lambda event: words_of(event.cause),
    events.StepStarted: _step_started,
    events.StepCompleted: lambda event: f"{event.step} completed by attempt {event.attempt}",
    events.ExternalEventRecorded: _recorded,
    events.EarlyRefusalRecorded: lambda event: (
        f"{event.step} was refused before its turn: {words_of(event.cause)}"
    ),
    events.ExternalRequestCancelled: lambda event: f"{event.step} is awaited no longer",
    events.StepUndone: lambda event: f"{event.step} undone by attempt {event.attempt}",
    events.StepFailed: lambda event: f"{event.step}: {words_of(event.cause)}",
    events.OptionalStepFailed: lambda event: f"the order goes on without {event.step}",
    events.SkippedByCondition: lambda event: f"{event.step} is not needed: {event.condition}",
    events.StepScheduled: lambda event: f"{event.step} begins at {event.until:{CLOCK}}: {event.by}",
    events.NotAttempted: lambda event: f"{event.step} was not tried: {words_of(event.cause)}",
    events.AttemptDeferred: _deferred,
    events.AttemptExpired: _expired,
    events.CooldownStarted: lambda event: (
        f"cooldown {event.number} of {event.most}, until {event.until:{CLOCK}}"
    ),
    events.Requeued: _requeued,
    events.UndoRequested: lambda event: f"{event.step}: {words_of(event.cause)}",
    events.OrderEnded: _ended,
    events.WorkflowChanged: _workflow_changed,
    events.ReplyRefused: lambda event: words_of(event.cause),
    events.ActionTaken: lambda event: event.note,
    events.StepActionTaken: lambda event: f"{event.step}: {event.note}",
    events.StepSettled: _settled,
    events.DeadlineMoved: lambda event: f"{event.step} until {event.until:{CLOCK}}: {event.note}",
    events.Restored: lambda event: f"from a copy of {event.copied_at:{CLOCK}}: {event.note}",
    events.PersonalDataErased: lambda event: event.note,
    events.PersonalDataRevealed: lambda event: event.note,
}
