"""The words of causes are those that the app has today, until rows and events keep causes."""

import pytest

from core.actions import CANCELLED, CANCELLED_BY_CUSTOMER, NOT_DONE
from core.happenings import last_answer, not_begun
from core.workflow import Workflow
from engine.domain.causes import FACTS, Cause, Code, step_failed
from engine.domain.events import Action
from engine.words import _WORDS, NO_REASON, words_of
from scheduler import progress
from scheduler import rules as scheduler
from submission.rules import OTHER_CONTENT

WORKFLOW = Workflow(name="claim", version=2, steps=())
STEP = {"workflow": "claim", "version": 2, "step": "pay"}


def test_every_code_has_words():
    """People read each cause."""
    assert set(_WORDS) == set(Code) == set(FACTS)


@pytest.mark.parametrize(
    ("code", "facts", "words"),
    [
        (Code.TIMED_OUT, {"fault": ""}, f"timed out{last_answer('')}"),
        (Code.TIMED_OUT, {"fault": "503"}, f"timed out{last_answer('503')}"),
        (Code.TIMED_OUT, {"fault": "no answer"}, f"timed out{last_answer('no answer')}"),
        (Code.NOT_BEGUN, {"agent": "bank"}, not_begun("bank")),
        (Code.NOT_ATTEMPTED, {"detail": "no capacity"}, "no capacity"),
        (Code.REFUSED, {"detail": "declined"}, "declined"),
        (Code.REFUSED, {"detail": ""}, scheduler.NO_REASON),
        (Code.CALL_REJECTED, {"detail": ""}, NO_REASON),
        (Code.STEP_REMOVED, STEP, progress.no_such_step(WORKFLOW, "pay")),
        (Code.FOUND_NOT_DONE, {}, NOT_DONE),
        (Code.CANCELLED, {"by": "operator"}, CANCELLED),
        (Code.CANCELLED, {"by": "customer"}, CANCELLED_BY_CUSTOMER),
        (Code.SUBMISSION_CONFLICT, {}, OTHER_CONTENT),
        (Code.SUBMISSION_INVALID, {"faults": ["a", "b"]}, "a; b"),
        (Code.REPLY_AFTER_RETIREMENT, {}, scheduler.RETIRED),
    ],
)
def test_the_words_are_those_of_today(code, facts, words):
    """No text changes when causes take their place."""
    assert words_of(Cause(code, facts)) == words


def test_an_undo_because_of_a_step_names_it():
    """UND-1."""
    declined = Cause(Code.REFUSED, {"detail": "declined"})
    assert words_of(step_failed("pay", declined)).split(": ") == ["pay", "declined"]


@pytest.mark.parametrize("code", Code)
def test_every_fact_of_a_reply_or_a_failure_is_in_its_words(code):
    """Unless it only decides how they are said."""
    decides = {
        "is_undo",
        "why",
        "by",
        "known_until",
        "faults",
        "has_stopped",
        "steps",
        "action",
        "until",
    }
    facts = {name: f"<{name}>" for name in FACTS[code]}
    facts |= {"action": Action.SKIP} if "action" in facts else {}
    facts |= {"known_until": "2026-01-31T08:15:00+00:00"} if "known_until" in facts else {}
    facts |= {"until": "2026-01-31T08:15:00+00:00"} if "until" in facts else {}
    facts |= {"needed": {"pay": ["<needed>"]}} if "needed" in facts else {}
    if "why" in facts:
        facts["why"] = Cause(Code.REFUSED, {"detail": "<why>"}).as_json()
    text = words_of(Cause(code, facts))
    assert {name for name in facts if f"<{name}>" not in text} <= decides
    assert "why" not in facts or "<why>" in text
