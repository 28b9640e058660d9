"""The words of causes for people. Programs do not read them: decisions use the codes.

The text of a cause is `cause.CODE` in the catalogue, with the facts of the cause as its values. A
code whose text depends on a fact has one text for each variant (`_VARIANTS`).
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from engine.domain.causes import Cause, Code, cause_in
from engine.words.catalogue import text, texts
from engine.words.values import TO_THE_MINUTE, all_of, clock, names_of

Facts = Mapping[str, Any]


def words_of(cause: Cause) -> str:
    """Return the cause in words, such as "timed out; last answer: 503".

    For a cause of a newer version, the result is the code, with the text of the service if there is
    one. The same applies to a known code whose facts a newer version has in another form (FLT-12).
    """
    if isinstance(cause.code, Code):
        with suppress(*_OF_ANOTHER_FORM):
            variant = _VARIANTS.get(cause.code, _no_variant)(cause.facts)
            return text(f"cause.{cause.code}{variant}", **_values(cause.facts))
    return ": ".join(filter(None, (cause.code, str(cause.facts.get("detail") or ""))))


_OF_ANOTHER_FORM = (LookupError, TypeError, ValueError, AttributeError)
"""The errors that facts raise if their form is not the one that this version writes."""


def last_answer(fault: str) -> str:
    """Return the part of a sentence about the fault of the last call, or empty without one."""
    if not fault:
        return ""
    is_known = fault.startswith("no answer")
    return text("last-answer.fault" if is_known else "last-answer", fault=fault)


def _no_variant(facts: Facts) -> str:
    return ""


def _undo(facts: Facts) -> str:
    return ".undo" if facts["is_undo"] else ""


def _action(facts: Facts) -> str:
    return f".{facts['action']}"


_VARIANTS: Mapping[Code, Callable[[Facts], str]] = {
    Code.THRESHOLD_REACHED: lambda facts: "" if facts["fault"] else ".no-fault",
    Code.KEY_FORGOTTEN: _undo,
    Code.KEYS_FORGOTTEN: _undo,
    Code.PROVIDER_GONE: _undo,
    Code.FAILED_TOO_OFTEN: lambda facts: ".detail" if facts["detail"] else "",
    Code.CANCELLED: lambda facts: ".customer" if facts["by"] == "customer" else ".operator",
    Code.UNDO_REQUESTED_ALREADY: lambda facts: ".stopped" if facts["has_stopped"] else "",
    Code.NOT_IN_ERROR: _action,
    Code.NO_SUCH_STEP: _action,
    Code.SEVERAL_STEPS: _action,
}
"""For each code, a function from the facts to the suffix of the text's key."""


def _values(facts: Facts) -> dict[str, Any]:
    known = {name: _FORMS[name](fact) for name, fact in facts.items() if name in _FORMS}
    more = {
        "all_steps": all_of(steps) if isinstance(steps := facts.get("steps"), list) else "",
        "last_answer": last_answer(str(facts.get("fault") or "")),
    }
    return {**facts, **more, **known}


def words_of_fault(fault: str | Facts) -> str:
    """Return a fault of an input in words. A fault that a business found is already in words.

    A code that only a newer version knows is shown unchanged, and so is a code with a missing fact.
    """
    if isinstance(fault, str):
        return fault
    words, facts = str(fault["code"]), dict(fault["facts"])
    limits = [facts[name] for name in LIMITS if name in facts]
    values = facts | ({"count": limits[0]} if limits else {})
    with suppress(LookupError):
        words = text(f"fault.{words}", **values)
    return f"{fault['place']}: {words}" if fault["place"] else words


LIMITS = ("min_length", "max_length")
"""The facts that select the singular or plural of a noun."""


def _time(fact: str) -> str:
    return clock(datetime.fromisoformat(fact))


def _why(fact: Facts | None) -> str:
    return words_of(cause_in(fact)) if fact else text("cause.unknown")


def _needed(fact: Mapping[str, list[str]]) -> str:
    return "; ".join(
        text("cause.result-needed.step", steps=names_of(needing), failed=failed)
        for failed, needing in fact.items()
    )


_FORMS: Mapping[str, Callable[[Any], str]] = {
    "due_by": _time,
    "detail": lambda fact: str(fact or "") or text("cause.no-reason"),
    "faults": lambda fact: "; ".join(map(words_of_fault, fact)),
    "known_until": lambda fact: f"{datetime.fromisoformat(fact):{TO_THE_MINUTE}}",
    "needed": _needed,
    "state": lambda fact: texts().get(f"state.{fact}", fact),
    "steps": lambda fact: fact if isinstance(fact, str) else names_of(fact),
    "until": _time,
    "why": _why,
}
"""For each name of a fact that is not a plain value, its form in texts."""
