"""Causes: codes with facts, and the groups that they make."""

import pytest

from engine.domain import exact_json
from engine.domain.causes import (
    FACTS,
    MAX_LENGTH,
    MAX_NAME,
    Cause,
    Code,
    cause_in,
    group_of,
    root_of,
    step_failed,
)
from engine.domain.messages import utf16_units
from engine.words.causes import words_of
from tests.support.engine_records import DECLINED


def refusal(**facts):
    return Cause(Code.REFUSED, {"detail": "", **facts})


def test_every_code_says_which_facts_it_has():
    """A code without a row would have no words either."""
    assert set(FACTS) == set(Code)


def test_a_cause_has_the_facts_of_its_code_and_no_others():
    """Readers may count on them; only a service's own type and code may be there or not."""
    with pytest.raises(ValueError, match="detail"):
        Cause(Code.REFUSED)
    with pytest.raises(ValueError, match="agent"):
        Cause(Code.REFUSED, {"detail": "", "agent": "bank"})
    assert refusal(type="t", code="c").facts["type"] == "t"


def test_a_cause_that_was_read_keeps_the_facts_that_only_a_newer_version_knows():
    """FLT-12: it is grouped by those that are known, and written back as it was."""
    fact = {"code": "refused", "facts": {"detail": "no " * 200, "advice": "call us"}}
    newer = cause_in(fact)
    assert newer.code is Code.REFUSED
    assert newer.as_json() == fact
    assert group_of(newer) == group_of(refusal(detail="no " * 200))
    assert newer.digest != refusal(detail="no " * 200).digest
    kept = newer.shortened()
    assert (kept.code, kept.facts["advice"]) == (Code.REFUSED, "call us")
    assert kept.digest == newer.digest


REQUIRED = [(code, name) for code in Code for name in sorted(FACTS[code])]


@pytest.mark.parametrize(("code", "missing"), REQUIRED)
def test_a_cause_that_was_read_without_a_fact_of_its_code_is_an_unknown_one(code, missing):
    """FLT-12: code that knows a `Code` counts on its facts."""
    why = DECLINED.as_json()
    facts = {name: why if name == "why" else "x" for name in FACTS[code]}
    assert cause_in({"code": code.value, "facts": facts}).code is code
    fact = {"code": code.value, "facts": {"renamed": facts.pop(missing), **facts}}
    unknown = cause_in(fact)
    assert not isinstance(unknown.code, Code)
    assert unknown.as_json() == fact
    assert root_of(unknown) is unknown
    assert group_of(unknown).startswith(code)
    assert words_of(unknown).startswith(code)
    assert unknown.digest == cause_in(fact).digest


@pytest.mark.parametrize("why", [None, "no", {}, {"code": 7, "facts": {}}, {"code": "refused"}])
def test_a_cause_within_another_that_is_none_is_a_missing_fact(why):
    """FLT-12."""
    unknown = cause_in({"code": "step-failed", "facts": {"step": "pay", "why": why}})
    assert root_of(unknown) is unknown
    assert words_of(unknown) == group_of(unknown) == "step-failed"


@pytest.mark.parametrize(
    "facts", [{"detail": "card declined", "advice": "call us"}, {"text": "card declined"}]
)
def test_an_undo_because_of_a_step_is_readable_whatever_facts_its_cause_has(facts):
    """FLT-12: as it is when the step itself has the cause."""
    why = cause_in({"code": "refused", "facts": facts})
    undone = cause_in({"code": "step-failed", "facts": {"step": "pay", "why": why.as_json()}})
    assert undone.code is Code.STEP_FAILED
    assert undone == step_failed("pay", why)
    assert root_of(undone) == why
    assert group_of(undone) == group_of(why)
    assert words_of(undone) == f"pay: {words_of(why)}"


def test_refusals_with_other_words_are_two_groups():
    """OPR-1: a declined card and an unknown address have different remedies."""
    assert group_of(refusal(detail="card declined")) != group_of(refusal(detail="address unknown"))
    assert group_of(refusal(code="declined")) != group_of(refusal(code="unknown"))


def test_the_same_fault_of_two_orders_is_one_group():
    """Ids and times in its text make no difference, nor do case and spaces."""
    one = refusal(detail="Card  declined at 08:15, see 12345678")
    other = refusal(detail="card declined at 09:00, see 87654321")
    assert group_of(one) == group_of(other)


def test_a_service_that_names_a_type_or_code_is_grouped_by_it():
    """Whatever its text says."""
    assert group_of(refusal(code="declined", detail="a")) == group_of(
        refusal(code="declined", detail="b")
    )
    typed = refusal(type="card_error", code="declined", detail="a")
    assert group_of(typed) == "refused: card_error declined"
    assert group_of(refusal(type="card_error")) == "refused: card_error"


