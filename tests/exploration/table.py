"""Each change of a step is in the table of states and events, by events that the history tells."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from engine.decisions.transitions import HistoryEntry
from engine.domain import events as e
from engine.domain.keys import history_key
from engine.domain.orders import OrderAggregate
from engine.domain.steps import Step
from engine.domain.table import TABLE, TableEvent, kind_of, name_of
from testkit.exploration.moves import Move
from testkit.exploration.violations import demand
from testkit.exploration.world import World

OF_STEP: Mapping[type[Any], tuple[TableEvent, ...]] = {
    e.StepStarted: (TableEvent.START, TableEvent.CONDITION_MET),
    e.StepCompleted: (TableEvent.COMPLETE,),
    e.StepUndone: (TableEvent.COMPLETE,),
    e.ExternalEventRecorded: (TableEvent.EXTERNAL_EVENT,),
    e.EarlyRefusalRecorded: (TableEvent.EXTERNAL_EVENT,),
    e.ExternalRequestCancelled: (TableEvent.CANCEL_REQUEST,),
    e.StepFailed: (TableEvent.REFUSE, TableEvent.FAIL),
    e.SkippedByCondition: (TableEvent.CONDITION_NOT_MET,),
    e.StepScheduled: (TableEvent.SCHEDULE,),
    e.NotAttempted: (TableEvent.NOT_ATTEMPTED,),
    e.AttemptDeferred: (TableEvent.DEFER,),
    e.AttemptExpired: (TableEvent.EXPIRE,),
    e.CooldownStarted: (TableEvent.EXPIRE,),
    e.StepSettled: (TableEvent.SETTLE,),
    e.DeadlineMoved: (TableEvent.MOVE_DEADLINE,),
}
"""What an event of the history does to its step."""

OF_STEP_ACTION: Mapping[e.Action, TableEvent] = {
    e.Action.SKIP: TableEvent.SKIP,
    e.Action.RETRY_WITH_NEW_KEY: TableEvent.RETRY_WITH_NEW_KEY,
}
"""What an action does to its step."""

OF_ORDER: Mapping[type[Any], TableEvent] = {
    e.UndoRequested: TableEvent.REQUEST_UNDO,
    e.StepSettled: TableEvent.RESET,
}
"""What it does to all steps of its order."""

OF_ACTION: Mapping[e.Action, TableEvent] = {
    e.Action.SKIP: TableEvent.RESET,
    e.Action.RETRY_WITH_NEW_KEY: TableEvent.RESET,
    e.Action.RESUBMIT: TableEvent.RESET,
    e.Action.CANCEL: TableEvent.REQUEST_UNDO,
    e.Action.EXPEDITE: TableEvent.END_COOLDOWN,
    e.Action.RELEASE: TableEvent.MOVE_DEADLINE,
}
"""What an action does to all steps of its order."""

MOST = 3
"""How many events may come to a step in one change."""


def watch(world: World, following: Sequence[Move]) -> None:
    """Check each change of an order that can follow."""
    for move in following:
        if move.world.rows is world.rows:
            continue
        for part in move.world.parts():
            before, after = world.about(part.order_id).order(), part.order()
            if before and after and before.version < after.version:
                _, entry = part.rows[history_key(after.order_id, after.version)]
                refused = not_allowed(before, after, entry)
                demand(not refused, f"the table has no such row: {refused}")


def not_allowed(before: OrderAggregate, after: OrderAggregate, entry: HistoryEntry) -> list[str]:
    """The changes of steps that the table does not allow by the events that the entry tells."""
    if any(isinstance(event, e.Restored) for event in entry.events):
        return []  # the copy is of another time
    pairs = [(step, then) for step in before.steps if (then := after.step(step.name))]
    return [
        f"{name_of(kind_of(step.state))} -> {name_of(kind_of(then.state))} by {entry.event}"
        for step, then in pairs
        if not _is_allowed(step, then, {*_events_of(entry, step.name, is_undo=after.is_undo)})
    ]


def _is_allowed(before: Step, after: Step, events: Collection[TableEvent]) -> bool:
    kinds, goal = frozenset({kind_of(before.state)}), kind_of(after.state)
    if goal in kinds and before.counts.attempts == after.counts.attempts:
        return True
    for _ in range(MOST):
        targets = (TABLE[event].get(kind, ()) for event in events for kind in kinds)
        kinds = frozenset().union(*targets)
        if goal in kinds:
            return True
    return False


def _events_of(entry: HistoryEntry, step: str, *, is_undo: bool) -> Iterator[TableEvent]:
    """Yield what may have happened to a step, as the entry says."""
    if is_undo:
        yield TableEvent.REQUEST_UNDO  # of a step that ran when the undo was requested
    for event in entry.events:
        kind = type(event)
        if getattr(event, "step", None) == step:
            yield from OF_STEP.get(kind, ())
            if isinstance(event, e.StepActionTaken) and event.action in OF_STEP_ACTION:
                yield OF_STEP_ACTION[event.action]
        if kind in OF_ORDER:
            yield OF_ORDER[kind]
        if isinstance(event, e.ActionTaken) and event.action in OF_ACTION:
            yield OF_ACTION[event.action]
