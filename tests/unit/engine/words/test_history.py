"""The events of the history: their names, their data, and words that nobody reads back."""

import pytest
from pydantic import ValidationError

from engine.decisions.transitions import HistoryEntry
from engine.domain.causes import Cause, Code
from engine.domain.deadlines import WhenLate
from engine.domain.events import (
    Action,
    ActionTaken,
    AttemptDeferred,
    AttemptExpired,
    Claimed,
    CooldownStarted,
    DeadlineMoved,
    DeadlinePassed,
    DueSoon,
    EarlyRefusalRecorded,
    ExternalEventRecorded,
    ExternalRequestCancelled,
    NotAttempted,
    OptionalStepFailed,
    OrderEnded,
    OrderProcessed,
    PersonalDataErased,
    PersonalDataRevealed,
    Recovered,
    ReplyRefused,
    Requeued,
    Restored,
    SkippedByCondition,
    StepActionTaken,
    StepCompleted,
    StepFailed,
    StepScheduled,
    StepSettled,
    StepStarted,
    StepUndone,
    SubmissionRefused,
    Submitted,
    UndoRequested,
    WorkflowChanged,
)
from engine.domain.history import EVENT_INFO, TAGS, from_data, name_of, to_data
from engine.domain.statuses import Outcome
from engine.storage.order_rows import state_record
from engine.storage.orders import columns_of_record, record_of
from engine.storage.tables import Stored, entity, stored_form
from engine.words import catalogue
from engine.words.causes import words_of
from engine.words.history import NAME_SAYS_ALL, in_words
from tests.support.builders import NOW, ORDER_ID, not_attempted, orders, refusal, some, steps

STARTED = StepStarted(
    step="stock", attempt=2, capability="inventory", agent="inventory", complete_by=NOW
)
EXPIRED = AttemptExpired(step="stock", attempt=1, agent="inventory", failure=1, threshold=3)
EVENTS = [
    Submitted(workflow="order"),
    Submitted(workflow="order", not_before=NOW),
    SubmissionRefused(cause=refusal("it is there already")),
    Claimed(),
    STARTED,
    StepStarted(
        step="stock",
        attempt=2,
        capability="inventory",
        agent="depot",
        complete_by=NOW,
        is_undo=True,
    ),
    StepStarted(
        step="stock", attempt=2, capability="depot", agent="depot", complete_by=NOW, generation=1
    ),
    StepCompleted(step="stock", attempt=2),
    StepStarted(step="photos", attempt=2, capability="outside", agent="outside", complete_by=NOW),
    ExternalEventRecorded(step="photos", attempt=2),
    ExternalEventRecorded(step="photos", attempt=0),
    EarlyRefusalRecorded(step="photos", cause=refusal("no camera")),
    ExternalRequestCancelled(step="photos", attempt=2),
    AttemptExpired(step="photos", attempt=2, agent="outside", failure=2, threshold=3),
    StepUndone(step="stock", attempt=3),
    StepFailed(step="stock", attempt=2, cause=refusal("sold out")),
    OptionalStepFailed(step="points"),
    StepScheduled(step="ship", until=NOW, by="tomorrow"),
    Requeued(until=NOW, is_chosen=True),
    Requeued(held_by="grace"),
    SkippedByCondition(step="approve", condition="above_limit"),
    WorkflowChanged(workflow="claim", version=1, steps="pay (gone)"),
    NotAttempted(step="stock", attempt=2, cause=not_attempted("the circuit is open")),
    AttemptDeferred(step="stock", attempt=2, agent="depot", until=NOW),
    EXPIRED,
    AttemptExpired(step="stock", attempt=1, agent="inventory", failure=2, threshold=3, fault="503"),
    AttemptExpired(step="stock", attempt=1, agent="inventory", threshold=3),
    AttemptExpired(
        step="stock", attempt=1, agent="inventory", threshold=3, fault="late", is_overloaded=True
    ),
    CooldownStarted(step="stock", number=1, most=2, until=NOW),
    Requeued(),
    Requeued(until=NOW),
    Recovered(),
    UndoRequested(step="stock", cause=refusal("sold out")),
    UndoRequested(cause=refusal("late")),
    DueSoon(due_by=NOW),
    *(DeadlinePassed(due_by=NOW, when_late=rule) for rule in WhenLate),
    OrderProcessed(),
    OrderEnded(outcome=Outcome.FAILED, step="stock", cause=refusal("sold out")),
    OrderEnded(outcome=Outcome.UNDONE, cause=refusal("cancelled by an operator")),
    OrderEnded(outcome=Outcome.FAILED, step="stock"),
    ReplyRefused(step="stock", attempt=1, cause=refusal("the step is Completed")),
    ActionTaken(action=Action.RESUBMIT, note="the provider is back"),
    PersonalDataErased(note="she asked for it"),
    PersonalDataRevealed(note="to call the customer"),
    StepActionTaken(action=Action.SKIP, resumes=True, step="stock", note="done by hand"),
    StepActionTaken(
        action=Action.RETRY_WITH_NEW_KEY, resumes=True, step="stock", note="they never had it"
    ),
    StepSettled(action=Action.SETTLE, resumes=True, step="a", was_done=True, note="it is there"),
    StepSettled(
        action=Action.SETTLE, step="a", was_done=False, late_effect_possible=True, note="no"
    ),
    Restored(copied_at=NOW, note="the account is gone"),
    StepActionTaken(action=Action.NEW_CALLBACK_URL, step="photos", note="lost"),
    DeadlineMoved(action=Action.EXTEND_DEADLINE, step="photos", note="away", until=NOW),
]


