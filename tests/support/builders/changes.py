"""Changes of an order that a test makes by hand, with all that follows from them."""

from dataclasses import replace

from core.changes import Change, HistoryEntry
from core.messages import BusMessage
from core.orders import Snapshot
from engine import lists
from engine.conversion.records import old_step, to_new, to_old
from engine.decisions import transitions
from engine.domain.causes import Cause, Code
from engine.domain.orders import Order
from engine.domain.work_index import IndexRow
from engine.features.external_events import cancel_requests

CANCELLED = Cause(Code.CANCELLED, {"by": "operator"})


def transition(
    before: Snapshot | None,
    after: Snapshot,
    entry: HistoryEntry,
    *,
    messages: tuple[BusMessage, ...] = (),
) -> Change:
    """Return the change from one version of an order to the next; `before` is None for a new one."""
    known = to_new(before) if before else None
    decided = transitions.transition(known, to_new(after), entry.at, (), messages)
    state = replace(to_old(decided.after).state, agenda=before.state.agenda if before else ())
    made = replace(after, state=state)  # its steps are as the test made them
    return Change(before=before, after=made, entry=entry, messages=decided.messages)


def index_rows(order: Snapshot) -> dict[str, IndexRow]:
    """Return the rows of the work index that follow from an order, by key."""
    return lists.index_rows(to_new(order))


def wake_up(order: Snapshot) -> BusMessage:
    """Return the message that names the order to the schedulers."""
    return transitions.wake_up(None, to_new(order))


def turn_back(order: Snapshot) -> Snapshot:
    """Return the order with its undo requested."""
    return _as(order, cancel_requests(to_new(order))[0].request_undo(CANCELLED))


def withdrawn(order: Snapshot) -> Snapshot:
    """Return the order with no external answer awaited any more."""
    return _as(order, cancel_requests(to_new(order))[0])


def _as(order: Snapshot, record: Order) -> Snapshot:
    """Return the order as the new record says it; a step that is the same stays as it was."""
    before = to_new(order).steps
    steps = (
        old if new == was else old_step(new)
        for old, was, new in zip(order.steps, before, record.steps, strict=True)
    )
    state = to_old(record).state
    return replace(order, state=replace(state, agenda=order.state.agenda), steps=tuple(steps))
