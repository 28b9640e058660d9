"""How long orders wait to be claimed."""

from dataclasses import replace
from datetime import timedelta

import pytest
from builders import NOW, new_order, seconds

from adapters.memory import MemoryStateStore
from alerts.watch import Watch
from core.changes import Change, HistoryEntry
from core.orders import Priority, ProcessState


async def waiting(*orders):
    """How long the watch says that these orders wait."""
    store = MemoryStateStore()
    for order in orders:
        await store.commit(Change(before=None, after=order, entry=HistoryEntry(at=NOW, actor="t", event="submitted")))
    return await Watch(store=store, clock=lambda: NOW, buckets=8).look()


def pending_since(ago, order_id="b03-01JCX4T9Q8ZK7M2N5P6R3S1V0W", **state):
    order = new_order(not_before=NOW - ago, **state)
    return replace(order.with_state(order_id=order_id), order=replace(order.order, order_id=order_id))


@pytest.mark.proves("SUP-7")
async def test_the_longest_wait_counts():
    """Of all buckets and priorities."""
    other = pending_since(seconds(90), order_id="b00-01JCX4T9Q8ZK7M2N5P6R3S1V0W", priority=Priority.HIGH)
    assert await waiting(pending_since(seconds(60)), other) == seconds(90)


@pytest.mark.proves("SUP-7")
async def test_who_need_not_be_claimed_does_not_wait():
    """An order that rests, or that is processed, is nobody's fault."""
    assert await waiting() == timedelta()
    assert await waiting(pending_since(-seconds(60))) == timedelta()
    assert await waiting(pending_since(seconds(60), process_state=ProcessState.PROCESSED)) == timedelta()
