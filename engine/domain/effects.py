"""The known effect of a step at its service, according to the attempts that have ended.

A running attempt does not change the effect. The state of the step shows that an attempt runs.
Doubt is a separate value, and never a flag.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from pydantic import AwareDatetime


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestKey:
    """The idempotency key under which requests were sent, and how long it is valid (AGT-3)."""

    agent: str
    """The agent of the last request to do or to undo the step."""
    provider: str | None
    """The provider that may know the key. Only this provider may get further requests. Empty if no
    provider knows the key, for example after an operator chose a retry with a new key. Then any
    provider may do the step."""
    generation: int = 0
    """The number of the key. A new key has the next number."""
    known_until: AwareDatetime | None = None
    """The time until which the provider knows the key. Empty if the provider never forgets keys
    (AGT-12)."""
    effects_final_at: AwareDatetime | None = None
    """The time after which no request to do the step takes effect (UND-2). Empty if the service
    refuses undone keys."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NothingSent:
    """No request was sent, so there is nothing to undo."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NotDone:
    """Requests were sent, and none of those that ended had an effect."""

    key: RequestKey
    refused_for_good: bool = False
    """Whether the service would refuse this key again, so a resubmit needs the next key."""


@dataclass(frozen=True, kw_only=True, slots=True)
class InDoubt:
    """The step may have been done (UND-2)."""

    key: RequestKey
    unanswered: bool = True
    """Whether an attempt ended without an answer."""
    answer_by: AwareDatetime | None = None
    """The time by which the service has to finish the work that it accepted, or None if it accepted
    none (AGT-11)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """The step was done. Its undo needs the result (UND-3)."""

    key: RequestKey
    result: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Answered:
    """An external event completed the step with this result. No request was sent (ANS-1)."""

    result: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class UndoInDoubt:
    """The step was done, and may have been undone since."""

    key: RequestKey
    result: Mapping[str, Any] = field(default_factory=dict)
    unanswered: bool = True
    """Whether an attempt to undo the step ended without an answer."""
    answer_by: AwareDatetime | None = None
    """The time by which the service has to finish the undo that it accepted, or None if it accepted
    none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reverted:
    """The step was undone."""

    key: RequestKey
    result: Mapping[str, Any] | None = None
    """The result of the undone step, or None if it is unknown."""


Sent = NotDone | InDoubt | Done | UndoInDoubt | Reverted
"""The effects of a step for which a request was sent. All of them have a key."""
Doubt = InDoubt | UndoInDoubt
WithResult = Answered | Done | UndoInDoubt | Reverted
"""The effects that may have the result of the step."""
Effect = NothingSent | Answered | Sent

# How they change


def next_generation(key: RequestKey) -> RequestKey:
    """Return the next key, which no provider knows yet (AGT-3)."""
    return replace(key, generation=key.generation + 1, provider=None)


def doubted(effect: Effect, *, unanswered: bool) -> Doubt:
    """Return the effect after an attempt with an uncertain outcome.

    Raises `ValueError` if no request was sent.
    """
    match effect:
        case InDoubt() | UndoInDoubt():
            return replace(effect, unanswered=effect.unanswered or unanswered)
        case Done(key=key, result=result):
            return UndoInDoubt(key=key, result=result, unanswered=unanswered)
        case NotDone(key=key) | Reverted(key=key):
            return InDoubt(key=key, unanswered=unanswered)
    raise ValueError("no request was sent, so nothing is in doubt")


def without_acceptance(effect: Effect) -> Effect:
    """Return the effect after the service gave its final answer to work that it had accepted."""
    match effect:
        case InDoubt(unanswered=False, key=key):
            return NotDone(key=key)
        case UndoInDoubt(unanswered=False, key=key, result=result):
            return Done(key=key, result=result)
    return without_deadline(effect)


def without_deadline(effect: Effect) -> Effect:
    """Return the effect without a time for the final answer. Accepted work may still be done."""
    if isinstance(effect, Doubt) and effect.answer_by:
        return replace(effect, unanswered=True, answer_by=None)
    return effect


def with_late_answer(doubt: Doubt, window: timedelta) -> Doubt:
    """Return the doubt with a later end of late effects: the final answer plus the window.

    If the service refuses undone keys, there is no such end.
    """
    final_at, answer_by = doubt.key.effects_final_at, doubt.answer_by
    if final_at is None or answer_by is None:
        return doubt
    later = max(final_at, answer_by + window)
    return replace(doubt, key=replace(doubt.key, effects_final_at=later))
