"""The words of history events for people. Programs do not read them: they use the values.

The text of an event is `history.TAG` in the catalogue, with the fields of the event as its values.
An event whose text depends on a field has one text for each variant (`_VARIANTS`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

from engine.domain import events
from engine.domain.causes import Cause
from engine.domain.events import HistoryEvent
from engine.domain.history import TAGS
from engine.words.catalogue import text
from engine.words.causes import last_answer, words_of
from engine.words.values import clock

NAME_SAYS_ALL = (events.Claimed, events.Recovered, events.OrderProcessed)
"""The events that need no words beside their name."""


def in_words(happened: Sequence[HistoryEvent]) -> str:
    """Return the events of an entry in words. The reason of a failed step appears once."""
    ends = any(isinstance(event, events.OrderEnded | events.UndoRequested) for event in happened)
    failed = {event.step for event in happened if isinstance(event, events.StepFailed)}

    def is_repeated(event: HistoryEvent) -> bool:
        if isinstance(event, events.StepFailed):
            return ends
        return isinstance(event, events.AttemptExpired) and event.step in failed

    shown = (words_of_event(event) for event in happened if not is_repeated(event))
    return "; ".join(filter(None, shown))


def words_of_event(event: HistoryEvent) -> str:
    """Return the event in words, or empty if its name is enough."""
    if isinstance(event, events.UnknownEvent):
        return event.words
    if isinstance(event, NAME_SAYS_ALL):
        return ""
    variant = _VARIANTS[type(event)](event) if type(event) in _VARIANTS else ""
    return text(f"history.{TAGS[type(event)]}{variant}", **_values(event))


def _step_started(event: events.StepStarted) -> str:
    if event.is_external:
        return ".external"
    return ".undo" if event.is_undo else ""


def _expired(event: events.AttemptExpired) -> str:
    if event.is_overloaded:
        return ".overloaded"
    if event.failure is None:
        return ".unprocessed" if event.has_begun else ".not-begun"
    return ".external" if event.is_external else ""


def _requeued(event: events.Requeued) -> str:
    if event.held_by:
        return ".on-hold"
    return ".until" if event.until else ""


def _settled(event: events.StepSettled) -> str:
    if event.was_done:
        return ".done"
    return ".late-effect" if event.late_effect_possible else ".not-done"


_VARIANTS: Mapping[type[HistoryEvent], Callable[[Any], str]] = {
    events.ActionTaken: lambda event: "" if event.note else ".customer",
    events.Submitted: lambda event: ".later" if event.not_before else "",
    events.StepStarted: _step_started,
    events.ExternalEventRecorded: lambda event: "" if event.attempt else ".early",
    events.AttemptExpired: _expired,
    events.Requeued: _requeued,
    events.DeadlinePassed: lambda event: f".{event.when_late}",
    events.UndoRequested: lambda event: "" if event.step else ".order",
    events.OrderEnded: lambda event: ".step" if event.step else "",
    events.StepSettled: _settled,
}
"""For each type of event, a function from the event to the suffix of the text's key."""


def _values(event: HistoryEvent) -> dict[str, Any]:
    values = {field.name: _form(getattr(event, field.name)) for field in fields(event)}
    if "cause" in values:
        values["cause"] = values["cause"] or text("cause.unknown")
    if isinstance(event, events.AttemptExpired):
        values["last_answer"] = last_answer(event.fault)
    if isinstance(event, events.StepStarted):
        values |= _particulars(event)
    return values


def _form(value: Any) -> Any:
    match value:
        case Cause():
            return words_of(value)
        case datetime():
            return clock(value)
    return value


def _particulars(event: events.StepStarted) -> dict[str, str]:
    """Return the parts of the text that only an unusual attempt has."""
    which = text("history.step-started.round", round=event.generation + 1)
    where = text("history.step-started.agent", agent=event.agent)
    return {
        "round": which if event.generation else "",
        "at_agent": where if event.agent != event.capability else "",
    }
