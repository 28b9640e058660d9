"""Laws about the work index: it holds exactly what is due, and the order waits for nothing else."""

from collections.abc import Collection, Iterator
from datetime import datetime

from engine.decisions.lists import LISTS
from engine.domain import orders
from engine.domain.keys import sortable
from engine.domain.orders import InError, OrderAggregate
from engine.domain.states import (
    AtWork,
    AwaitingExternalEvent,
)
from engine.domain.statuses import Outcome
from engine.domain.steps import Step
from engine.domain.work_index import IndexRow, WorkItemKind
from testkit.exploration.due import may_go_on
from testkit.exploration.laws.facts import earliest_begin, is_pause, waits_for_operator
from testkit.exploration.laws.registry import RECORDS, law
from testkit.exploration.turns import next_check, ready
from testkit.exploration.violations import demand
from testkit.exploration.world import World

ACTED_ON = ("Agents", "NotBefore", "ReadySince", "UpdatedAt", "Workflow", "WorkflowVersion")


@law("SCH-1", "SUP-2", at=RECORDS)
def work_index_is_exact(world: World, order: OrderAggregate) -> None:
    """The work index has a row for each thing that is due, and no other row."""
    stored = {key for key in world.work_items() if not key.startswith(WorkItemKind.OUTBOX)}
    expected = set(_work_items(world, order))
    demand(
        stored == expected, f"the work index holds {sorted(stored)}: expected {sorted(expected)}"
    )
    for row in (world.work_items()[key] for key in expected):
        stored_columns = {name: row.data.get(name) for name in ACTED_ON}
        true = _acted_on(order) | _date_of(world, order, row)
        demand(stored_columns == true, f"{row.key} has {stored_columns}: expected {true}")


@law("OPR-1", at=RECORDS)
def is_listed_once(world: World, order: OrderAggregate) -> None:
    """An open order is in exactly one list, by one row."""
    state = order.state
    was_undone = isinstance(state, InError) and state.outcome is Outcome.UNDONE
    is_over = was_undone or isinstance(state, orders.Processed)
    rows = [(key.split("|")[0], row.data.get("List")) for key, row in world.work_items().items()]
    named = [(kind, name) for kind, name in rows if name]
    listed = [name for kind, name in named if kind == LISTS.get(name)]
    is_once = len(listed) == (not is_over) and {name for _, name in named} == {*listed}
    demand(
        is_once and len({*named}) == len(named),
        f"{order.order_id} is not in exactly one list: {named}",
    )


def _date_of(world: World, order: OrderAggregate, row: IndexRow) -> dict[str, object]:
    """Return until when the steps in the claim of this row wait.

    Empty for a row of another kind.
    """
    kind, _, capability, *_ = row.key.split("|") + [""] * 2
    if kind != WorkItemKind.PENDING:
        return {}
    turn = ready(order, world.deployed.workflows)
    return {"NotBefore": _first_date(order, [step for step in turn if _lane(step) == capability])}


def _first_date(order: OrderAggregate, turn: Collection[Step]) -> datetime | None:
    """Return when the first of these steps may start.

    None if one could start at the last change.
    """
    now = order.updated_at
    first = min((earliest_begin(order, step) or now for step in turn), default=now)
    return first if first > now else None


def _lane(step: Step) -> str:
    return "-" if step.is_external else step.rules.capability


def _acted_on(order: OrderAggregate) -> dict[str, object]:
    """Return the columns of the work index on which other processes act.

    They say since when the order waits, for which agents, and which slots it has.
    """
    agents = " ".join(step.agent for step in order.in_state(AtWork))
    times = (order.derived.not_before, order.derived.ready_since, order.updated_at)
    values = (agents or None, *times, order.workflow, order.workflow_version)
    return dict(zip(ACTED_ON, values, strict=True))


def _work_items(world: World, order: OrderAggregate) -> Iterator[str]:
    """Yield the work items of an order, derived from its records without the shipped code."""
    derived, order_id = order.derived, order.order_id
    due = [step.state.complete_by for step in order.in_state(AtWork)]
    waits = [step.state.complete_by for step in order.in_state(AwaitingExternalEvent)]
    if may_go_on(order, world.deployed.workflows):
        turn = ready(order, world.deployed.workflows)
        rank = {"high": 0, "normal": 1}[order.priority]
        for need in {_lane(step) for step in turn} or {"-"}:
            alike = [step for step in turn if _lane(step) == need]
            date = _first_date(order, alike)
            place = sortable(derived.ready_since)
            if date and not is_pause(order, alike):
                place = f"later|{sortable(date)}"
            yield f"!pending|{rank}|{need}|{place}|{order_id}"
    if due:
        yield f"!running|{sortable(min(due))}|{order_id}"
    if waits and not order.hold:
        yield f"!waiting|{sortable(min(waits))}|{order_id}"
    whole = {
        "!due": next_check(order),
        "!error": order.updated_at if waits_for_operator(order) else None,
        "!held": order.hold and order.hold.since,
    }
    yield from (f"{kind}|{sortable(at)}|{order_id}" for kind, at in whole.items() if at)


@law("SCH-1", "SCH-8", at=RECORDS)
def waits_for_nothing_else(world: World, order: OrderAggregate) -> None:
    """An order waits for a time only if each of its next steps does.

    Any other order can be claimed immediately, including one that has failed (SCH-8).
    """
    last = [entry for entry in world.history() if entry.change_id][-1]
    now = last.at if last.event == "restored" else order.updated_at  # which is as it was
    turn = ready(order, world.deployed.workflows)
    first = min((earliest_begin(order, step) or now for step in turn), default=now)
    chosen = first if first > now else None
    demand(
        order.derived.not_before == chosen,
        f"the order waits until {order.derived.not_before}, but its steps until {chosen}",
    )
