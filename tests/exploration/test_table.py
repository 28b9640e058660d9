"""The check of the table of states and events can fail."""

import pytest

from engine.decisions.transitions import HistoryEntry
from engine.domain.events import OrderProcessed, StepCompleted
from engine.domain.states import Completed, Waiting
from tests.exploration.table import not_allowed
from tests.support.engine_records import NOW, order, running, step

DONE = StepCompleted(step="pay", attempt=1)


@pytest.mark.parametrize(
    ("before", "after", "event", "refused"),
    [
        (running(), step(Completed()), DONE, []),
        (running(), step(Completed()), OrderProcessed(), ["Running -> Completed by processed"]),
        (step(), step(Completed()), DONE, ["Waiting -> Completed by step-completed"]),
        (running(), step(Waiting()), DONE, ["Running -> Waiting by step-completed"]),
    ],
)
def test_a_change_without_an_event_that_leads_to_it_is_found(before, after, event, refused):
    """The history has to tell an event by which the table has a row from one state to the other."""
    entry = HistoryEntry(at=NOW, actor="scheduler/1", events=(event,))
    assert not_allowed(order(before), order(after), entry) == refused
