"""Each open order is in exactly one of the operators' lists."""

from functools import partial

import pytest

from engine.decisions.lists import LISTS
from engine.decisions.transitions import HistoryEntry
from engine.domain.statuses import Outcome
from operations.api.requests import OrdersPage
from testkit.memory import in_memory
from tests.support.apps import app
from tests.support.builders import NOW, orders, seconds, some, steps, transition

AT_WORK = partial(steps.running, complete_by=NOW + seconds(60))
AWAITED = partial(steps.awaiting_external_answer, complete_by=NOW + seconds(60))
READY, FAILED = steps.new, steps.failed


def in_states(*states):
    """Steps that may run at the same time, each in its state."""
    return [state(f"s{number}") for number, state in enumerate(states)]


def pending(*states):
    return orders.pending(steps=in_states(*states))


def handled(*states):
    return orders.processing(steps=in_states(*states))


def failed(*states, **how):
    return orders.in_error(steps=in_states(*states), **how)


held = orders.on_hold

STANDS = {
    "may be claimed": (pending(READY), "Pending"),
    "may be claimed beside a step that runs": (pending(READY, AT_WORK), "Pending"),
    "is pending, and all of it runs": (pending(AT_WORK), "Processing"),
    "was cancelled, and a step runs": (orders.undoing(pending(AT_WORK)), "Processing"),
    "has failed, and a step runs": (pending(FAILED, AT_WORK), "Processing"),
    "is handled": (handled(AT_WORK), "Processing"),
    "is handled beside a step that may begin": (handled(AT_WORK, READY), "Processing"),
    "awaits an answer": (handled(AWAITED), "Waiting"),
    "awaits an answer beside an agent": (handled(AWAITED, AT_WORK), "Waiting"),
    "awaits an answer, and may be claimed": (pending(AWAITED, READY), "Waiting"),
    "is held": (held(pending(READY)), "Held"),
    "is held while a step runs": (held(handled(AT_WORK)), "Held"),
    "is held while an answer is awaited": (held(handled(AWAITED)), "Held"),
    "waits for an operator": (failed(FAILED), "Error"),
    "failed while it was held": (held(failed(FAILED)), "Error"),
    "is not undone": (failed(steps.undo_failed, outcome=Outcome.UNDO_INCOMPLETE), "Error"),
}


@pytest.mark.proves("OPR-1")
@pytest.mark.parametrize("how", STANDS)
async def test_an_open_order_is_in_exactly_one_list(how):
    """It is counted there alone, too (engine 22)."""
    order, name = STANDS[how]
    made = app(in_memory(clock=lambda: NOW))
    entry = HistoryEntry(at=NOW, actor="t", events=some("noted"))
    await made.engine.store.commit(transition(None, order, entry))
    pages = {
        list_name: await made.operations.orders.list(OrdersPage(state=list_name))
        for list_name in LISTS
    }
    assert [list_name for list_name, page in pages.items() if page.orders] == [name]
    counts = (await made.operations.services.overview.look()).open_orders
    assert {list_name: found.count for list_name, found in counts.items() if found.count} == {
        name: 1
    }


@pytest.mark.proves("OPR-1")
async def test_rows_of_orders_of_other_lists_leave_no_page_empty():
    """Those await an answer too, and come first in the lane."""
    made = app(in_memory(clock=lambda: NOW))
    entry = HistoryEntry(at=NOW, actor="t", events=some("noted"))
    ids = [f"b00-{number:026}" for number in range(4)]
    for order_id in ids[:3]:
        other = orders.pending(steps=in_states(AWAITED, READY), order_id=order_id)
        await made.engine.store.commit(transition(None, other, entry))
    mine = orders.pending(steps=in_states(READY), order_id=ids[3])
    await made.engine.store.commit(transition(None, mine, entry))
    page = await made.operations.orders.list(OrdersPage(state="Pending", limit=2))
    assert ([order.order_id for order in page.orders], page.continuation) == ([ids[3]], None)
