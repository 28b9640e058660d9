"""Each change of a step is in the table of states and events, by events that the history tells."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from core import happenings
from core.changes import HistoryEntry
from core.keys import history_key
from engine.domain.orders import Order
from engine.domain.steps import Step
from engine.domain.table import TABLE, Event, kind_of, name_of
from kit.exploration.moves import Move
from kit.exploration.violations import demand
from kit.exploration.world import World

OF_STEP: Mapping[type[Any], tuple[Event, ...]] = {
    happenings.StepStarted: (Event.START, Event.CONDITION_MET),
    happenings.StepCompleted: (Event.COMPLETE,),
    happenings.StepUndone: (Event.COMPLETE,),
    happenings.Answered: (Event.EXTERNAL_EVENT,),
    happenings.RefusedEarly: (Event.EXTERNAL_EVENT,),
    happenings.Withdrawn: (Event.CANCEL_REQUEST,),
    happenings.StepFailed: (Event.REFUSE, Event.FAIL),
    happenings.NotNeeded: (Event.CONDITION_NOT_MET,),
    happenings.BeginsLater: (Event.SCHEDULE,),
    happenings.NotTried: (Event.NOT_ATTEMPTED,),
    happenings.Accepted: (Event.DEFER,),
    happenings.Expired: (Event.EXPIRE,),
    happenings.CoolsDown: (Event.EXPIRE,),
    happenings.Skipped: (Event.SKIP,),
    happenings.Renewed: (Event.RETRY_WITH_NEW_KEY,),
    happenings.Settled: (Event.SETTLE,),
    happenings.AskedOtherwise: (Event.MOVE_DEADLINE,),
}
"""What an event of the history does to its step."""

OF_ORDER: Mapping[type[Any], Event] = {
    happenings.UndoRequested: Event.REQUEST_UNDO,
    happenings.Skipped: Event.RESET,
    happenings.Renewed: Event.RESET,
    happenings.Settled: Event.RESET,
}
"""What it does to all steps of its order."""

OF_ACTION: Mapping[str, Event] = {
    "resubmitted": Event.RESET,
    "cancelled": Event.REQUEST_UNDO,
    "hurried": Event.END_COOLDOWN,
    "released": Event.MOVE_DEADLINE,
}
"""What an action does to all steps of its order."""

MOST = 3
"""How many events may come to a step in one change."""


def watch(world: World, following: Sequence[Move]) -> None:
    """Check each change of an order that can follow."""
    for move in following:
        if move.world.rows is world.rows:
            continue
        for part in move.world.each():
            before, after = world.about(part.order_id).order(), part.order()
            if before and after and before.version < after.version:
                _, entry = part.rows[history_key(after.order_id, after.version)]
                refused = not_allowed(before, after, entry)
                demand(not refused, f"the table has no such row: {refused}")


def not_allowed(before: Order, after: Order, entry: HistoryEntry) -> list[str]:
    """The changes of steps that the table does not allow by the events that the entry tells."""
    if any(isinstance(each, happenings.Restored) for each in entry.happened):
        return []  # the copy is of another time
    pairs = [(step, then) for step in before.steps if (then := after.step(step.name))]
    return [
        f"{name_of(kind_of(step.state))} -> {name_of(kind_of(then.state))} by {entry.event}"
        for step, then in pairs
        if not _is_allowed(step, then, {*_events_of(entry, step.name, is_undo=after.is_undo)})
    ]


def _is_allowed(before: Step, after: Step, events: Collection[Event]) -> bool:
    kinds, goal = frozenset({kind_of(before.state)}), kind_of(after.state)
    if goal in kinds and before.counts.attempts == after.counts.attempts:
        return True
    for _ in range(MOST):
        targets = (TABLE[event].get(kind, ()) for event in events for kind in kinds)
        kinds = frozenset().union(*targets)
        if goal in kinds:
            return True
    return False


def _events_of(entry: HistoryEntry, step: str, *, is_undo: bool) -> Iterator[Event]:
    """Yield what may have happened to a step, as the entry says."""
    if is_undo:
        yield Event.REQUEST_UNDO  # of a step that ran when the undo was requested
    for each in entry.happened:
        kind = type(each)
        if getattr(each, "step", None) == step:
            yield from OF_STEP.get(kind, ())
        if kind in OF_ORDER:
            yield OF_ORDER[kind]
        if isinstance(each, happenings.ActedOn) and each.what in OF_ACTION:
            yield OF_ACTION[each.what]
