"""Every order that is over can be listed, newest first, by a row of its own."""

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from engine.decisions.lists import ENDED_LISTS, LISTS, of_list, state_in
from engine.decisions.transitions import HistoryEntry, Transition
from engine.domain.errors import InvalidError
from engine.domain.keys import bucket_of, newest_first
from engine.domain.statuses import Outcome
from engine.storage.orders import of_transition
from engine.storage.tables import Put
from operations.api.requests import FindRequest, OperatorRequest, OrdersPage
from operations.api.retention import erase
from testkit.memory import in_memory
from tests.support.apps import app
from tests.support.builders import NOW, ORDER_ID, PAYLOAD, orders, seconds, some

PROCESSED = orders.processed
UNDONE = partial(orders.in_error, outcome=Outcome.UNDONE)


@pytest.mark.proves("OPR-2")
def test_a_list_is_a_range_of_keys_and_has_a_usual_state():
    """That of open orders is the whole of a kind; that of those that are over, between two times."""
    assert of_list("Held", NOW, NOW) == ("!held|", "!held|~")
    assert of_list("Processed") == ("_ended|processed|", "_ended|processed|~")
    place, until = "_ended|undone|", NOW + seconds(1)
    newest, oldest = (f"{place}{newest_first(time)}" for time in (until, NOW))
    assert of_list("Undone", NOW, until) == (f"{newest}~", f"{oldest}|~")
    states = {name: state_in(name) for name in (*LISTS, *ENDED_LISTS)}
    assert states == {
        "Pending": "Pending",
        "Processing": "Processing",
        "Waiting": "Processing",
        "Error": "Error",
        "Held": "Pending",
        "Processed": "Processed",
        "Undone": "Error",
    }


def id_of(number):
    return f"{ORDER_ID[:-2]}{number:02d}"


async def ended(made, number, end, *, minutes=0, **more):
    """Record an order that ended so many minutes after noon."""
    at = NOW + timedelta(minutes=minutes)
    order = end(order_id=id_of(number), updated_at=at, ready_since=at, **more)
    entry = HistoryEntry(at=at, actor="t", events=some("noted"))
    return await made.engine.store.commit(Transition(before=None, after=order, entry=entry))


async def listed(made, **query):
    """The numbers of the orders on one page, and where the next begins."""
    page = await made.operations.orders.list(OrdersPage(**query))
    return [int(order.order_id[-2:]) for order in page.orders], page.continuation


def app_now(**settings):
    return app(in_memory(clock=lambda: NOW + timedelta(days=1)), **settings)


@pytest.mark.proves("OPR-1")
async def test_orders_that_are_over_are_listed_by_their_end_the_newest_first():
    """Page by page; an order that waits for an operator is none of them."""
    made = app_now()
    for number in (1, 3, 2):
        await ended(made, number, PROCESSED, minutes=number)
    await ended(made, 4, UNDONE, reason="out of stock")
    await ended(made, 5, orders.in_error)
    first, rest = await listed(made, state="Processed", limit=2)
    assert first == [3, 2]
    assert await listed(made, state="Processed", limit=2, continuation=rest) == ([1], None)
    [undone] = (await made.operations.orders.list(OrdersPage(state="Undone"))).orders
    assert (undone.order_id, undone.situation, undone.reason) == (
        id_of(4),
        "undone",
        "out of stock",
    )


@pytest.mark.proves("OPR-1")
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, [3, 2, 1]),
        ({"since": NOW + timedelta(minutes=2)}, [3, 2]),
        ({"until": NOW + timedelta(minutes=2)}, [1]),
        ({"since": datetime(1970, 1, 1, tzinfo=UTC)}, [3, 2, 1]),
        ({"until": datetime(1970, 1, 1, tzinfo=UTC)}, []),
        ({"until": datetime(8999, 1, 1, tzinfo=UTC)}, [3, 2, 1]),
        ({"since": NOW + timedelta(minutes=2), "until": NOW + timedelta(minutes=3)}, [2]),
        ({"workflow": "returns"}, [2]),
    ],
    ids=["all", "since", "until", "first day", "before all", "last day", "between", "workflow"],
)
async def test_ended_orders_are_listed_by_time_and_workflow(query, found):
    """A time is that of the end: the first belongs to it, the last does not."""
    made = app_now()
    for number in (1, 2, 3):
        workflow = "returns" if number == 2 else "order"
        await ended(made, number, PROCESSED, minutes=number, workflow=workflow)
    assert await listed(made, state="Processed", **query) == (found, None)


