"""Laws about alerts and notifications of an order (ALR-1 to ALR-3).

The expected ones are derived from its records and its history.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from engine.alerts import events as alerts
from engine.decisions.operator_actions import possible
from engine.decisions.transitions import HistoryEntry, OperatorEvent, Transition
from engine.domain.causes import group_of
from engine.domain.effects import Doubt
from engine.domain.events import OrderEnded, StepCompleted, StepSettled, StepStarted
from engine.domain.messages import OPERATORS
from engine.domain.orders import InError, OrderAggregate
from engine.domain.states import Completed, Failed, NothingToUndo, UndoFailed, Undoing, UndoPending
from engine.domain.statuses import ORDER_FAILED, ORDER_UNDONE, Outcome
from engine.domain.steps import Step
from engine.domain.work_index import IndexRow, WorkItemKind
from engine.storage import outbox
from engine.words.alerts import event_in_words
from testkit.exploration.laws.registry import COMMIT, PUBLISHED, STATE, law
from testkit.exploration.violations import demand
from testkit.exploration.world import World

END_NOTIFICATIONS = {
    "processed": "order-completed",
    "failed": "order-failed",
    "undone": "order-undone",
    "undo-incomplete": "order-failed",
}

OF_ENDS = (ORDER_FAILED, ORDER_UNDONE)
"""The types of the events about an order's end."""

FAILED = Failed | UndoFailed | NothingToUndo
"""The states of a step without further attempts, to do or to undo it."""

Notification = tuple[str, str | None]
"""An event with the step that it is about."""


def stands(step: Step) -> bool:
    """Whether the step may have an effect that was not undone and could be."""
    to_be_undone = isinstance(step.state, Completed | UndoPending | Undoing)
    in_doubt = isinstance(step.effect, Doubt) and step.effect.unanswered
    doubtful = isinstance(step.state, FAILED) and (in_doubt or step.result is not None)
    return step.rules.undoable and (to_be_undone or doubtful)


@law("ALR-1", at=STATE)
def alerted_once(world: World, _: OrderAggregate) -> None:
    """There is one alert for each end of the order in `Error`, sent or in the outbox."""
    if world.restored:  # of alerts there is no copy
        return
    failed = [
        entry for entry in world.history() if entry.event in {"failed", "undone", "undo-incomplete"}
    ]
    expected = [row.data for row in unsent(world) if row.data["To"] == OPERATORS]
    waiting = {row["EventId"] for row in expected if row["Type"] in OF_ENDS}
    alerts = waiting | world.published
    demand(
        len(alerts) == len(failed),
        f"the order ended in Error {len(failed)} times, but has {len(alerts)} alerts",
    )


@law("ALR-1", at=COMMIT)
def alerts_say_what_is(_: World, transition: Transition) -> None:
    """The alert about an end in `Error` says what stands, and what operators can do."""
    before, after = transition.before, transition.after
    of_ends = [event for event in alerts.of(after, transition.entry) if event.type in OF_ENDS]
    alert, *more = of_ends or [None]
    ended = isinstance(after.state, InError) and not isinstance(before.state, InError)
    demand(
        bool(alert) == ended and not more,
        f"“{transition.entry.event}” has the wrong alerts: {[alert, *more]}",
    )
    if alert and isinstance(after.state, InError):
        _says_what_is(after, after.state.outcome, transition.entry, alert)


def _says_what_is(
    order: OrderAggregate, outcome: Outcome, entry: HistoryEntry, alert: OperatorEvent
) -> None:
    undone = outcome is Outcome.UNDONE
    expected = {
        "orderId": order.order_id,
        "reason": order.cause and order.cause.as_json(),
        "cause": order.cause and group_of(order.cause),
        "outcome": outcome,
        "failureCount": order.failures,
        "stillToBeUndone": [step.name for step in order.steps if order.is_undo and stands(step)],
        "actionRequired": not undone,
    }
    stated = {name: alert.data[name] for name in expected}
    demand(stated == expected, f"the alert says {stated}: expected {expected}")
    kind = "OrderProcessing.OrderUndone" if undone else "OrderProcessing.OrderFailed"
    about = (kind, f"orders/{order.order_id}", entry.at)
    demand(
        (alert.type, alert.subject, alert.at) == about,
        f"the alert is {alert}: expected {about}",
    )
    _names_the_cause(order, entry, alert)
    can = possible(order, entry.at)
    offered = alert.data["actions"]
    demand(offered == can, f"the alert offers the actions {offered}: expected {can}")