@pytest.mark.parametrize(
    ("cause", "name"),
    [
        (refusal(detail="Card declined"), "refused: card declined"),
        (refusal(), "refused"),
        (Cause(Code.CALL_REJECTED, {"detail": "declined"}), "call-rejected: declined"),
        (Cause(Code.TIMED_OUT, {"fault": "503"}), "timed-out: 503"),
        (Cause(Code.TIMED_OUT, {"fault": ""}), "timed-out"),
        (Cause(Code.NOT_BEGUN, {"agent": "bank"}), "not-begun"),
        (
            Cause(
                Code.REQUEST_FAILED,
                {"workflow": "w", "version": 1, "step": "pay", "error": "KeyError 'a'"},
            ),
            "request-failed: keyerror 'a'",
        ),
        (Cause("from-a-newer-version", {"detail": "No"}), "from-a-newer-version: no"),
    ],
)
def test_the_name_of_a_group_is_the_code_and_the_word_of_the_service(cause, name):
    """Its last fault or the error of the workflow, if there is one."""
    assert group_of(cause) == name


@pytest.mark.parametrize(
    "long",
    [
        refusal(detail="no " * 200),
        refusal(detail=" " * 290 + "x" * 300),
        refusal(code="y" * 400),
        refusal(detail="x" * 190 + " y"),
    ],
)
def test_a_step_that_keeps_a_shortened_cause_is_in_the_group_of_its_alert(long):
    """The alert has the whole cause, the row of the order the shortened one."""
    name = group_of(long)
    assert group_of(long.shortened()) == name
    assert len(name) <= MAX_NAME
    assert name == name.strip()


def test_the_name_of_a_group_can_be_typed_and_shown():
    """Whatever the service said."""
    assert group_of(refusal(code="a\x00b\nc")).isprintable()


def test_an_undo_because_of_a_step_is_grouped_with_the_failure_of_that_step():
    """UND-1: it has the same cause."""
    undone = step_failed("pay", DECLINED)
    assert undone.code is Code.STEP_FAILED
    assert root_of(undone) == DECLINED
    assert group_of(undone) == group_of(DECLINED)
    assert root_of(DECLINED) is DECLINED


def length_of(cause):
    """The length of the facts in a row."""
    return utf16_units(exact_json.write(cause.facts))


def test_a_short_cause_is_kept_as_it_is():
    """Up to the limit."""
    space = MAX_LENGTH - length_of(refusal())
    short = refusal(detail="x" * space)
    assert short.shortened() is short
    assert refusal(detail="x" * (space + 1)).shortened().facts["digest"]


TEXTS = ["x", '"', "\\", "\n", "\x01", "\U0001f9a0", "\ud800"]


@pytest.mark.parametrize("character", TEXTS)
@pytest.mark.parametrize(
    "others",
    [{}, {"type": "t" * 90, "code": "c" * 90}, {"type": "t" * 500, "code": "c" * 300}],
    ids=["alone", "type and code", "long type and code"],
)
def test_a_step_keeps_no_more_of_a_cause_than_fits_into_its_row(character, others):
    """As much of it as fits, whatever characters the service sends; first `detail` is cut."""
    long = refusal(detail=character * 1000, **others)
    kept = long.shortened()
    per_character = utf16_units(exact_json.write(character)) - 2
    assert MAX_LENGTH - per_character < length_of(kept) <= MAX_LENGTH
    assert kept.facts.keys() == {*long.facts, "digest"}
    assert kept.digest == long.digest
    assert all(long.facts[name].startswith(kept.facts[name]) for name in long.facts)
    assert group_of(kept) == group_of(long)
    assert kept.shortened() is kept
    is_cut = {name for name in long.facts if kept.facts[name] != long.facts[name]}
    assert is_cut == ({"detail", "type"} if len(others.get("code", "")) > 200 else {"detail"})


def test_of_the_other_texts_the_longest_is_cut():
    """Numbers stay as they are."""
    facts = {"workflow": "w", "version": 1, "step": "pay", "function": "f", "error": "x" * 500}
    long = Cause(Code.CONDITION_FAILED, facts)
    kept = long.shortened()
    assert {**kept.facts, "error": facts["error"]} == {**facts, "digest": long.digest}
    assert length_of(kept) == MAX_LENGTH


def test_detail_is_cut_before_a_longer_text():
    """The type says more, in fewer words."""
    kept = refusal(detail="d" * 100, type="t" * (MAX_LENGTH - 100)).shortened()
    assert kept.facts["type"] == "t" * (MAX_LENGTH - 100)
    assert "d" * len(kept.facts["detail"]) == kept.facts["detail"]
    assert len(kept.facts["detail"]) < 100


def test_a_digest_is_never_cut():
    """Of a cause that a newer app kept, with a fact that has no room."""
    newer = Cause("later", {"digest": "of-the-whole", "more": ["x" * MAX_LENGTH]})
    assert newer.shortened().facts["digest"] == newer.digest == "of-the-whole"


def test_a_refusal_may_have_all_optional_facts():
    """Those that the service named, and the digest of a whole cause."""
    facts = {"detail": "no", "type": "card", "code": "expired", "digest": "d"}
    assert Cause(Code.REFUSED, facts).code is Code.REFUSED


def test_a_shortened_cause_is_known_again_by_its_digest():
    """Two texts that differ behind the kept characters stay two."""
    one, other = (refusal(detail="x" * MAX_LENGTH + end) for end in "ab")
    assert one.shortened().digest == one.digest
    assert one.shortened().shortened().digest == one.digest
    assert one.digest != other.shortened().digest
    assert refusal(detail="no").digest != Cause(Code.CALL_REJECTED, {"detail": "no"}).digest
