"""Business keys: how an order is found by them, in memory and on tables."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from ulid import ULID

from engine.decisions.operator_actions import BY_NAME
from engine.decisions.transitions import HistoryEntry
from engine.domain.errors import InvalidError
from engine.domain.keys import business_keys, key_in, order_key
from engine.domain.statuses import ProcessState
from engine.storage.tables import Delete, Put
from operations.api.requests import OperatorRequest, OrdersPage
from operations.api.retention import erase
from submission import rules
from tests.support.apps import app
from tests.support.builders import NOW, PAYLOAD, orders, some, transition

HOSTILE = "|b00-01JCX4T9Q8ZK7M2N5P6R3S1V0W|=a='\u202e\U0001f9a0"
"""As if another order followed, and as if it were escaped already."""
GRACE = {"operator": "grace", "note": "asked for"}


class Keyed:
    """A store of orders whose payloads name their keys in a field `numbers`."""

    def __init__(self, made):
        self.payload = replace(PAYLOAD, check=lambda _: None, keys=lambda of: of["numbers"])
        self.made = app(replace(made.engine.adapters, clock=lambda: NOW), retention_days=30)
        self.store = self.made.engine.store
        self.terms = replace(self.made.engine.submission.terms, payload=self.payload)
        self.orders = self.made.operations.orders

    async def order(self, *numbers, bucket=0, at=NOW):
        """Record an order with these keys; return its id."""
        order_id = f"b{bucket:02d}-{ULID.from_datetime(at)!s}"
        content = {"schemaVersion": 1, "orderId": order_id, "placedAt": NOW, "numbers": numbers}
        message, workflow = rules.read(json.dumps(content, default=str).encode(), self.terms)
        await self.store.commit(
            rules.new_order(message, workflow, self.terms, NOW, "submission/i").identified("c")
        )
        return order_id

    async def found(self, key, **more):
        page = await self.orders.list(OrdersPage(key=key, **more))
        return [order.order_id for order in page.orders]

    async def rows(self, beginning, bucket="b00"):
        return [row.key for row in await self.store.table.rows(bucket, *business_keys(beginning))]


@pytest.fixture
def unique():
    """What no other test has used in the same table."""
    return f"C-{str(ULID())[-6:]}-"


@pytest.fixture
def keyed(made):
    return Keyed(made)


@pytest.mark.proves("SUB-7")
async def test_an_order_is_found_by_the_beginning_of_any_of_its_keys_in_every_bucket(keyed, unique):
    """At once, and with nothing of the order but that; whatever stands in a key."""
    first = await keyed.order(f"{unique}20", f"x{unique}")
    other = await keyed.order(f"{unique}3{HOSTILE}", bucket=7)
    assert await keyed.found(unique) == [first, other]
    assert await keyed.found(f"{unique}2") == [first]
    assert await keyed.found(f"x{unique}") == [first]
    assert await keyed.found(f"{unique}3{HOSTILE[:9]}") == [other]
    assert await keyed.found(f"{unique}4") == []
    view = await keyed.orders.inspect(other)
    assert view.keys == [f"{unique}3{HOSTILE}"]


async def test_an_order_without_keys_is_found_by_none(keyed):
    """It has no row but its own."""
    order_id = await keyed.order()
    assert (await keyed.store.load(order_id)).submitted.key_rows == ()
    assert (await keyed.orders.inspect(order_id)).keys == []


async def test_an_order_is_found_by_its_key_in_any_state(keyed, unique):
    """Also when it has ended and stands in no list; a state that is given is kept to."""
    order_id = await keyed.order(unique)
    order = await keyed.store.load(order_id)
    entry = HistoryEntry(at=NOW, actor="t", events=some("processed"), change_id="e")
    await keyed.store.commit(transition(order, orders.processed(order), entry))
    (found,) = (await keyed.orders.list(OrdersPage(key=unique))).orders
    assert (found.order_id, found.process_state) == (order_id, ProcessState.PROCESSED)
    assert await keyed.found(unique, state="Error") == []
    assert await keyed.found(unique, state="Held") == []
    assert await keyed.found(unique, state="Processed") == [order_id]


async def test_pages_of_orders_of_a_key_begin_with_the_key_itself(keyed, unique):
    """Then come those that only begin so; the pages together have every order."""
    longer = [await keyed.order(f"{unique}{number}", bucket=number) for number in range(5)]
    exact = await keyed.order(unique, bucket=3)
    page = await keyed.orders.list(OrdersPage(key=unique, limit=2))
    shown = [order.order_id for order in page.orders]
    assert shown[0] == exact
    while page.continuation:
        page = await keyed.orders.list(
            OrdersPage(key=unique, limit=2, continuation=page.continuation)
        )
        shown += [order.order_id for order in page.orders]
    assert set(shown) == {exact, *longer}
    with pytest.raises(InvalidError, match="continuation"):
        await keyed.orders.list(OrdersPage(key=unique, continuation="=0"))


async def test_an_order_that_cannot_be_read_is_found_by_its_key_beside_others(keyed, unique):
    """It is shown with its fault, and a row whose order is gone is passed over."""
    broken, whole = await keyed.order(unique), await keyed.order(f"{unique}1")
    await keyed.store.table.submit("b00", [Delete(order_key(broken))])
    await keyed.store.table.submit("b00", [Put(f"={unique}2|b00-{'7' * 26}", {})])
    found = (await keyed.orders.list(OrdersPage(key=unique))).orders
    assert [order.order_id for order in found] == [broken, whole]
    assert "is missing" in found[0].reason


@pytest.mark.proves("SUB-7")
async def test_keys_are_written_with_the_order_and_by_nothing_else(keyed, unique):
    """A change of the order leaves them alone, and the same message again adds none."""
    order_id = await keyed.order(unique)
    (row,) = await keyed.rows(unique)
    assert key_in(row) == unique
    before = await keyed.store.table.get("b00", row)
    await keyed.orders.act(BY_NAME["hold"], order_id, OperatorRequest(**GRACE))
    assert await keyed.store.table.get("b00", row) == before


@pytest.mark.proves("SUB-7")
async def test_retention_removes_the_keys_with_the_order(keyed, unique):
    """The order remembers them, so an app that knows no keys removes them too."""
    order_id = await keyed.order(unique, f"{unique}2", at=NOW - timedelta(days=1))
    (order,) = (await keyed.made.operations.archive.oldest("b00", None, order_id)).orders[:1]
    assert order.order_id == order_id
    await keyed.made.operations.archive.remove(order)
    assert await keyed.rows(unique) == []
    assert await keyed.store.load(order_id) is None


async def test_a_removal_that_was_cut_short_after_the_keys_is_finished_by_the_next(keyed, unique):
    """What is gone already does not keep the order."""
    order_id = await keyed.order(unique)
    await keyed.store.table.submit("b00", [Delete(key) for key in await keyed.rows(unique)])
    (order,) = (await keyed.made.operations.archive.oldest("b00", None, order_id)).orders[:1]
    await keyed.made.operations.archive.remove(order)
    assert await keyed.store.load(order_id) is None


async def test_an_erasure_keeps_keys_and_removes_those_that_are_personal_by_now(keyed, unique):
    """A later version may have made a field personal that was a key when the order came."""
    order_id = await keyed.order(f"{unique}1", f"{unique}2")
    later = replace(keyed.payload, erased=lambda _: {"numbers": [f"{unique}1"], "name": "erased"})
    order = await keyed.store.load(order_id)
    await keyed.store.commit(
        erase(order, OperatorRequest(**GRACE), later, NOW).identified("erasure")
    )
    assert await keyed.found(unique) == [order_id]
    assert (await keyed.orders.inspect(order_id)).keys == [f"{unique}1"]
    assert [key_in(row) for row in await keyed.rows(unique)] == [f"{unique}1"]