def _names_the_cause(order: OrderAggregate, entry: HistoryEntry, alert: OperatorEvent) -> None:
    """Check the step that the alert names: one that failed with this reason, or none."""
    cause = order.step(alert.data["step"])
    if cause is None:
        blamed = [step.name for step in order.steps if _failed_for(step, alert.data["reason"])]
        demand(
            not (alert.data["step"] or blamed),
            f"the alert names “{alert.data['step']}”, but {blamed} failed",
        )
        return
    end = entry.events[-1]
    is_named = isinstance(end, OrderEnded) and (end.step, end.cause) == (cause.name, cause.cause)
    demand(
        _failed_for(cause, alert.data["reason"]) and is_named,
        f"the alert blames {cause} for {entry.detail}",
    )


def _failed_for(step: Step, reason: Mapping[str, Any]) -> bool:
    return isinstance(step.state, FAILED) and step.cause.as_json() == reason


@law("ALR-1", at=PUBLISHED)
def published_as_written(world: World, events: Sequence[OperatorEvent]) -> None:
    """The events published to Event Grid are those written with the transitions."""
    written = {
        row.data["EventId"]: row.data for row in unsent(world) if row.data["To"] == OPERATORS
    }
    for event in events:
        row = written.get(event.event_id)
        demand(row, f"an event was published that nobody wrote: {event}")
        same = event == event_in_words(outbox.EVENT.record(row))
        demand(same, f"the published event {event} differs from the written row {row}")


@law("ALR-2", at=STATE)
def notified_once_in_order(world: World, _: OrderAggregate) -> None:
    """The sender gets one notification for each event of the order, in sequence."""
    if world.restored:  # of notices there is no copy
        return
    if not world.order().reply_to:
        demand(
            all(row.data["To"] == OPERATORS for row in unsent(world)),
            "there is a notification, but the sender named no queue",
        )
        return
    pending = {row.data["Body"] for row in unsent(world) if row.data["To"] != OPERATORS}
    bodies = map(json.loads, pending | world.received_notices)
    notices = {
        (body["sequence"], body["noticeId"]): (body["event"], body.get("step")) for body in bodies
    }
    sent = [notices[key] for key in sorted(notices)]
    happened = _happened(world)
    demand(sent == happened, f"the sender gets {sent}: expected {happened} (ALR-2)")
    sequences, ids = {sequence for sequence, _ in notices}, {name for _, name in notices}
    demand(
        len(sequences) == len(ids) == len(sent),
        f"notifications share a sequence or an id: {sorted(notices)}",
    )


def _happened(world: World) -> list[Notification]:
    """Return the notifications that the sender should get, by the history."""
    happened: list[Notification] = []
    turned_back = False
    for entry in (entry for entry in world.history() if entry.change_id):
        if entry.event == "submitted":
            happened.append(("received", None))
        begins = any(isinstance(event, StepStarted) for event in entry.events)
        if begins and ("processing-started", None) not in happened:
            happened.append(("processing-started", None))
        turned_back = turned_back or entry.event in {"cancelled", "undo-requested"}
        completed = [
            event.step
            for event in entry.events
            if isinstance(event, StepCompleted)
            or (isinstance(event, StepSettled) and event.was_done)
        ]
        happened += [("step-completed", step) for step in completed if not turned_back]
        happened += (
            [(END_NOTIFICATIONS[entry.event], None)] if entry.event in END_NOTIFICATIONS else []
        )
    return happened


def unsent(world: World) -> list[IndexRow]:
    return [row for key, row in world.work_items().items() if key.startswith(WorkItemKind.OUTBOX)]
