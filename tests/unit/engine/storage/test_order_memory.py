"""What a process remembers of the orders that it has written."""

from dataclasses import replace

import pytest

from engine.domain.statuses import Outcome
from engine.storage.order_memory import OrderMemory
from tests.support.builders import orders


def order(number, version=1):
    return orders.having(orders.new(), order_id=f"b00-{number:026d}", version=version)


def test_an_order_is_remembered_until_it_is_taken():
    """Two decisions at the same time are not made on the same order."""
    memory, written = OrderMemory(), order(1)
    memory.put(written)
    assert memory.take(written.order_id) is written
    assert memory.take(written.order_id) is None


def test_the_newest_version_stays():
    """Two writes may come back in the other order."""
    memory = OrderMemory()
    for version in (2, 3, 1):
        memory.put(order(1, version))
    assert memory.take(order(1).order_id).version == 3


def test_of_more_orders_those_are_remembered_that_were_written_last():
    """Memory is bounded."""
    memory = OrderMemory(most=2)
    for number in (1, 2, 1, 3):
        memory.put(order(number))
    assert [kept.order_id for kept in memory] == [order(1).order_id, order(3).order_id]


@pytest.mark.parametrize(
    "ended", [orders.processed(), orders.in_error(outcome=Outcome.UNDONE)], ids=["done", "undone"]
)
def test_an_order_that_has_ended_is_forgotten(ended):
    """With its customer's data."""
    memory = OrderMemory()
    memory.put(replace(ended, version=1))
    memory.put(replace(ended, version=2))
    assert list(memory) == []
