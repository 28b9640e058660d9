"""The table of states and events: the states in which an event may come, and those that follow.

Every verb is checked against this table. The table shows what is possible. The data of the step
selects one of the possible states: its rules, its counts and its effect.
"""

# The pattern in an hour, 2 of 23: the table of states and events

from collections.abc import Container, Iterator, Mapping
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


class TableEvent(StrEnum):
    """The events of a step."""

    START = "start"
    """An attempt to do or to undo the step is recorded (SCH-3)."""
    COMPLETE = "complete"
    """The agent replied that the step is done, or undone (SCH-5)."""
    DEFER = "defer"
    """The agent replied that the service finishes the work later (AGT-11)."""
    NOT_ATTEMPTED = "not-attempted"
    """The agent replied that it did not call the service (AGT-8)."""
    REFUSE = "refuse"
    """The service or an external party refused (AGT-6)."""
    FAIL = "fail"
    """The step cannot be requested, or it failed although its service did not refuse (SCH-8)."""
    EXPIRE = "expire"
    """The complete-by time passed without an answer (SUP-3), or no agent began the step (SUP-9)."""
    REQUEST_UNDO = "request-undo"
    """The order is undone (UND-1)."""
    RESET = "reset"
    """An operator resubmitted the order (OPR-3)."""
    SKIP = "skip"
    """An operator reported that the step was done, or undone, by other means (OPR-4)."""
    SETTLE = "settle"
    """An operator found out whether the step was done (OPR-12)."""

    END_COOLDOWN = "end-cooldown"
    """An operator expedited the order (OPR-8)."""
    RETRY_WITH_NEW_KEY = "retry-with-new-key"
    """An operator found that the step was not done, and that its key is forgotten (AGT-12)."""
    CONDITION_MET = "condition-met"
    """The condition is true, and the step may start now (SCH-14)."""
    CONDITION_NOT_MET = "condition-not-met"
    """The condition is false, so the step is not needed (SCH-14)."""
    SCHEDULE = "schedule"
    """The step starts at a time that its workflow chose (SCH-15)."""
    EXTERNAL_EVENT = "external-event"
    """An external party, or the service through its callback URL, reported that the step is done
    (ANS-1)."""
    CANCEL_REQUEST = "cancel-request"
    """The order no longer waits for the external event (SCH-12)."""
    MOVE_DEADLINE = "move-deadline"
    """The deadline of an external event moves (ANS-7, OPR-7)."""


Kind = tuple[type[State], ...]
"""A state in the table: its class and, for `UndoPending`, also the class of its wait."""

Kinds = frozenset[Kind]
Rows = Mapping[Kind, Kinds]


class Feature(StrEnum):
    """Optional behaviour. An order that does not use it never gets into its states."""

    CONDITIONS = "conditions"
    COOLDOWN = "cooldown"
    EXTERNAL_EVENTS = "external events"
    KEY_GENERATIONS = "key generations"
    LATE_EFFECTS = "late effects"


def kind_of(state: State) -> Kind:
    if isinstance(state, UndoPending):
        return UndoPending, type(state.wait)
    return (type(state),)


def name_of(kind: Kind) -> str:
    """Return the name of a kind, such as `Running` or `UndoPending(Waiting)`."""
    first, *wait = (state.__name__ for state in kind)
    return f"{first}({wait[0]})" if wait else first


def kinds(*states: type[State]) -> Kinds:
    """Return the kinds of these states, none of which is `UndoPending`."""
    return frozenset((state,) for state in states)


def undo_pending(*waits: type[State]) -> Kinds:
    """Return the kinds of `UndoPending` with these waits."""
    return frozenset((UndoPending, wait) for wait in waits)


def _rows(before: Kinds, after: Kinds) -> Rows:
    return dict.fromkeys(before, after)


def _or_unchanged(before: Kinds, after: Kinds) -> Rows:
    return {kind: after | {kind} for kind in before}