async def test_open_orders_are_listed_by_the_time_of_their_last_change():
    """The same words mean the same in every list."""
    made = app_now()
    for number in (1, 2):
        await ended(made, number, orders.in_error, minutes=number)
    assert await listed(made, state="Error", since=NOW + timedelta(minutes=2)) == ([2], None)
    assert await listed(made, state="Error", until=NOW + timedelta(minutes=2)) == ([1], None)


@pytest.mark.proves("SUP-2")
async def test_an_order_that_is_over_has_one_row_more_and_nothing_pending():
    """It is written with the last change, and is no row of the work index."""
    for state, rows in ((PROCESSED, 1), (UNDONE, 1), (orders.in_error, 0)):
        order = state()
        entry = HistoryEntry(at=NOW, actor="t", events=some("noted"))
        after, operations = of_transition(Transition(before=None, after=order, entry=entry))
        new = [
            operation.key
            for operation in operations
            if isinstance(operation, Put) and operation.key[0] == "_"
        ]
        assert len(new) == rows
        assert [item.key for item in after.derived.work_items if item.key[0] != "!"] == new


async def test_an_order_whose_customer_is_erased_stays_where_it_was_listed():
    """It ended then, whatever was done to it since."""
    made = app_now()
    for number in (1, 2):
        order = await ended(made, number, PROCESSED, minutes=number)
        if number == 1:
            first = order
    request = OperatorRequest(operator="grace", note="asked")
    await made.engine.store.commit(erase(first, request, PAYLOAD, NOW + timedelta(hours=1)))
    assert await listed(made, state="Processed") == ([2, 1], None)


@pytest.mark.proves("OPR-1")
async def test_a_row_that_nobody_can_read_costs_only_itself():
    """It is shown as such."""
    made = app_now()
    order = await ended(made, 1, UNDONE, minutes=1)
    await ended(made, 2, UNDONE, minutes=2)
    await made.engine.store.table.submit(
        bucket_of(order.order_id), [Put(order.derived.work_items[0].key, {"OrderID": "?"})]
    )
    shown = (await made.operations.orders.list(OrdersPage(state="Undone"))).orders
    assert [order.situation for order in shown] == ["undone", "undone"]
    assert "cannot be read" in shown[1].reason


async def test_no_page_of_ended_orders_begins_where_none_ended():
    """A continuation of another list leads nowhere."""
    with pytest.raises(InvalidError):
        await listed(app_now(), state="Undone", continuation="_ended|processed|0")


def test_no_list_has_the_name_of_another():
    """Open and ended ones are asked for in the same way."""
    assert not LISTS.keys() & ENDED_LISTS.keys()


async def test_a_search_for_a_customer_says_how_they_stand_and_how_many_it_has_looked_at():
    """So a page can show its progress."""
    made, found = app_now(), []
    for number in (1, 2):
        await ended(made, number, PROCESSED)
    request = FindRequest(operator="g", note="n", email="ada@example.com")
    while request:
        page = await made.operations.services.retention.find(request)
        found.append(page)
        more = page.continuation
        request = request.model_copy(update={"continuation": more}) if more else None
    assert [page.looked_at for page in found if page.looked_at] == [2]
    theirs = [order for page in found for order in page.found]
    assert {order.situation for order in theirs} == {"processed"}
    ids = [order_id for page in found for order_id in page.orders]
    assert ids == [id_of(1), id_of(2)] == [order.order_id for order in theirs]