WHOLE_ORDER = {
    *(Action.CANCEL, Action.HOLD, Action.RELEASE, Action.EXPEDITE, Action.RESUBMIT),
    Action.EXPORT,
}
"""The actions that concern no single step."""


def entry(*events):
    return HistoryEntry(at=NOW, actor="scheduler/1", events=events)


def kept(row):
    """The entry as the table gives it back."""
    key = "b03-x|history|0001"
    return record_of(Stored(key=key, row=entity("b03", key, row), etag="e"))


def test_every_event_is_tried():
    """None is left out here."""
    assert {type(event) for event in EVENTS} == set(TAGS)


def test_every_event_has_words():
    """People read each event, unless its name says all."""
    tags = {TAGS[kind] for kind in TAGS if not issubclass(kind, NAME_SAYS_ALL)}
    keys = {key.split(".")[1] for key in catalogue.texts() if key.startswith("history.")}
    assert keys == tags


def test_every_name_has_a_meaning():
    """Pages and the command line show each event by it; each type has a word of its own in rows."""
    resumed = [
        StepActionTaken(action=action, step="stock", note="n", resumes=resumes)
        for action in Action
        if action not in {*WHOLE_ORDER, Action.EXTEND_DEADLINE}
        for resumes in (True, False)
    ]
    taken = [ActionTaken(action=action, note="n") for action in WHOLE_ORDER]
    ended = [OrderEnded(outcome=outcome) for outcome in Outcome]
    names = {name_of(event) for event in (*EVENTS, *resumed, *taken, *ended)}
    assert names == set(EVENT_INFO)
    assert len(set(TAGS.values())) == len(TAGS)


@pytest.mark.parametrize("event", EVENTS, ids=name_of)
def test_what_happened_comes_back_from_the_history_as_it_was(event):
    """People read its note and its cause."""
    assert entry(event).event == name_of(event)
    assert kept(columns_of_record(entry(event))) == entry(event)
    cause = getattr(event, "cause", None)
    texts = [getattr(event, "note", ""), words_of(cause) if cause else ""]
    assert [text for text in texts if text not in in_words(entry(event).events)] == []


@pytest.mark.parametrize(
    ("events", "event", "cause"),
    [
        ((Claimed(), STARTED), "claimed", ""),
        (
            (StepCompleted(step="pay", attempt=1), STARTED),
            "step-completed",
            "",
        ),
        (
            (StepCompleted(step="pay", attempt=1), Requeued()),
            "requeued",
            "",
        ),
        ((Claimed(), OrderEnded(outcome=Outcome.UNDONE, cause=refusal("why"))), "undone", "why"),
        ((EXPIRED, Recovered()), "recovered", ""),
        (
            (
                EXPIRED,
                StepFailed(step="stock", attempt=1, cause=refusal("stock timed out 3 times")),
            ),
            "step-failed",
            "stock timed out 3 times",
        ),
        (
            (
                StepFailed(step="stock", attempt=1, cause=refusal("sold out")),
                UndoRequested(step="stock", cause=refusal("sold out")),
            ),
            "undo-requested",
            "sold out",
        ),
    ],
)
def test_an_entry_is_named_by_what_says_most_and_says_why_a_step_failed_once(events, event, cause):
    """The values have all of it."""
    assert entry(*events).event == event
    assert not cause or in_words(entry(*events).events).count(cause) == 1
    assert kept(columns_of_record(entry(*events))) == entry(*events)


def test_the_code_of_a_cause_is_no_text_when_it_is_read_back():
    """Else a decision that compares it would miss it."""
    written = entry(StepFailed(step="stock", attempt=2, cause=refusal("sold out")))
    (failed,) = kept(columns_of_record(written)).events
    assert failed.cause.code is Code.REFUSED


def test_a_cause_of_a_newer_version_is_kept_with_its_facts():
    """In the history and in the row of an order; the event is no unknown one (FLT-12)."""
    melted = Cause("melted", {"degrees": 7})
    written = entry(StepFailed(step="stock", attempt=2, cause=melted))
    assert kept(columns_of_record(written)) == written
    order = orders.in_error(reason=melted, steps=[steps.failed(reason=melted)])
    state = state_record(order)
    row = entity("b03", key := f"{ORDER_ID}|state", stored_form(columns_of_record(state)))
    assert record_of(Stored(key, row, "1")) == state


def test_what_another_version_of_the_app_wrote_keeps_its_words():
    """Nothing of it is lost for a person, and no other entry for anybody."""
    newer = columns_of_record(entry(Claimed())) | {"Event": "held", "Detail": "by grace"}
    del newer["Data"]
    for data in (
        {},
        {"Data": "[]"},
        {"Data": "{}"},
        {"Data": '[{"event": "held", "by": "grace"}]'},
    ):
        assert kept(newer | data).events == some("held", "by grace")


def test_a_value_with_a_field_left_out_is_no_value():
    """It is told in words."""
    with pytest.raises(ValidationError):
        from_data([{"event": "step-completed", "attempt": 1}])


def test_data_has_the_names_of_the_api():
    """In camelCase, with times as text, and nothing that is not known."""
    assert to_data((STARTED, Requeued())) == [
        {
            "event": "step-started",
            "step": "stock",
            "attempt": 2,
            "capability": "inventory",
            "agent": "inventory",
            "completeBy": NOW.isoformat().replace("+00:00", "Z"),
            "isUndo": False,
            "generation": 0,
        },
        {"event": "requeued", "isChosen": False},
    ]
