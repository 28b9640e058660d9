"""What operators and senders have to be told of an order (ALR-1 to ALR-3).

It is read off its records and its history.
"""

import json
from collections.abc import Sequence

from core import alerts
from core.actions import possible
from core.agenda import AgendaRow, Kind
from core.changes import Event, HistoryEntry
from core.happenings import Ended, Settled, StepCompleted, StepStarted
from core.life import ORDER_FAILED, ORDER_UNDONE, Direction, Outcome, ProcessState, StepState
from core.messages import OPERATORS
from core.orders import Snapshot, Step
from engine.conversion.changes import OldChange
from engine.conversion.records import to_new
from engine.domain.causes import group_of
from kit.exploration.violations import demand
from kit.exploration.world import World

ENDS_TOLD = {
    "processed": "order-completed",
    "failed": "order-failed",
    "undone": "order-undone",
    "undo-incomplete": "order-failed",
}

OF_ENDS = (ORDER_FAILED, ORDER_UNDONE)
"""The types of the events that tell operators of an end; others tell of what is no end."""

Told = tuple[str, str | None]
"""An event, and the step that it is about."""


def stands(step: Step) -> bool:
    """Whether the step may have had an effect that was not taken back, and could be."""
    doubtful = step.state is StepState.FAILED and (step.in_doubt or step.result is not None)
    return step.undoable and (step.state in (StepState.COMPLETED, StepState.UNDOING) or doubtful)


def check_alert(change: OldChange) -> None:
    """Check that who ends an order in `Error` tells operators what stands and what they can do."""
    of_ends = [each for each in alerts.of(change.after, change.entry) if each.type in OF_ENDS]
    state, (told, *more) = change.after.state, of_ends or [None]
    ended = state.process_state is ProcessState.ERROR is not change.before.state.process_state
    demand(bool(told) == ended and not more, f"“{change.entry.event}”, and alerts: {[told, *more]}")
    if told:
        _says_what_is(change.after, change.entry, told)


def _says_what_is(order: Snapshot, entry: HistoryEntry, told: Event) -> None:
    state, undone = order.state, order.state.outcome is Outcome.UNDONE
    back = state.direction is Direction.UNDO
    expected = {
        "orderId": state.order_id,
        "reason": state.reason,
        "cause": state.cause and group_of(state.cause),
        "outcome": state.outcome,
        "failureCount": state.failure_count,
        "stillToBeUndone": [step.name for step in order.steps if back and stands(step)],
        "actionRequired": not undone,
    }
    said = {name: told.data[name] for name in expected}
    demand(said == expected, f"the alert says {said}, the order {expected}")
    kind = "OrderProcessing.OrderUndone" if undone else "OrderProcessing.OrderFailed"
    about = (kind, f"orders/{state.order_id}", entry.at)
    demand(
        (told.type, told.subject, told.at) == about, f"the alert is {told}, and should be {about}"
    )
    _names_the_cause(order, entry, told)
    can = possible(to_new(order), entry.at)
    offered = told.data["actions"]
    demand(offered == can, f"operators can {can}, and are told {offered}")


def _names_the_cause(order: Snapshot, entry: HistoryEntry, told: Event) -> None:
    """Check which step is named: one that has failed, with its own reason; none if none has."""
    cause = order.step(told.data["step"])
    if cause is None:
        blamed = [
            step.name
            for step in order.in_state(StepState.FAILED)
            if step.reason == told.data["reason"]
        ]
        demand(
            not (told.data["step"] or blamed),
            f"the alert names “{told.data['step']}”, and {blamed} failed",
        )
        return
    failed = cause.state is StepState.FAILED and cause.reason == told.data["reason"]
    end = entry.happened[-1]
    is_told = isinstance(end, Ended) and (end.step, end.reason) == (cause.name, cause.reason)
    demand(failed and is_told, f"the alert blames {cause} for {entry.detail}")


def check_published(world: World, events: Sequence[Event]) -> None:
    """Check that what goes to Event Grid is what was written with the transitions."""
    written = {
        row.data["EventId"]: row.data for row in unsent(world) if row.data["To"] == OPERATORS
    }
    for event in events:
        row = written.get(event.event_id)
        demand(row, f"published is what nobody wrote: {event}")
        same = (event.type, event.subject, event.data) == (
            row["Type"],
            row["Subject"],
            json.loads(row["Data"]),
        )
        demand(same, f"published is {event}, written was {row}")


def check_notices(world: World) -> None:
    """Check that the sender hears of each thing that happened, once and in order (ALR-2)."""
    if not world.state().reply_to:
        demand(
            all(row.data["To"] == OPERATORS for row in unsent(world)),
            "somebody is told who did not ask",
        )
        return
    owed = {row.data["Body"] for row in unsent(world) if row.data["To"] != OPERATORS}
    bodies = map(json.loads, owed | world.heard)
    notices = {
        (each["sequence"], each["noticeId"]): (each["event"], each.get("step")) for each in bodies
    }
    told = [notices[key] for key in sorted(notices)]
    happened = _happened(world)
    demand(told == happened, f"the sender hears {told}; it happened {happened} (ALR-2)")
    sequences, ids = {sequence for sequence, _ in notices}, {name for _, name in notices}
    demand(
        len(sequences) == len(ids) == len(told),
        f"notices share a sequence or an id: {sorted(notices)}",
    )


def _happened(world: World) -> list[Told]:
    """What there is to tell the sender, by the history.

    What is done once an order goes back is undone.
    """
    happened: list[Told] = []
    turned_back = False
    for entry in (entry for entry in world.history() if entry.change_id):
        if entry.event == "submitted":
            happened.append(("received", None))
        begins = any(isinstance(each, StepStarted) for each in entry.happened)
        if begins and ("processing-started", None) not in happened:
            happened.append(("processing-started", None))
        turned_back = turned_back or entry.event in {"cancelled", "undo-requested"}
        completed = [
            each.step
            for each in entry.happened
            if isinstance(each, StepCompleted) or (isinstance(each, Settled) and each.was_done)
        ]
        happened += [("step-completed", step) for step in completed if not turned_back]
        happened += [(ENDS_TOLD[entry.event], None)] if entry.event in ENDS_TOLD else []
    return happened


def unsent(world: World) -> list[AgendaRow]:
    """What waits in the outbox."""
    return [row for key, row in world.agenda().items() if key.startswith(Kind.OUTBOX)]
