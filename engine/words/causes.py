"""The words of causes for people. Nothing reads them: decisions use the codes.

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

    Of a newer version's cause only the code is known, and the text of its service if there is one.
    The same holds for a known code whose facts a newer version has in another form (FLT-12).
    """
    if isinstance(cause.code, Code):
        with suppress(*_OF_ANOTHER_FORM):
            variant = _VARIANTS.get(cause.code, _no_variant)(cause.facts)
            return text(f"cause.{cause.code}{variant}", **_values(cause.facts))
    return ": ".join(filter(None, (cause.code, str(cause.facts.get("detail") or ""))))


_OF_ANOTHER_FORM = (LookupError, TypeError, ValueError, AttributeError)
"""What facts raise that have not the form in which this version writes them."""


def last_answer(fault: str) -> str:
    """Return the addition to a sentence for the fault of the last call; empty if none is known."""
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
"""Returns the end of the key of the text that fits these facts."""


def _values(facts: Facts) -> dict[str, Any]:
    """Return the facts as texts have them."""
    known = {name: _FORMS[name](fact) for name, fact in facts.items() if name in _FORMS}
    more = {
        "all_steps": all_of(steps) if isinstance(steps := facts.get("steps"), list) else "",
        "last_answer": last_answer(str(facts.get("fault") or "")),
    }
    return {**facts, **more, **known}


def words_of_fault(fault: str | Facts) -> str:
    """Return a fault of an input in words; one that a business found is in its own words already.

    A code that only a newer version knows is shown as it is, as is one that lacks a fact here.
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
"""The facts on which the number of a noun depends."""


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
"""How texts have a fact that is no plain value, by its name."""
