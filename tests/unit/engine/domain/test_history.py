"""The names of events, and their form in rows and logs."""

import json
from dataclasses import replace

import pytest

from engine.domain import events as e
from engine.domain.causes import group_of
from engine.domain.history import (
    EVENT_INFO,
    line_of,
    name_of,
    names_of_action,
    read_events,
    to_data,
)
from engine.domain.statuses import Outcome
from tests.support.engine_records import DECLINED, NOW

EXPIRED = e.AttemptExpired(step="pay", attempt=1, agent="bank", threshold=2, fault="503 busy")
FAILED = e.StepFailed(step="pay", attempt=2, cause=DECLINED)
HELD = e.ActionTaken(action="hold", note="")


def test_the_line_of_an_entry_has_codes_and_values():
    """A text with spaces or without letters is quoted; of a cause the code of its group is shown."""
    expired = 'expired step=pay attempt=1 agent=bank threshold=2 hasBegun=False fault="503 busy"'
    assert line_of((EXPIRED,)).startswith(expired)
    group = group_of(DECLINED)
    assert line_of((FAILED,)) == f'step-failed step=pay attempt=2 cause="{group}"'
    assert line_of((HELD,)) == 'action-taken action=hold note=""'
    umlaut = replace(HELD, note="für alle")
    assert line_of((umlaut,)) == 'action-taken action=hold note="für alle"'
    assert line_of((HELD, umlaut)) == f"{line_of((HELD,))}; {line_of((umlaut,))}"


def test_an_event_that_is_not_known_keeps_its_line():
    """FLT-12: it comes first, and is no part of the data."""
    unknown = e.UnknownEvent(name="newer", words="newer a=1")
    assert line_of((HELD, unknown)) == f"newer a=1; {line_of((HELD,))}"
    assert to_data((unknown,)) == []
    assert read_events("newer", "newer a=1", [{"event": "newer", "a": 1}]) == (unknown,)
    assert read_events("held", "held", to_data((HELD,))) == (HELD,)


def test_data_leaves_out_what_is_not_there():
    """So a row is short, and an older app reads it."""
    (data,) = to_data((EXPIRED,))
    assert data["event"] == "expired"
    assert "failure" not in data
    (counted,) = to_data((replace(EXPIRED, failure=1),))
    assert counted["failure"] == 1


def test_data_is_json():
    """A row holds it as a text; what is read of that is the event."""
    event = e.DueSoon(due_by=NOW)
    data = json.loads(json.dumps(to_data((event,))))
    assert data == to_data((event,))
    assert read_events("due-soon", "due-soon", data) == (event,)


def test_an_action_that_has_no_name_of_its_own_gives_its_event_that_of_the_action():
    """A business adds one by its class alone."""
    assert names_of_action("annotate") == ("annotate",)
    assert name_of(replace(HELD, action="annotate")) == "annotate"
    assert names_of_action(e.Action.SKIP) == ("skipped", "step-skipped")


def test_the_end_of_an_order_has_the_name_of_its_outcome():
    """The list of events and the log tell an order that failed from one that was undone."""
    assert [name_of(e.OrderEnded(outcome=outcome)) for outcome in Outcome] == [*Outcome]


@pytest.mark.parametrize(
    ("name", "is_failure"), [("failed", True), ("undo-incomplete", True), ("undone", False)]
)
def test_an_end_is_a_failure_if_it_waits_for_an_operator(name, is_failure):
    """OPR-1."""
    assert EVENT_INFO[name].is_failure is is_failure


def test_an_attempt_that_has_ended_has_a_mark():
    """And is a failure, or not."""
    assert EVENT_INFO["expired"].is_failure
    assert EVENT_INFO["expired"].ends_attempt
    assert not EVENT_INFO["deferred"].is_failure
