"""How steps start, expire and complete: one strategy for each kind of step.

A step at a service needs an agent with capacity, and its service is in doubt without an answer. An
external step needs no agent, and nothing of it is in doubt.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Protocol
from zlib import crc32

from engine.decisions.drafts import failure_of
from engine.domain import verbs
from engine.domain.causes import Cause, Code
from engine.domain.effects import RequestKey
from engine.domain.events import AttemptExpired, CooldownStarted, HistoryEvent
from engine.domain.states import CoolingDown, Failed, Running, Skipped, UnderWay, UndoFailed
from engine.domain.steps import Step, StepIn, StepKind
from engine.features.external_events import steps as external_events


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """What an attempt that starts now may need."""

    complete_by: datetime
    key_for: Callable[[Step], RequestKey | None]
    """Returns the key of a request to the agent that takes the step; None if no agent does."""
    token_for: Callable[[Step], str | None]
    """Returns the token of the step's callback URL; None where there are no such URLs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptReport:
    """What agents have reported of an attempt."""

    has_begun: bool = False
    """Whether an agent began it; any other attempt counts as no failure."""
    fault: str | None = None
    """The last fault of the attempt; None if none was reported, empty if its text is unknown."""
    by_gateway: bool = False
    """Whether a gateway turned the last call away before it reached the service."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Expiry:
    """The end of an attempt whose complete-by time has passed."""

    now: datetime
    request: str
    """The id of its request."""
    report: AttemptReport
    is_undo: bool
    """Whether the order is undone."""


@dataclass(frozen=True, slots=True)
class ExpiryOutcome:
    """An expired step as it is now, and what happened to it."""

    step: Step
    events: tuple[HistoryEvent, ...]
    is_counted: bool = False


class StepStrategy(Protocol):
    """How the steps of one kind start, expire and complete."""

    def start(self, step: Step, start: Start) -> StepIn[UnderWay] | None:
        """Record an attempt before its request goes out; None if no agent takes it (SCH-3)."""

    def expire(self, step: Step, expiry: Expiry) -> ExpiryOutcome:
        """Let the step be tried again, or give it up, as its attempt has expired (SUP-3)."""

    def complete(self, step: Step, result: Mapping[str, Any]) -> Step:
        """Complete the step by an event from outside, perhaps before its turn (ANS-2, ANS-6)."""


class ServiceSteps:
    """The strategy of steps that a service does."""

    def start(self, step: Step, start: Start) -> StepIn[UnderWay] | None:
        """See `StepStrategy.start`."""
        key = start.key_for(step)
        if key is None:
            return None
        return verbs.start(step, key, start.complete_by, callback_token=start.token_for(step))

    def expire(self, step: Step, expiry: Expiry) -> ExpiryOutcome:
        """See `StepStrategy.expire`; an attempt that no agent has begun counts as no failure."""
        now, report = expiry.now, expiry.report
        failures = step.counts.failures + report.has_begun
        expired = _expired(step, failures if report.has_begun else None, report.fault or "")
        if expiry.is_undo and isinstance(step.state, Running):
            return ExpiryOutcome(verbs.expire_in_undo(step, now), (expired,), report.has_begun)
        is_repeated = failures > 1 and report.fault is None
        delay = _spread(expiry.request, step.rules.timeout) if is_repeated else None
        if not report.has_begun:
            cause = Cause(Code.NOT_BEGUN, {"agent": step.agent})
            return ExpiryOutcome(verbs.expire_uncounted(step, now, cause, delay=delay), (expired,))
        cause = Cause(Code.TIMED_OUT, {"fault": report.fault or ""})
        after = verbs.expire(step, now, cause, delay=delay, operator_decides=report.by_gateway)
        counted = replace(step, counts=replace(step.counts, failures=failures))
        whole = verbs.threshold_reached(counted, cause)
        return ExpiryOutcome(after, (expired, *_consequence(after, whole)), is_counted=True)

    def complete(self, step: Step, result: Mapping[str, Any]) -> Step:
        """See `StepStrategy.complete`; the service answers over its callback URL."""
        return external_events.complete_by_callback(step, result)


class ExternalSteps:
    """The strategy of steps that an event from outside completes (ANS-1)."""

    def start(self, step: Step, start: Start) -> StepIn[UnderWay]:
        """See `StepStrategy.start`; there is no request."""
        token = start.token_for(step)
        return external_events.await_event(step, start.complete_by, callback_token=token)

    def expire(self, step: Step, expiry: Expiry) -> ExpiryOutcome:
        """See `StepStrategy.expire`; a missing event always counts as a failure (ANS-2)."""
        after = external_events.expire_event(step, expiry.now)
        expired = _expired(step, step.counts.failures + 1)
        return ExpiryOutcome(after, (expired, *_consequence(after, after.cause)), is_counted=True)

    def complete(self, step: Step, result: Mapping[str, Any]) -> Step:
        """See `StepStrategy.complete`."""
        return external_events.complete_by_event(step, result)


STRATEGIES: Mapping[StepKind, StepStrategy] = {
    StepKind.SERVICE: ServiceSteps(),
    StepKind.EXTERNAL: ExternalSteps(),
}


def strategy_of(step: Step) -> StepStrategy:
    """Return the strategy of the step's kind."""
    return STRATEGIES[step.rules.kind]


# What both share


def _expired(step: Step, failure: int | None, fault: str = "") -> AttemptExpired:
    return AttemptExpired(
        step=step.name,
        attempt=step.counts.attempts,
        agent=step.agent,
        threshold=step.rules.threshold,
        failure=failure,
        fault=fault,
    )


def _consequence(after: Step, cause: Cause | None) -> tuple[HistoryEvent, ...]:
    """Return what else happened to an expired step: it cools down, or has failed."""
    if isinstance(after.wait, CoolingDown):
        number, most, until = after.counts.cooldowns, after.rules.max_cooldowns, after.wait.until
        return (CooldownStarted(step=after.name, number=number, most=most, until=until),)
    is_given_up = isinstance(after.state, Failed | Skipped | UndoFailed)
    return failure_of(after, cause) if is_given_up and cause else ()


def _spread(request: str, within: timedelta) -> timedelta:
    """Return the delay of a request that has timed out repeatedly without a reported fault.

    It, or another request, may end the agent's process each time. Requests that come apart do not
    fail together again.
    """
    return within * (crc32(request.encode()) / 2**32)