_TRIED = kinds(Waiting, Delayed, BackingOff, Deferred, CoolingDown)
"""The waits of a step that may have had an attempt."""
_NEW = kinds(ConditionPending, Scheduled)
"""The waits of a step that had no attempt, unless it had one after its order was copied
(OPR-11)."""
_UNDO_WAITS = undo_pending(Waiting, Delayed, BackingOff, Deferred, CoolingDown, LateEffectsPossible)
_UNDO_REQUESTED = undo_pending(Waiting, LateEffectsPossible)
_NO_MORE_ATTEMPTS = kinds(Failed, Skipped)
_NO_MORE_UNDO = kinds(UndoFailed, NothingToUndo)

TABLE: Mapping[TableEvent, Rows] = {
    TableEvent.START: {
        **_rows(kinds(Delayed, BackingOff, Deferred), kinds(Running)),
        **_rows(kinds(Waiting, CoolingDown, Scheduled), kinds(Running, AwaitingExternalEvent)),
        **_rows(_UNDO_WAITS, kinds(Undoing)),
    },
    TableEvent.COMPLETE: {
        (Running,): kinds(Completed),
        (Undoing,): kinds(Undone),
    },
    TableEvent.DEFER: {
        (Running,): kinds(Deferred),
        (Undoing,): undo_pending(Deferred),
    },
    TableEvent.NOT_ATTEMPTED: {
        (Running,): kinds(Waiting, BackingOff, Deferred),
        (Undoing,): undo_pending(Waiting, BackingOff, Deferred),
    },
    TableEvent.REFUSE: {
        **_rows(_TRIED | _NEW | kinds(Running, AwaitingExternalEvent), _NO_MORE_ATTEMPTS),
        (Undoing,): _NO_MORE_UNDO,
    },
    TableEvent.FAIL: {
        **_rows(_TRIED | _NEW | kinds(Running), _NO_MORE_ATTEMPTS),
        **_rows(_UNDO_WAITS, kinds(UndoFailed)),
        (Undoing,): _NO_MORE_UNDO,
    },
    TableEvent.EXPIRE: {
        (Running,): kinds(Waiting, Delayed, BackingOff, CoolingDown)
        | _NO_MORE_ATTEMPTS
        | _UNDO_REQUESTED,
        (AwaitingExternalEvent,): kinds(Waiting, CoolingDown) | _NO_MORE_ATTEMPTS,
        (Undoing,): undo_pending(Waiting, Delayed, BackingOff, CoolingDown) | kinds(UndoFailed),
        # It is given up while it waits, since no agent takes its request.
        **_rows(_TRIED | kinds(Scheduled), kinds(CoolingDown) | _NO_MORE_ATTEMPTS),
        **_rows(_UNDO_WAITS, undo_pending(CoolingDown) | kinds(UndoFailed)),
    },
    TableEvent.REQUEST_UNDO: {  # a step under way ends first; a step without an undo stays as it is
        **_or_unchanged(_TRIED | _NEW | kinds(Completed, Skipped, Failed), _UNDO_REQUESTED),
        **_or_unchanged(kinds(RequestCancelled), frozenset()),
    },
    TableEvent.RESET: {
        (Failed,): kinds(Waiting, ConditionPending),
        (UndoFailed,): undo_pending(Waiting),
        # Somebody outside who was asked before is asked again, and so is a service whose step the
        # deadline of the order has interrupted.
        **_rows(kinds(RequestCancelled, Waiting, Delayed, BackingOff, CoolingDown), kinds(Waiting)),
    },
    TableEvent.SKIP: _rows(kinds(Failed, UndoFailed), kinds(Skipped)),
    TableEvent.SETTLE: {
        **_or_unchanged(
            _NEW | kinds(Failed, Waiting, Delayed, BackingOff, CoolingDown), kinds(Completed)
        ),
        (Deferred,): kinds(Completed, BackingOff, Waiting),
        (Skipped,): kinds(Completed, Skipped, Failed),
        # A restored step is in doubt in whatever state it was copied.
        (Completed,): kinds(Completed, Failed),
    },
    # Cooldown
    TableEvent.END_COOLDOWN: {
        (CoolingDown,): kinds(Waiting),
        (UndoPending, CoolingDown): undo_pending(Waiting),
    },
    # Key generations
    TableEvent.RETRY_WITH_NEW_KEY: {(Failed,): kinds(Waiting)},
    # Conditions
    TableEvent.CONDITION_MET: {(ConditionPending,): kinds(Waiting)},
    TableEvent.CONDITION_NOT_MET: {(ConditionPending,): kinds(Skipped)},
    TableEvent.SCHEDULE: {(ConditionPending,): kinds(Scheduled)},
    # External events
    TableEvent.EXTERNAL_EVENT: {
        **_rows(_TRIED | kinds(Scheduled, Running, AwaitingExternalEvent), kinds(Completed)),
        # A refusal is kept until it is known whether the step is needed.
        (ConditionPending,): kinds(Completed, ConditionPending),
    },
    TableEvent.CANCEL_REQUEST: {(AwaitingExternalEvent,): kinds(RequestCancelled)},
    TableEvent.MOVE_DEADLINE: {(AwaitingExternalEvent,): kinds(AwaitingExternalEvent)},
}

