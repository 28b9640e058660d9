"""The lists of orders, as their rows say it (OPR-1)."""

from engine.decisions.lists import is_first
from engine.domain.work_index import IndexRow


def test_a_row_that_cannot_be_read_is_listed():
    """A further claim of the same order is not."""
    assert is_first(IndexRow(key="!pending|1|bank|x", order_id="x", fault="no JSON"))
    assert is_first(IndexRow(key="!pending|1|bank|x", order_id="x", data={"List": "Pending"}))
    assert not is_first(IndexRow(key="!pending|1|bank|x", order_id="x", data={"Steps": "pay"}))
