"""How steps start, expire and complete: one strategy for each kind of step.

A step at a service needs an agent with capacity, and its service is in doubt without an answer. An
external step needs no agent, and nothing of it is in doubt.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

from engine.decisions.drafts import consequence_of
from engine.domain import backoff, verbs
from engine.domain.causes import Cause, Code
from engine.domain.effects import RequestKey
from engine.domain.events import AttemptExpired, HistoryEvent
from engine.domain.states import CoolingDown, Failed, Running, Skipped, UnderWay, UndoFailed
from engine.domain.steps import Step, StepIn, StepKind
from engine.features.external_events import steps as external_events

MAX_OVERLOADED_ATTEMPTS = 3
"""So many attempts at an overloaded agent count as no failure (SUP-3).

The next ones count, so that orders end too whose service hangs for all.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """What an attempt that starts now may need."""

    complete_by: datetime
    started_at: datetime | None = None
    """The time of the start, if the order's deadline cuts the timeout short (SCH-17)."""
    key_for: Callable[[Step], RequestKey | None]
    """Returns the key of a request to the agent that takes the step; None if no agent does."""
    token_for: Callable[[Step], str | None]
    """Returns the token of the step's callback URL; None where there are no such URLs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptReport:
    """What agents have reported of an attempt."""

    is_known: bool = True
    """Whether the reports of the agents could be read."""
    has_begun: bool = False
    """Whether an agent began it; any other attempt counts as no failure."""
    fault: str | None = None
    """The last fault of the attempt; None if none was reported, empty if its text is unknown."""
    by_gateway: bool = False
    """Whether a gateway turned the last call away before it reached the service."""
    agent_overloaded: bool = False
    """Whether the attempt timed out while the agent's calls did so for several orders (AGT-8)."""

    def is_counted(self, attempt: int) -> bool:
        """Whether the attempt of this number counts as a failure (SUP-3).

        The reply to a first attempt may have come, and wait for a scheduler, unless its agent
        reports a fault. The next attempts count without one, since the request itself may end the
        agent's process each time.
        """
        return self.has_begun and (attempt > 1 or self.fault is not None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Expiry:
    """The end of an attempt whose complete-by time has passed."""

    now: datetime
    request: str
    """The id of its request."""
    report: AttemptReport
    is_undo: bool
    """Whether the order is undone."""
    max_unbegun: int
    """After so many requests that no agent began the step is given up (SUP-9)."""


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
        return verbs.start(
            step,
            key,
            start.complete_by,
            callback_token=start.token_for(step),
            started_at=start.started_at,
        )

    def expire(self, step: Step, expiry: Expiry) -> ExpiryOutcome:
        """See `StepStrategy.expire`."""
        if _is_overloaded(step, expiry.report):
            return _overloaded(step, expiry)
        is_counted = expiry.report.is_counted(step.counts.attempts)
        if expiry.is_undo and isinstance(step.state, Running):
            expired = _expired(step, expiry.report, is_counted=is_counted)
            return ExpiryOutcome(verbs.expire_in_undo(step, expiry.now), (expired,), is_counted)
        return _counted(step, expiry) if is_counted else _uncounted(step, expiry)

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
        expired = _expired(step, AttemptReport(), is_counted=True)
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


def _counted(step: Step, expiry: Expiry) -> ExpiryOutcome:
    """Count a failure; at its threshold the step cools down, or fails (SUP-3)."""
    report, failures = expiry.report, step.counts.failures + 1
    cause = Cause(Code.TIMED_OUT, {"fault": report.fault or ""})
    delay = backoff.retry_pause(
        failures,
        timeout=step.rules.timeout,
        longest=step.rules.max_retry_pause,
        request=expiry.request,
    )
    after = verbs.expire(step, expiry.now, cause, delay=delay, operator_decides=report.by_gateway)
    counted = replace(step, counts=replace(step.counts, failures=failures))
    whole = verbs.threshold_reached(counted, cause)
    events = (_expired(step, report, is_counted=True), *_consequence(after, whole))
    return ExpiryOutcome(after, events, is_counted=True)


def _uncounted(step: Step, expiry: Expiry) -> ExpiryOutcome:
    """Count no failure; a step whose requests no agent begins is given up in the end (SUP-9)."""
    has_begun, unbegun = expiry.report.has_begun, _unbegun(step, expiry.report)
    expired = _expired(step, expiry.report, is_counted=False)
    if unbegun > step.counts.unbegun and unbegun >= expiry.max_unbegun:
        cause = verbs.no_agent_began(step, unbegun)
        given_up = verbs.give_up_unbegun(step, expiry.now, cause)
        return ExpiryOutcome(given_up, (expired, *_consequence(given_up, cause)))
    cause = Cause(Code.NOT_BEGUN, {"agent": step.agent})
    if has_begun:
        cause = Cause(Code.TIMED_OUT, {"fault": ""})
    after = verbs.expire_uncounted(step, expiry.now, cause, unbegun=unbegun)
    return ExpiryOutcome(after, (expired,))


def _unbegun(step: Step, report: AttemptReport) -> int:
    """Return how many requests in a row no agent has begun; an unknown one changes nothing."""
    if report.has_begun:
        return 0
    return step.counts.unbegun + report.is_known


def _is_overloaded(step: Step, report: AttemptReport) -> bool:
    return report.agent_overloaded and step.counts.overloaded < MAX_OVERLOADED_ATTEMPTS


def _overloaded(step: Step, expiry: Expiry) -> ExpiryOutcome:
    """Let the step wait again, uncounted and in doubt, since its agent is overloaded (SUP-3)."""
    expired = replace(_expired(step, expiry.report, is_counted=False), is_overloaded=True)
    if expiry.is_undo and isinstance(step.state, Running):
        return ExpiryOutcome(verbs.expire_in_undo(step, expiry.now), (expired,))
    facts = {"agent": step.agent, "fault": expiry.report.fault or ""}
    cause = Cause(Code.AGENT_OVERLOADED, facts)
    return ExpiryOutcome(verbs.expire_overloaded(step, expiry.now, cause), (expired,))


# What both share


def _expired(step: Step, report: AttemptReport, *, is_counted: bool) -> AttemptExpired:
    return AttemptExpired(
        step=step.name,
        attempt=step.counts.attempts,
        agent=step.agent,
        threshold=step.rules.threshold,
        failure=step.counts.failures + 1 if is_counted else None,
        has_begun=report.has_begun,
        fault=report.fault or "",
    )


def _consequence(after: Step, cause: Cause | None) -> tuple[HistoryEvent, ...]:
    """Return what else happened to an expired step: it cools down, or has failed."""
    is_given_up = isinstance(after.state, Failed | Skipped | UndoFailed)
    is_over = is_given_up or isinstance(after.wait, CoolingDown)
    return consequence_of(after, cause) if is_over and cause else ()
