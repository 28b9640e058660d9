"""The words of causes for people."""

import pytest

from engine.domain.causes import FACTS, Cause, Code, cause_in, step_failed
from engine.domain.events import Action
from engine.words import catalogue
from engine.words.causes import words_of, words_of_fault

PARTS = {"no-reason", "unknown"}
"""Parts of the texts of causes."""


def test_every_code_has_words():
    """People read each cause."""
    keys = {key.split(".")[1] for key in catalogue.texts() if key.startswith("cause.")}
    assert keys - PARTS == set(Code) == set(FACTS)


@pytest.mark.parametrize("action", [Action.RESUBMIT, Action.SKIP, Action.SETTLE])
def test_every_action_on_an_order_in_error_says_which_orders_it_is_for(action):
    """Each has a text of its own."""
    assert words_of(Cause(Code.NOT_IN_ERROR, {"action": action, "state": "Pending"}))


@pytest.mark.parametrize("fault", ["503", "no answer within 3 s"])
def test_a_timeout_says_the_last_fault_that_is_known(fault):
    """It says more with a fault than without."""
    known, unknown = (
        words_of(Cause(Code.TIMED_OUT, {"fault": fault_text})) for fault_text in (fault, "")
    )
    assert known.startswith(unknown)
    assert known.endswith(fault)


@pytest.mark.parametrize("code", [Code.REFUSED, Code.CALL_REJECTED, Code.NOT_ATTEMPTED])
def test_a_reply_without_a_reason_says_so(code):
    """There is a text in any case."""
    assert words_of(Cause(code, {"detail": ""})) == catalogue.text("cause.no-reason")
    assert words_of(Cause(code, {"detail": None})) == catalogue.text("cause.no-reason")


def test_a_cause_of_a_newer_version_is_shown_by_its_code():
    """An order on which it stands is handled here too (FLT-12)."""
    fact = {"code": "melted", "facts": {"detail": "too warm", "degrees": 7}}
    newer = cause_in(fact)
    assert (newer.as_json(), words_of(newer)) == (fact, "melted: too warm")
    assert words_of(Cause("melted", {})) == "melted"


@pytest.mark.parametrize(
    ("code", "facts"),
    [
        (Code.KEY_FORGOTTEN, {"known_until": "tomorrow", "detail": "ask"}),
        (Code.KEY_FORGOTTEN, {"known_until": None}),
        (Code.WORKFLOW_CHANGED, {"steps": None}),
        (Code.MESSAGE_INVALID, {"faults": [{"rule": "new"}]}),
        (Code.NOT_IN_ERROR, {"action": "melt"}),
        (Code.RESULT_NEEDED, {"needed": ["pay"]}),
    ],
)
def test_a_known_cause_with_facts_of_another_form_is_shown_by_its_code(code, facts):
    """A newer version of the app wrote them (FLT-12)."""
    read = cause_in({"code": str(code), "facts": dict.fromkeys(FACTS[code], "x") | facts})
    assert words_of(read) == ": ".join(filter(None, (code, facts.get("detail"))))


def test_a_fault_without_the_facts_of_its_words_is_shown_by_its_code():
    """A newer version of the app or of its library found it (FLT-12)."""
    assert words_of_fault({"place": "sku", "code": "too_long", "facts": {}}) == "sku: too_long"


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
        "due_by",
    }
    facts = {name: f"<{name}>" for name in FACTS[code]}
    facts |= {"action": Action.SKIP} if "action" in facts else {}
    facts |= {"known_until": "2026-01-31T08:15:00+00:00"} if "known_until" in facts else {}
    times = ("until", "due_by")
    facts |= {name: "2026-01-31T08:15:00+00:00" for name in times if name in facts}
    facts |= {"needed": {"pay": ["<needed>"]}} if "needed" in facts else {}
    if "why" in facts:
        facts["why"] = Cause(Code.REFUSED, {"detail": "<why>"}).as_json()
    text = words_of(Cause(code, facts))
    assert {name for name in facts if f"<{name}>" not in text} <= decides
    assert "why" not in facts or "<why>" in text
