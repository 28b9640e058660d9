"""Causes as a newer version of the app may write them, with facts that this one does not know."""

import pytest

from engine.decisions.lists import summary
from engine.decisions.transitions import HistoryEntry
from engine.domain import exact_json
from engine.domain.causes import Cause
from engine.domain.events import StepFailed
from engine.storage.order_rows import order_of, state_record
from engine.storage.orders import columns_of_record, record_of
from engine.storage.tables import Stored, entity, stored_form
from tests.support.builders import NOW, ORDER_ID, orders, steps

FURTHER = {"code": "refused", "facts": {"detail": "no", "advice": "call us"}}
RENAMED = {"code": "refused", "facts": {"text": "no"}}


def reread(key, record):
    """The record as it is read after it was written, once it is written again in the same way."""
    columns = columns_of_record(record)
    read = record_of(Stored(key, entity("b03", key, stored_form(columns)), "1"))
    assert columns_of_record(read) == columns
    return read


@pytest.mark.proves("FLT-12")
@pytest.mark.parametrize(
    ("fact", "group"),
    [
        (FURTHER, "refused: no"),
        (RENAMED, "refused"),
        ({"code": "step-failed", "facts": {"step": "payment", "why": FURTHER}}, "refused: no"),
        ({"code": "step-failed", "facts": {"step": "payment", "why": RENAMED}}, "refused"),
        ({"code": "step-failed", "facts": {"step": "payment"}}, "step-failed"),
    ],
)
def test_a_known_cause_with_the_facts_of_a_newer_version_is_read_and_written_back(fact, group):
    """In the history, in the row of an order, and in what lists show of it."""
    newer = Cause(fact["code"], fact["facts"])
    failed = StepFailed(step="payment", attempt=2, cause=newer)
    entry = HistoryEntry(at=NOW, actor="s1", events=(failed,), change_id="c")
    assert reread(f"{ORDER_ID}|history|0001", entry) == entry
    order = orders.in_error(reason=newer, steps=[steps.failed(reason=newer)])
    state = state_record(order)
    read = reread(f"{ORDER_ID}|state", state)
    assert read == state
    (own,) = exact_json.read(columns_of_record(read)["Steps"])
    assert own["ExactState"]["Cause"] == {"Code": fact["code"], "Facts": fact["facts"]}
    again = order_of(order.submitted, read, order.etag)
    assert again.steps == order.steps
    assert summary(again)["Cause"] == group
    assert exact_json.read(summary(again)["Reason"]) == fact
