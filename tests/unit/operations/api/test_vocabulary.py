"""What the app says of its own language, so that pages and command line need not know it."""

import pytest

from development.servicebus_config import ROOT
from engine.alerts.events import STALLED, TYPES, Alert
from engine.decisions.lists import LISTS, status_in
from engine.decisions.operator_actions import possible, possible_at
from engine.decisions.transitions import OperatorEvent
from engine.domain import statuses as life
from engine.domain.statuses import Mark, Outcome
from operations.api.alerts import causes
from operations.api.views import order_view
from operations.api.vocabulary import RUNBOOK, OutsideLinks, vocabulary
from operations.cli.commands.bulk import OUTCOMES
from operations.cli.commands.orders import WAITING
from tests.support.builders import NOW, PAYLOAD, failed_for_good, orders, steps


def events_that(condition):
    return {name for name, event in vocabulary().events.items() if condition(event)}


@pytest.mark.proves("OPR-2")
def test_every_event_says_whether_something_went_wrong():
    """An order that was undone is what somebody asked for, or what its workflow says."""
    assert events_that(lambda event: event.is_failure) == {
        "recovered",
        "expired",
        "step-failed",
        "deadline-passed",
        "failed",
        "undo-incomplete",
        "not-attempted",
        "requeued",
        "undo-requested",
        "reply-refused",
    }
    assert events_that(lambda event: event.changes_nothing) == {"reply-refused", "revealed"}


def test_every_event_says_whether_an_attempt_begins_or_ends_by_it():
    """And with which mark it ends."""
    assert events_that(lambda event: event.begins_attempt) == {"step-started"}
    events = vocabulary().events
    ends = {name: event.ends_attempt for name, event in events.items() if event.ends_attempt}
    assert {name: end.mark for name, end in ends.items()} == {
        "step-completed": Mark.PROCESSED,
        "step-answered": Mark.PROCESSED,
        "request-cancelled": Mark.PENDING,
        "step-undone": Mark.UNDO,
        "not-attempted": Mark.WAITED,
        "deferred": Mark.AGAIN,
        "expired": Mark.AGAIN,
        "step-failed": Mark.ERROR,
    }
    assert all(end.word for end in ends.values())


def test_the_orders_of_every_list_have_a_usual_status():
    """By it a row that nobody can read is told."""
    usual = {name: str(status_in(name)) for name in LISTS}
    assert usual == {
        "Pending": "pending",
        "Processing": "processing",
        "Waiting": "awaiting",
        "Error": "failed",
        "Held": "held",
    }


def test_lists_say_what_they_are_made_of_and_those_that_wait_for_somebody_come_first():
    """All lists of the app are there, beside two that are made of others; last those that are over."""
    found = vocabulary().lists
    assert {name for name, term in found.items() if term.is_counted} == set(LISTS)
    assert [name for name, term in found.items() if term.waits_for_operator] == ["Error"]
    under_way = ["Pending", "Processing", "Waiting"]
    assert [name for name, term in found.items() if term.is_under_way] == under_way
    assert [name for name, term in found.items() if term.is_over] == ["Processed", "Undone"]
    alone = [*under_way, "Error", "Held", "Processed", "Undone"]
    made_of = {name: (term.parts, term.situation) for name, term in found.items()}
    assert made_of == {name: ([name], None) for name in alone} | {
        "again": (under_way, "again"),
        "open": (["Error", *under_way], None),
    }
    assert all(term.title for term in found.values())
    assert next(iter(found)) == "Error"


def test_an_action_says_what_it_concerns():
    """A page finds the actions on a message without their names."""
    of = {action.name: action.subject for action in vocabulary().actions}
    assert {name for name, subject in of.items() if subject == "message"} == {"redrive", "drop"}
    assert {name for name, subject in of.items() if subject == "agent"} == {
        "pause-agent",
        "resume-agent",
    }


def test_an_action_says_what_it_asks():
    """The dialog of a page has a field for each."""
    fields = {action.name: action.fields for action in vocabulary().actions}
    assert [(field.name, field.kind, field.is_required) for field in fields["settle"]] == [
        ("step", "step", False),
        ("wasDone", "flag", True),
        ("answer", "object", False),
        ("confirmLateEffect", "flag", False),
    ]
    assert [field.name for field in fields["skip"]] == ["step"]
    assert fields["hold"] == fields["cancel"] == []


@pytest.mark.proves("OPR-4")
def test_a_step_says_what_can_be_done_about_it_now():
    """A failed step can be skipped, unless another one needs its answer; others cannot."""
    failed = failed_for_good()[0]
    [payment] = failed.steps
    assert "skip" in possible(failed, NOW)
    assert possible_at(failed, payment, NOW) == ["skip", "settle"]
    needing = steps.in_doubt(steps.new("capture", uses=("payment",)))
    needed = orders.having(failed, steps=[payment, needing])
    assert [possible_at(needed, step, NOW) for step in needed.steps] == [
        ["settle"],
        ["settle"],
    ]
    view = order_view(failed, PAYLOAD, [], NOW)
    assert [step.actions for step in view.steps] == [["skip", "settle"]]
    assert possible_at(orders.new(), orders.new().steps[0], NOW) == []


def test_the_command_line_takes_outcomes_and_lists_from_the_app():
    """Those outcomes in which an order waits for an operator, since only these are listed."""
    assert set(OUTCOMES.choices) == set(Outcome) - {Outcome.UNDONE}
    assert WAITING == "Error"


@pytest.mark.proves("ALR-1")
def test_a_cause_says_whether_orders_ended_so():
    """These orders are listed anyway, so a page need not show the cause beside them."""
    types = (life.ORDER_FAILED, life.ORDER_UNDONE, STALLED)
    events = (
        OperatorEvent(event_id=event_type, type=event_type, subject="orders/b00-1", at=NOW, data={})
        for event_type in types
    )
    found = causes([Alert(key=event.type, event=event) for event in events], closed=())
    assert [(cause.type, cause.is_end) for cause in found] == [
        (life.ORDER_FAILED, True),
        (life.ORDER_UNDONE, True),
        (STALLED, False),
    ]


def test_pages_lead_to_what_to_do_and_to_the_log_where_links_are_set():
    """By the sections that the page has; nowhere else is anything shown."""
    assert (vocabulary().log_link, vocabulary().runbook) == (None, {})
    links = OutsideLinks(
        log="https://logs.example.com/?q={orderId}", runbook="https://docs.example.com/x"
    )
    words = vocabulary(links)
    assert words.log_link == links.log
    assert words.runbook["circuit-open"] == "https://docs.example.com/x#alert-circuit-open"
    text = (ROOT / "docs/operations/runbooks.md").read_text()
    titles = [line.lstrip("# ") for line in text.splitlines() if line.startswith("#")]
    assert set(RUNBOOK.values()) <= {title.lower().replace(" ", "-") for title in titles}
    assert {*RUNBOOK} == {"circuit-open", *TYPES}
