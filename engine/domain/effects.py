"""What is known of a step's effect at its service, from the attempts that have ended.

A running attempt is no part of it: the state says that one runs. Doubt is a value, never a flag.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from pydantic import AwareDatetime


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestKey:
    """The idempotency key under which requests were sent, and how long it counts (AGT-3)."""

    agent: str
    """The agent of the last request, to do or to undo the step."""
    provider: str | None
    """The provider that may know the key. Only this provider gets further requests.

    It is absent once an operator found that the provider does not know the key. Then any provider
    may do the step.
    """
    generation: int = 0
    """The number of the key: an operator may have the step done again under the next one."""
    known_until: AwareDatetime | None = None
    """The time until which the provider knows the key; absent if it never forgets (AGT-12)."""
    effects_final_at: AwareDatetime | None = None
    """The time after which no request to do the step takes effect (UND-2).

    It is absent if the service refuses undone keys.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class NothingSent:
    """No request was ever sent, so there is nothing to undo."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NotDone:
    """Requests were sent, and none of those that ended had an effect."""

    key: RequestKey
    refused_for_good: bool = False
    """Whether the service would refuse this key again, so that a resubmit needs the next one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class InDoubt:
    """The step may have been done (UND-2)."""

    key: RequestKey
    unanswered: bool = True
    """Whether an attempt ended without an answer."""
    answer_by: AwareDatetime | None = None
    """When the service has to finish the work that it accepted; None if there is none (AGT-11)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """The step was done with this result, which its undo needs (UND-3)."""

    key: RequestKey
    result: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Answered:
    """An external event completed the step with this result; no request was sent (ANS-1)."""

    result: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class UndoInDoubt:
    """The step was done, and may have been undone since."""

    key: RequestKey
    result: Mapping[str, Any] = field(default_factory=dict)
    unanswered: bool = True
    """Whether an attempt to undo it ended without an answer."""
    answer_by: AwareDatetime | None = None
    """When the service has to finish the undo that it accepted; None if there is none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reverted:
    """The step was undone."""

    key: RequestKey
    result: Mapping[str, Any] | None = None
    """The result of the step that was undone; None if none is known."""


Sent = NotDone | InDoubt | Done | UndoInDoubt | Reverted
"""The effects of a step of which a request was sent, so that there is a key."""
Doubt = InDoubt | UndoInDoubt
WithResult = Answered | Done | UndoInDoubt | Reverted
"""The effects that have the result of the step."""
Effect = NothingSent | Answered | Sent

# How they change


def next_generation(key: RequestKey) -> RequestKey:
    """Return the next key, which no provider knows yet (AGT-3)."""
    return replace(key, generation=key.generation + 1, provider=None)


def doubted(effect: Effect, *, unanswered: bool) -> Doubt:
    """Return the effect after an attempt of which nothing is known for certain."""
    match effect:
        case InDoubt() | UndoInDoubt():
            return replace(effect, unanswered=effect.unanswered or unanswered)
        case Done(key=key, result=result):
            return UndoInDoubt(key=key, result=result, unanswered=unanswered)
        case NotDone(key=key) | Reverted(key=key):
            return InDoubt(key=key, unanswered=unanswered)
    raise ValueError("no request was sent, so nothing is in doubt")


def without_acceptance(effect: Effect) -> Effect:
    """Return the effect after the final answer to what the service had accepted."""
    match effect:
        case InDoubt(unanswered=False, key=key):
            return NotDone(key=key)
        case UndoInDoubt(unanswered=False, key=key, result=result):
            return Done(key=key, result=result)
    return without_deadline(effect)


def without_deadline(effect: Effect) -> Effect:
    """Return the effect when no final answer is awaited; accepted work may still be done."""
    if isinstance(effect, Doubt) and effect.answer_by:
        return replace(effect, unanswered=True, answer_by=None)
    return effect


def with_late_answer(doubt: Doubt, window: timedelta) -> Doubt:
    """Return the doubt whose late effects end after the answer, by as much as the window.

    If the service refuses undone keys, there is no such end.
    """
    final_at, answer_by = doubt.key.effects_final_at, doubt.answer_by
    if final_at is None or answer_by is None:
        return doubt
    later = max(final_at, answer_by + window)
    return replace(doubt, key=replace(doubt.key, effects_final_at=later))
