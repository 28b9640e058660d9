"""Each open order is in exactly one of the operators' lists."""

from dataclasses import replace

import pytest
from apps import app
from builders import NOW, claimed, seconds, some

from core.agenda import LISTS
from core.changes import HistoryEntry, transition
from core.life import Direction, Outcome, StepState
from core.orders import OUTSIDE
from kit.memory import in_memory
from operators.requests import OrdersPage

AT_WORK = {"state": StepState.RUNNING, "complete_by": NOW + seconds(60)}
AWAITED = AT_WORK | {"capability": OUTSIDE}
READY = {"state": StepState.NOT_STARTED, "complete_by": None}
FAILED = {"state": StepState.FAILED, "complete_by": None}


def handled(*changes):
    """A handled order whose steps may run at the same time, each with these changes."""
    step = claimed().steps[0]
    steps = (replace(step, name=f"s{number}", **each) for number, each in enumerate(changes))
    return replace(claimed(), steps=tuple(steps))


def undone(order):
    return order.with_state(direction=Direction.UNDO)


def held(order):
    return order.put_on_hold("grace", "a note", NOW)


STANDS = {
    "may be claimed": (handled(READY).requeued(), "Pending"),
    "may be claimed beside a step that runs": (handled(READY, AT_WORK).requeued(), "Pending"),
    "is pending, and all of it runs": (handled(AT_WORK).requeued(), "Processing"),
    "was cancelled, and a step runs": (undone(handled(AT_WORK)).requeued(), "Processing"),
    "has failed, and a step runs": (handled(FAILED, AT_WORK).requeued(), "Processing"),
    "is handled": (handled(AT_WORK), "Processing"),
    "is handled beside a step that may begin": (handled(AT_WORK, READY), "Processing"),
    "awaits an answer": (handled(AWAITED), "Waiting"),
    "awaits an answer beside an agent": (handled(AWAITED, AT_WORK), "Waiting"),
    "awaits an answer, and may be claimed": (handled(AWAITED, READY).requeued(), "Waiting"),
    "is held": (held(handled(READY)).requeued(), "Held"),
    "is held while a step runs": (held(handled(AT_WORK)), "Held"),
    "is held while an answer is awaited": (held(handled(AWAITED)), "Held"),
    "waits for an operator": (handled(FAILED).ended(Outcome.FAILED, "declined"), "Error"),
    "failed while it was held": (held(handled(FAILED)).ended(Outcome.FAILED, "no"), "Error"),
    "is not undone": (undone(handled(FAILED)).ended(Outcome.UNDO_INCOMPLETE, "no"), "Error"),
}


@pytest.mark.proves("OPR-1")
@pytest.mark.parametrize("how", STANDS)
async def test_an_open_order_is_in_exactly_one_list(how):
    """It is counted there alone, too (engine 22)."""
    order, name = STANDS[how]
    made = app(in_memory(clock=lambda: NOW))
    entry = HistoryEntry(at=NOW, actor="t", happened=some("noted"))
    await made.store.commit(transition(None, order, entry))
    pages = {each: await made.orders.list(OrdersPage(state=each)) for each in LISTS}
    assert [each for each, page in pages.items() if page.orders] == [name]
    counts = (await made.operators.overview.look()).open_orders
    assert {each: found.count for each, found in counts.items() if found.count} == {name: 1}
