"""Changes of an order that a test makes by hand, with all that follows from them."""

from engine.decisions import drafts, lists
from engine.decisions.transitions import HistoryEntry, Transition
from engine.domain.causes import Cause, Code
from engine.domain.messages import BusMessage
from engine.domain.orders import OrderAggregate
from engine.domain.work_index import IndexRow, work_items
from engine.features.external_events.steps import cancel_requests

CANCELLED = Cause(Code.CANCELLED, {"by": "operator"})


def transition(
    before: OrderAggregate | None,
    after: OrderAggregate,
    entry: HistoryEntry,
    *,
    messages: tuple[BusMessage, ...] = (),
) -> Transition:
    """Return the change from one version of an order to the next; `before` is None for a new one."""
    decided = drafts.next_version(before, after, entry.at, entry.events, messages)
    return Transition(before=before, after=decided.after, entry=entry, messages=decided.messages)


def index_rows(order: OrderAggregate) -> dict[str, IndexRow]:
    """Return the rows of the work index that follow from an order, by key."""
    items = work_items(order, order.updated_at, order.derived.ready_since)
    return lists.index_rows(order, items)


def order_ready(order: OrderAggregate) -> BusMessage:
    """Return the message that names the order to the schedulers."""
    return drafts.order_ready(None, order)


def start_undo(order: OrderAggregate) -> OrderAggregate:
    """Return the order with its undo requested."""
    return withdrawn(order).request_undo(CANCELLED)


def withdrawn(order: OrderAggregate) -> OrderAggregate:
    """Return the order with no external answer awaited any more."""
    return cancel_requests(order)[0]
