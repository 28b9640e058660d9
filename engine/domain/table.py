"""The table of states and events: in which states an event may come, and to which it leads.

Every verb is checked against this one table. Rows of optional behaviour stand under its name.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum

from engine.domain.states import (
    AwaitingExternalEvent,
    BackingOff,
    Completed,
    ConditionPending,
    CoolingDown,
    Deferred,
    Delayed,
    Failed,
    LateEffectsPossible,
    NothingToUndo,
    RequestCancelled,
    Running,
    Scheduled,
    Skipped,
    State,
    UndoFailed,
    Undoing,
    Undone,
    UndoPending,
    Waiting,
)


class Event(StrEnum):
    """What happens to a step."""

    START = "start"
    """An attempt to do or to undo it is recorded (SCH-3)."""
    COMPLETE = "complete"
    """The agent replied that it is done, or undone (SCH-5)."""
    DEFER = "defer"
    """The agent replied that the service finishes the work later (AGT-11)."""
    NOT_ATTEMPTED = "not-attempted"
    """The agent replied that it did not call the service (AGT-8)."""
    REFUSE = "refuse"
    """The service, or somebody outside, said no (AGT-6)."""
    FAIL = "fail"
    """It cannot be requested, or failed without a word of the service (SCH-8)."""
    EXPIRE = "expire"
    """The complete-by time passed without an answer (SUP-3)."""
    REQUEST_UNDO = "request-undo"
    """The order is undone (UND-1)."""
    RESET = "reset"
    """An operator resubmitted the order (OPR-3)."""
    SKIP = "skip"
    """An operator said that it was done, or undone, by other means (OPR-4)."""
    SETTLE = "settle"
    """An operator found out whether it was done (OPR-12)."""

    END_COOLDOWN = "end-cooldown"
    """An operator expedited the order (OPR-8)."""
    RETRY_WITH_NEW_KEY = "retry-with-new-key"
    """An operator found that it was not done, and that its key is forgotten (AGT-12)."""
    CONDITION_MET = "condition-met"
    """It is needed, and may start now (SCH-14)."""
    CONDITION_NOT_MET = "condition-not-met"
    """It is not needed (SCH-14)."""
    SCHEDULE = "schedule"
    """It starts at a time that its workflow chose (SCH-15)."""
    EXTERNAL_EVENT = "external-event"
    """Somebody outside, or the service over its callback, said that it is done (ANS-1)."""
    CANCEL_REQUEST = "cancel-request"
    """The external event is not awaited any more (SCH-12)."""
    MOVE_DEADLINE = "move-deadline"
    """The deadline of an external event moves (ANS-7, OPR-7)."""


Kind = tuple[type[State], ...]
"""A state as the table names it: its class, and for `UndoPending` also the class of its wait."""

Targets = frozenset[Kind]
Rows = Mapping[Kind, Targets]


def kind_of(state: State) -> Kind:
    """Return the kind of a state."""
    if isinstance(state, UndoPending):
        return UndoPending, type(state.wait)
    return (type(state),)


def name_of(kind: Kind) -> str:
    """Return the name of a kind, such as `Running` or `UndoPending(Waiting)`."""
    first, *wait = (state.__name__ for state in kind)
    return f"{first}({wait[0]})" if wait else first


def _kinds(*states: type[State]) -> Targets:
    return frozenset((state,) for state in states)


def _undo(*waits: type[State]) -> Targets:
    return frozenset((UndoPending, wait) for wait in waits)


def _each(kinds: Targets, targets: Targets) -> Rows:
    return dict.fromkeys(kinds, targets)


def _or_unchanged(kinds: Targets, targets: Targets) -> Rows:
    return {kind: targets | {kind} for kind in kinds}


_TRIED = _kinds(Waiting, Delayed, BackingOff, Deferred, CoolingDown)
"""The waits of a step that may have been tried."""
_NEW = _kinds(ConditionPending, Scheduled)
"""The waits of a step that was never tried, unless it was since its order was copied (OPR-11)."""
_UNDO_WAITS = _undo(Waiting, Delayed, BackingOff, Deferred, CoolingDown, LateEffectsPossible)
_UNDO_REQUESTED = _undo(Waiting, LateEffectsPossible)
_GIVEN_UP = _kinds(Failed, Skipped)
_NO_MORE_UNDO = _kinds(UndoFailed, NothingToUndo)

TABLE: Mapping[Event, Rows] = {
    Event.START: {
        **_each(_kinds(Delayed, BackingOff, Deferred), _kinds(Running)),
        **_each(_kinds(Waiting, CoolingDown, Scheduled), _kinds(Running, AwaitingExternalEvent)),
        **_each(_UNDO_WAITS, _kinds(Undoing)),
    },
    Event.COMPLETE: {
        (Running,): _kinds(Completed),
        (Undoing,): _kinds(Undone),
    },
    Event.DEFER: {
        (Running,): _kinds(Deferred),
        (Undoing,): _undo(Deferred),
    },
    Event.NOT_ATTEMPTED: {
        (Running,): _kinds(Waiting, BackingOff, Deferred),
        (Undoing,): _undo(Waiting, BackingOff, Deferred),
    },
    Event.REFUSE: {
        **_each(_TRIED | _NEW | _kinds(Running, AwaitingExternalEvent), _GIVEN_UP),
        (Undoing,): _NO_MORE_UNDO,
    },
    Event.FAIL: {
        **_each(_TRIED | _NEW | _kinds(Running), _GIVEN_UP),
        **_each(_UNDO_WAITS, _kinds(UndoFailed)),
        (Undoing,): _NO_MORE_UNDO,
    },
    Event.EXPIRE: {
        (Running,): _kinds(Waiting, Delayed, BackingOff, CoolingDown) | _GIVEN_UP | _UNDO_REQUESTED,
        (AwaitingExternalEvent,): _kinds(Waiting, CoolingDown) | _GIVEN_UP,
        (Undoing,): _undo(Waiting, Delayed, BackingOff, CoolingDown) | _kinds(UndoFailed),
    },
    Event.REQUEST_UNDO: {  # a step under way ends first; a step without an undo stays as it is
        **_or_unchanged(_TRIED | _NEW | _kinds(Completed, Skipped, Failed), _UNDO_REQUESTED),
        **_or_unchanged(_kinds(RequestCancelled), frozenset()),
    },
    Event.RESET: {
        (Failed,): _kinds(Waiting, ConditionPending),
        (UndoFailed,): _undo(Waiting),
        # Somebody outside who was asked before is asked again.
        **_each(_kinds(RequestCancelled, Waiting, CoolingDown), _kinds(Waiting)),
    },
    Event.SKIP: _each(_kinds(Failed, UndoFailed), _kinds(Skipped)),
    Event.SETTLE: {
        **_or_unchanged(
            _NEW | _kinds(Failed, Waiting, Delayed, BackingOff, CoolingDown), _kinds(Completed)
        ),
        (Deferred,): _kinds(Completed, BackingOff, Waiting),
        (Skipped,): _kinds(Completed, Skipped, Failed),
    },
    # Cooldown
    Event.END_COOLDOWN: {
        (CoolingDown,): _kinds(Waiting),
        (UndoPending, CoolingDown): _undo(Waiting),
    },
    # Key generations
    Event.RETRY_WITH_NEW_KEY: {(Failed,): _kinds(Waiting)},
    # Conditions
    Event.CONDITION_MET: {(ConditionPending,): _kinds(Waiting)},
    Event.CONDITION_NOT_MET: {(ConditionPending,): _kinds(Skipped)},
    Event.SCHEDULE: {(ConditionPending,): _kinds(Scheduled)},
    # External events
    Event.EXTERNAL_EVENT: _each(
        _TRIED | _NEW | _kinds(Running, AwaitingExternalEvent), _kinds(Completed)
    ),
    Event.CANCEL_REQUEST: {(AwaitingExternalEvent,): _kinds(RequestCancelled)},
    Event.MOVE_DEADLINE: {(AwaitingExternalEvent,): _kinds(AwaitingExternalEvent)},
}

OPTIONAL: Mapping[Event, str] = {
    Event.END_COOLDOWN: "cooldown",
    Event.RETRY_WITH_NEW_KEY: "key generations",
    Event.CONDITION_MET: "conditions",
    Event.CONDITION_NOT_MET: "conditions",
    Event.SCHEDULE: "conditions",
    Event.EXTERNAL_EVENT: "external events",
    Event.CANCEL_REQUEST: "external events",
    Event.MOVE_DEADLINE: "external events",
}
"""The optional behaviour to which an event belongs."""

_OPTIONAL_STATES = {
    ConditionPending,
    Scheduled,
    CoolingDown,
    LateEffectsPossible,
    AwaitingExternalEvent,
    RequestCancelled,
}


def rows() -> Iterator[tuple[Event, Kind, Kind]]:
    """Yield every single transition: the event, the state before and the state after."""
    for event, kinds in TABLE.items():
        for before, targets in sorted(kinds.items(), key=lambda row: name_of(row[0])):
            for after in sorted(targets, key=name_of):
                yield event, before, after


def events_in(state: State) -> frozenset[Event]:
    """Return the events that may come in this state."""
    kind = kind_of(state)
    return frozenset(event for event, kinds in TABLE.items() if kind in kinds)


def diagram(*, core_only: bool = False) -> str:
    """Draw the table as a Mermaid state diagram.

    With `core_only`, optional behaviour is left out, and all waits are drawn as one state.
    """
    arrows: dict[tuple[str, str], list[str]] = {}
    for event, before, after in rows():
        if core_only and (event in OPTIONAL or _OPTIONAL_STATES.intersection({*before, *after})):
            continue
        ends = _drawn(before, core_only=core_only), _drawn(after, core_only=core_only)
        labels = arrows.setdefault(ends, [])
        if event not in labels:
            labels.append(event)
    lines = [
        f"    {before} --> {after}: {', '.join(labels)}"
        for (before, after), labels in arrows.items()
        if before != after
    ]
    return "\n".join(["stateDiagram-v2", *lines])


def _drawn(kind: Kind, *, core_only: bool) -> str:
    if core_only and (kind in _TRIED or kind[0] is UndoPending):
        return "UndoPending" if kind[0] is UndoPending else "NextAttempt"
    return name_of(kind).replace("(", "_").removesuffix(")")
