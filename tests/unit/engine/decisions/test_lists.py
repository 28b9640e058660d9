"""The lists of orders, as their rows say it (OPR-1)."""

from engine.decisions.lists import is_first, summary
from engine.domain.deadlines import Deadline
from engine.domain.derive import changed
from engine.domain.states import Waiting
from engine.domain.work_index import IndexRow
from tests.support.engine_records import DECLINED, HOUR, NOW, order, step


def test_a_row_that_cannot_be_read_is_listed():
    """A further claim of the same order is not."""
    assert is_first(IndexRow(key="!pending|1|bank|x", order_id="x", fault="no JSON"))
    assert is_first(IndexRow(key="!pending|1|bank|x", order_id="x", data={"List": "Pending"}))
    assert not is_first(IndexRow(key="!pending|1|bank|x", order_id="x", data={"Steps": "pay"}))


def test_a_list_shows_why_the_last_attempt_failed():
    """SUP-3: what the service said last, and nothing of a step that was never tried."""

    def last_answer(*steps):
        before = order(*steps)
        return summary(changed(before, before, NOW)).get("LastAnswer")

    assert DECLINED.facts["detail"] in last_answer(step(Waiting(cause=DECLINED)))
    assert last_answer(step()) is None


def test_a_list_shows_the_deadline_of_an_order():
    """SCH-17: and no such column of an order without one."""
    due = NOW + HOUR
    assert summary(order(step(), deadline=Deadline(due_by=due, due_soon_at=NOW)))["DueBy"] == due
    assert "DueBy" not in summary(order(step()))