FEATURE_OF_EVENT: Mapping[TableEvent, Feature] = {
    TableEvent.END_COOLDOWN: Feature.COOLDOWN,
    TableEvent.RETRY_WITH_NEW_KEY: Feature.KEY_GENERATIONS,
    TableEvent.CONDITION_MET: Feature.CONDITIONS,
    TableEvent.CONDITION_NOT_MET: Feature.CONDITIONS,
    TableEvent.SCHEDULE: Feature.CONDITIONS,
    TableEvent.EXTERNAL_EVENT: Feature.EXTERNAL_EVENTS,
    TableEvent.CANCEL_REQUEST: Feature.EXTERNAL_EVENTS,
    TableEvent.MOVE_DEADLINE: Feature.EXTERNAL_EVENTS,
}

FEATURE_OF_STATE: Mapping[type[State], Feature] = {
    ConditionPending: Feature.CONDITIONS,
    Scheduled: Feature.CONDITIONS,
    CoolingDown: Feature.COOLDOWN,
    LateEffectsPossible: Feature.LATE_EFFECTS,
    AwaitingExternalEvent: Feature.EXTERNAL_EVENTS,
    RequestCancelled: Feature.EXTERNAL_EVENTS,
}

BY_OPERATOR = frozenset(
    {
        TableEvent.RESET,
        TableEvent.SKIP,
        TableEvent.SETTLE,
        TableEvent.END_COOLDOWN,
        TableEvent.RETRY_WITH_NEW_KEY,
        TableEvent.MOVE_DEADLINE,
    }
)
"""The events that only an operator's action causes."""

# Questions to the table


def rows() -> Iterator[tuple[TableEvent, Kind, Kind]]:
    """Yield every transition: the event, the state before and the state after."""
    for event, of_event in TABLE.items():
        for before in sorted(of_event, key=name_of):
            for after in sorted(of_event[before], key=name_of):
                yield event, before, after


def targets(event: TableEvent, *kind: type[State]) -> Kinds:
    """Return the states to which the event may lead from this state, or none if it may not come."""
    return TABLE[event].get(kind, frozenset())


def events_in(*kind: type[State]) -> frozenset[TableEvent]:
    return frozenset(event for event in TableEvent if targets(event, *kind))


def reachable(*kind: type[State], by: Container[TableEvent]) -> Kinds:
    """Return the states that a step can reach from this state by any number of these events."""
    found: Kinds = frozenset()
    new: Kinds = frozenset({kind})
    while new:
        after = (targets(event, *one) for one in new for event in TableEvent if event in by)
        new = frozenset().union(*after) - found
        found |= new
    return found


def features_of(event: TableEvent, before: Kind, after: Kind) -> frozenset[Feature]:
    """Return the optional behaviour to which a transition belongs, or none."""
    of_states = (FEATURE_OF_STATE.get(state) for state in (*before, *after))
    return frozenset(filter(None, (FEATURE_OF_EVENT.get(event), *of_states)))
