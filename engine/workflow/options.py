"""Checks the options of a step, a workflow or an agent."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, get_args

from engine.declarations.faults import Fault, FaultCode
from engine.domain.deadlines import WhenLate
from engine.domain.submitted_order import OnFailure

KINDS: Mapping[str, Any] = {
    "condition": Callable,
    "start_at": Callable,
    "on_failure": OnFailure,
    "pivot": bool,
    "timeout": timedelta,
    "threshold": int,
    "cooldown": timedelta,
    "max_cooldowns": int,
    "max_retry_pause": timedelta,
    "late_effect_window": timedelta,
    "within": timedelta,
    "attempts": int,
    "when_late": WhenLate,
    "after": Sequence,
    "undo_needs": Sequence,
}
"""The type of each option. Every option may also be None."""


def usable(given: Mapping[str, Any], known: Sequence[str]) -> Mapping[str, Any]:
    """Return the options that have no fault."""
    return {name: value for name, value in given.items() if not any(_of_one(name, value, known))}


def faults_of(given: Mapping[str, Any], known: Sequence[str]) -> Iterator[Fault]:
    """Yield a fault for each option that is unknown or has a value of the wrong type."""
    for name, value in given.items():
        yield from _of_one(name, value, known)


def _of_one(name: str, value: Any, known: Sequence[str]) -> Iterator[Fault]:
    if name not in known:
        yield Fault(FaultCode.OPTION_UNKNOWN, option=name).like(name, known)
    else:
        yield from of_type(name, value, KINDS[name])


def of_type(name: str, value: Any, kind: Any) -> Iterator[Fault]:
    """Yield a fault if the value of an option is neither None nor of this type."""
    if value is not None and not _is_one(value, kind):
        facts = {"expected": _name_of(kind), "given": type(value).__name__}
        yield Fault(FaultCode.OPTION_TYPE, option=name, **facts)


def _is_one(value: Any, kind: Any) -> bool:
    """Whether the value is of this type. A boolean is not a number, and a text is not a list."""
    if kind is Sequence:
        return isinstance(value, Sequence) and not isinstance(value, str)
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _name_of(kind: Any) -> str:
    """Return the name of a type, in the words that authors use."""
    words: Mapping[Any, str] = {Sequence: "list", Callable: "function"}
    return words.get(kind) or " or ".join(one.__name__ for one in get_args(kind) or [kind])
