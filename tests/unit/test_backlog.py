"""In which order a scheduler claims what waits (SCH-11)."""

import pytest

from core.orders import Priority
from scheduler.backlog import MOST, TURN_OF_NORMAL, Backlog, Waiting


def put(backlog, name, priority=Priority.NORMAL, needs="payment"):
    backlog.put(Waiting(order_id=name, priority=priority, needs=needs))


def taken(backlog, count, needs="payment"):
    return [backlog.take(needs).order_id for _ in range(count)]


@pytest.mark.proves("SCH-11")
def test_high_priority_goes_first_and_starves_nobody():
    """Each fifth turn is that of a normal order, however many high ones wait."""
    backlog = Backlog()
    for number in range(100):
        put(backlog, f"normal-{number}")
        put(backlog, f"high-{number}", Priority.HIGH)
    order = taken(backlog, 2 * TURN_OF_NORMAL)
    assert order[:4] == ["high-0", "high-1", "high-2", "high-3"]
    assert [name for name in order if name.startswith("normal")] == ["normal-0", "normal-1"]


def test_what_comes_first_is_taken_first():
    """Also if it is announced again meanwhile; and only once."""
    backlog = Backlog()
    for name in ("a", "b", "a"):
        put(backlog, name)
    assert taken(backlog, 2) == ["a", "b"]
    assert backlog.take("payment") is None


def test_orders_with_other_needs_wait_apart():
    """What one capability has no room for is in nobody else's way."""
    backlog = Backlog()
    put(backlog, "a")
    put(backlog, "b", needs="stock")
    assert list(backlog.needs()) == ["payment", "stock"]
    assert taken(backlog, 1, "stock") == ["b"]
    assert list(backlog.needs()) == ["payment"]


def test_it_does_not_grow_without_end():
    """What it does not remember, the poll finds."""
    backlog = Backlog()
    for number in range(MOST + 1):
        put(backlog, f"o{number}")
    assert taken(backlog, MOST)[-1] == f"o{MOST - 1}"
    assert backlog.take("payment") is None
