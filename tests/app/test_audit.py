"""What operators did to orders is listed, over all orders, for as long as the orders themselves."""

from datetime import timedelta

import pytest

from engine.decisions.operator_actions import BY_NAME
from engine.decisions.transitions import HistoryEntry, Transition
from engine.domain import exact_json
from engine.domain.errors import InvalidError
from engine.domain.history import to_data
from engine.domain.keys import bucket_of
from engine.storage.orders import of_transition
from engine.storage.tables import Put
from operations.api.requests import AuditPage, ExportRequest, OperatorRequest
from testkit.memory import in_memory
from tests.support.acting import act
from tests.support.apps import app
from tests.support.builders import NOW, ORDER_ID, claimed, orders, some

GRACE = {"operator": "grace", "note": "a wrong price"}


class Clock:
    """A clock that the test moves."""

    now = NOW

    def __call__(self):
        return self.now


async def with_an_order(**settings):
    """The app with an order in it, and its clock."""
    clock = Clock()
    made = app(in_memory(clock=clock), **settings)
    entry = HistoryEntry(at=NOW, actor="submission/i", events=some("submitted"))
    await made.engine.store.commit(Transition(before=None, after=orders.new(), entry=entry))
    return made, clock


async def audited(made, **query):
    page = await made.operations.orders.audit(AuditPage(**query))
    return [(entry.operator, entry.event, entry.detail) for entry in page.entries], page


@pytest.mark.proves("OPR-6")
async def test_what_operators_did_is_listed_with_who_and_why_the_newest_first():
    """In the transaction that did it; also that one looked at personal data. What others do is not."""
    made, clock = await with_an_order()
    for name in ("hold", "release"):
        clock.now += timedelta(seconds=1)
        await made.operations.orders.act(BY_NAME[name], ORDER_ID, OperatorRequest(**GRACE))
    clock.now += timedelta(seconds=1)
    await made.operations.orders.reveal(ORDER_ID, OperatorRequest(operator="ada", note="to call"))
    first, page = await audited(made, limit=2)
    assert first == [
        ("operator/ada", "revealed", "to call"),
        ("operator/grace", "released", GRACE["note"]),
    ]
    assert {(entry.order_id, entry.at.tzinfo is None) for entry in page.entries} == {
        (ORDER_ID, False)
    }
    rest, page = await audited(made, limit=2, continuation=page.continuation)
    assert (rest, page.continuation) == ([("operator/grace", "held", GRACE["note"])], None)


@pytest.mark.proves("OPR-6")
def test_an_action_is_written_with_its_row_and_nothing_else_has_one():
    """So none is ever missing."""
    held = act("hold", claimed(), OperatorRequest(**GRACE), NOW)
    entry = HistoryEntry(at=NOW, actor="scheduler/i", events=some("claimed"))
    others = Transition(before=None, after=orders.new(), entry=entry)
    for change, count in ((held, 1), (others, 0)):
        rows = [acted for acted in of_transition(change)[1] if acted.key.startswith("_acted|")]
        assert len(rows) == count
    (row,) = (acted.row for acted in of_transition(held)[1] if acted.key.startswith("_acted|"))
    assert row.key.endswith(f"|{ORDER_ID}|{held.after.version}")
    recorded = {
        "At": NOW,
        "Actor": "operator/grace",
        "Event": "held",
        "Detail": held.entry.detail,
        "Data": exact_json.write(to_data(held.entry.events)),
    }
    assert (row.order_id, row.data) == (ORDER_ID, recorded)


EXPORT = {"operator": "ada", "note": "every night"}
FROM_THE_FIRST, FROM_A_PLACE = None, "orders|b00|"


@pytest.mark.proves("OPR-6")
@pytest.mark.parametrize("begins", [FROM_THE_FIRST, FROM_A_PLACE], ids=["first", "named by hand"])
async def test_every_export_is_listed_with_who_and_why(begins):
    """At whatever page it begins: a copy has all personal data and the tokens of links (engine 14)."""
    made, clock = await with_an_order()
    export = made.operations.services.copies.export
    for _ in range(2):
        await export(ExportRequest(**EXPORT, continuation=begins))
    found, page = await audited(made)
    assert found == [("operator/ada", "exported", EXPORT["note"])]
    assert [(entry.order_id, entry.at) for entry in page.entries] == [(None, NOW)]
    clock.now += timedelta(hours=1)
    await export(ExportRequest(**EXPORT, continuation=begins))
    await export(ExportRequest(**EXPORT | {"operator": "grace"}, continuation=FROM_A_PLACE))
    found, page = await audited(made)
    assert sorted(found) == [
        ("operator/ada", "exported", EXPORT["note"]),
        ("operator/ada", "exported", EXPORT["note"]),
        ("operator/grace", "exported", EXPORT["note"]),
    ]
    assert page.unreadable == []


async def test_the_pages_of_one_export_are_listed_once_an_hour():
    """So a large copy does not crowd out what else operators did (engine 14)."""
    made, clock = await with_an_order()
    export = made.operations.services.copies.export
    await export(ExportRequest(**EXPORT))
    for _ in range(5):
        clock.now += timedelta(minutes=1)
        await export(ExportRequest(**EXPORT, continuation=FROM_A_PLACE))
    assert len((await audited(made))[0]) <= 2


async def test_a_row_that_nobody_can_read_hides_no_other():
    """It is named."""
    made, _ = await with_an_order()
    await made.operations.orders.act(BY_NAME["hold"], ORDER_ID, OperatorRequest(**GRACE))
    await made.engine.store.table.submit(
        bucket_of(ORDER_ID), [Put("_acted|0|x", {"OrderID": ORDER_ID})]
    )
    found, page = await audited(made)
    assert (len(found), page.unreadable) == (1, ["_acted|0|x"])


async def test_no_page_begins_outside_of_the_list():
    """A continuation of another list leads nowhere."""
    made, _ = await with_an_order()
    with pytest.raises(InvalidError):
        await audited(made, continuation="!error|x")


async def test_what_was_done_long_ago_is_removed():
    """After as long as finished orders are kept; what is younger stays."""
    made, clock = await with_an_order(retention_days=30)
    await made.operations.orders.act(BY_NAME["hold"], ORDER_ID, OperatorRequest(**GRACE))
    clock.now += timedelta(days=20)
    await made.operations.orders.act(BY_NAME["release"], ORDER_ID, OperatorRequest(**GRACE))
    clock.now += timedelta(days=11)
    await made.operations.services.retention.sweep()
    assert (await audited(made))[0] == [("operator/grace", "released", GRACE["note"])]
