"""The names of events in the history, the meaning of each name, and their form in rows.

Rows, views, alert queries and the log have the names. Programs read the values, and do not parse
words.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, Any, Union

from pydantic import ConfigDict, Discriminator, Tag, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from engine.domain import events
from engine.domain.causes import cause_in, group_of
from engine.domain.events import Action, HistoryEvent
from engine.domain.statuses import STATUS_INFO, Mark, OrderStatus

# Names

TAGS: Mapping[type[HistoryEvent], str] = {
    events.Submitted: "submitted",
    events.SubmissionRefused: "submission-refused",
    events.Claimed: "claimed",
    events.StepStarted: "step-started",
    events.StepCompleted: "step-completed",
    events.ExternalEventRecorded: "step-answered",
    events.EarlyRefusalRecorded: "step-refused-early",
    events.ExternalRequestCancelled: "request-cancelled",
    events.StepUndone: "step-undone",
    events.StepFailed: "step-failed",
    events.OptionalStepFailed: "optional-step-failed",
    events.SkippedByCondition: "skipped-by-condition",
    events.StepScheduled: "step-scheduled",
    events.NotAttempted: "not-attempted",
    events.AttemptDeferred: "deferred",
    events.AttemptExpired: "expired",
    events.CooldownStarted: "cooldown",
    events.Requeued: "requeued",
    events.Recovered: "recovered",
    events.DueSoon: "due-soon",
    events.DeadlinePassed: "deadline-passed",
    events.UndoRequested: "undo-requested",
    events.OrderProcessed: "processed",
    events.OrderEnded: "ended",
    events.WorkflowChanged: "workflow-changed",
    events.ReplyRefused: "reply-refused",
    events.ActionTaken: "action-taken",
    events.StepActionTaken: "step-action-taken",
    events.StepSettled: "settlement",
    events.DeadlineMoved: "wait-extended",
    events.Restored: "restored",
    events.PersonalDataErased: "erased",
    events.PersonalDataRevealed: "revealed",
}
"""The tag of each type of event in rows. It is also the name of the event, unless its values select
a more exact name."""

_OF_ACTION: Mapping[str, str] = {
    Action.CANCEL: "cancelled",
    Action.HOLD: "held",
    Action.RELEASE: "released",
    Action.EXPEDITE: "expedited",
    Action.RESUBMIT: "resubmitted",
    Action.EXTEND_DEADLINE: "wait-extended",
    Action.REMIND: "reminded",
    Action.NEW_CALLBACK_URL: "link-renewed",
    Action.EXPORT: "exported",
}
_OF_STEP_ACTION: Mapping[str, tuple[str, str]] = {
    Action.SKIP: ("skipped", "step-skipped"),
    Action.RETRY_WITH_NEW_KEY: ("retried-with-new-key", "step-retried-with-new-key"),
    Action.SETTLE: ("settled", "step-settled"),
}
"""The name if the order continues by the action, and the name if it still waits for an operator."""


def names_of_action(action: str) -> tuple[str, ...]:
    """Return the names that the event of an action can have.

    The first name means that the order continues by the action. An action without an entry in the
    tables has only its own name.
    """
    return _OF_STEP_ACTION.get(action) or (_OF_ACTION.get(action, action),)


def name_of(event: HistoryEvent) -> str:
    """Return the name by which operators filter and count the event."""
    match event:
        case events.UnknownEvent(name=name):
            return name
        case events.OrderEnded(outcome=outcome):
            return outcome.value
        case events.Requeued():
            return "waits" if event.is_chosen or event.held_by else "requeued"
        case events.ActionTaken(action=action):
            resumes = isinstance(event, events.StepActionTaken) and event.resumes
            return names_of_action(action)[0 if resumes else -1]
    return TAGS[type(event)]


# What a name means


class Weight(IntEnum):
    """The importance of an event.

    The last event of the greatest weight gives its history entry the name.
    """

    DETAIL = 0
    STEP = 1
    STEP_FAILURE = 2
    ORDER = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class EventInfo:
    """The meaning of an event for readers of the history."""

    weight: Weight = Weight.ORDER
    is_failure: bool = False
    changes_nothing: bool = False
    """Whether the event only reports something, and the order did not change."""
    begins_attempt: bool = False
    ends_attempt: Mark | None = None
    """The mark of the attempt that ended by this event, or None if no attempt ended."""


def _attempt_ended(
    mark: Mark, weight: Weight = Weight.STEP, *, is_failure: bool = False
) -> EventInfo:
    return EventInfo(weight=weight, is_failure=is_failure, ends_attempt=mark)


def _order_ended(status: OrderStatus) -> EventInfo:
    """Return the meaning of an end. It is a failure if the order then waits for an operator."""
    return EventInfo(is_failure=STATUS_INFO[status].waits_for_operator)


_ORDER = EventInfo()
_DETAIL = EventInfo(weight=Weight.DETAIL)
_FAILURE = EventInfo(is_failure=True)
_ACTIONS = (
    *_OF_ACTION.values(),
    *(name for names in _OF_STEP_ACTION.values() for name in names),
    "restored",
    "erased",
)

EVENT_INFO: Mapping[str, EventInfo] = {
    "submitted": _ORDER,
    "submission-refused": _ORDER,
    "claimed": _ORDER,
    "step-started": EventInfo(weight=Weight.DETAIL, begins_attempt=True),
    "step-completed": _attempt_ended(Mark.PROCESSED),
    "step-answered": _attempt_ended(Mark.PROCESSED),
    "step-refused-early": EventInfo(weight=Weight.STEP),
    "request-cancelled": _attempt_ended(Mark.PENDING, Weight.DETAIL),
    "step-undone": _attempt_ended(Mark.UNDO),
    "step-failed": _attempt_ended(Mark.ERROR, Weight.STEP_FAILURE, is_failure=True),
    "optional-step-failed": _DETAIL,
    "skipped-by-condition": _DETAIL,
    "step-scheduled": _DETAIL,
    "not-attempted": _attempt_ended(Mark.WAITED, is_failure=True),
    "deferred": _attempt_ended(Mark.AGAIN),
    "expired": _attempt_ended(Mark.AGAIN, is_failure=True),
    "cooldown": _DETAIL,
    "requeued": _FAILURE,
    "waits": _ORDER,
    "recovered": _FAILURE,
    "due-soon": _ORDER,
    "deadline-passed": _FAILURE,
    "undo-requested": _FAILURE,
    "processed": _ORDER,
    "failed": _order_ended(OrderStatus.FAILED),
    "undone": _order_ended(OrderStatus.UNDONE),
    "undo-incomplete": _order_ended(OrderStatus.UNDO_INCOMPLETE),
    "workflow-changed": _DETAIL,
    "reply-refused": EventInfo(is_failure=True, changes_nothing=True),
    "revealed": EventInfo(changes_nothing=True),
    **dict.fromkeys(_ACTIONS, _ORDER),
}
"""The meaning of each event by its name."""


def entry_name(happened: Sequence[HistoryEvent]) -> str:
    """Return the name of a history entry.

    An event of the order gives the name. Without such an event, an event of a step does.
    """
    names = [name_of(event) for event in reversed(happened)]
    return max(names, key=lambda name: EVENT_INFO.get(name, _ORDER).weight)


# Their form in rows

_FORM = ConfigDict(alias_generator=to_camel)


def _tag(value: Any) -> Any:
    return value.get("event") if isinstance(value, Mapping) else TAGS[type(value)]


_ANY: Any = Union[tuple(Annotated[kind, Tag(tag)] for kind, tag in TAGS.items())]  # noqa: UP007
_EVENTS: TypeAdapter[Any] = TypeAdapter(
    tuple[Annotated[_ANY, Discriminator(_tag)], ...], config=_FORM
)


def to_data(happened: Sequence[HistoryEvent]) -> list[dict[str, Any]]:
    """Return the events as JSON objects with camelCase fields. Unknown events are left out."""
    known = [event for event in happened if not isinstance(event, events.UnknownEvent)]
    data = _EVENTS.dump_python(tuple(known), mode="json", by_alias=True, exclude_none=True)
    return [
        {"event": TAGS[type(event)]} | fields for event, fields in zip(known, data, strict=True)
    ]


def line_of(happened: Sequence[HistoryEvent]) -> str:
    """Return the events as one line of codes and values, for logs and for readers of rows.

    A version of the app that does not know an event shows this line. Events that this version does
    not know keep the line with which they were read.
    """
    unknown = (event.words for event in happened if isinstance(event, events.UnknownEvent))
    return "; ".join((*unknown, *map(_line, to_data(happened))))


def _line(data: Mapping[str, Any]) -> str:
    values = {name: value for name, value in data.items() if name != "event"}
    if cause := values.get("cause"):
        values["cause"] = group_of(cause_in(cause))
    shown = (f"{name}={_quoted(value)}" for name, value in values.items())
    return " ".join((data["event"], *shown))


def _quoted(value: Any) -> str:
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if not text or " " in text else text


def from_data(data: Any) -> tuple[HistoryEvent, ...]:
    """Return the events of JSON objects.

    Raises `pydantic.ValidationError` if this version does not know an event.
    """
    found: tuple[HistoryEvent, ...] = _EVENTS.validate_python(data)
    return found


def read_events(name: str, line: str, data: Any) -> tuple[HistoryEvent, ...]:
    """Return the events of a row.

    If this version does not know them, return one `UnknownEvent` with their line (FLT-12).
    """
    found: tuple[HistoryEvent, ...] = ()
    with suppress(ValidationError):
        found = from_data(data)
    return found or (events.UnknownEvent(name=name, words=line),)
