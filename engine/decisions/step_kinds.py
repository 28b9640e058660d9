"""The strategies of the kinds of steps: how they start, expire and complete.

A step at a service needs an agent with capacity, and is in doubt after an attempt without an
answer. An external step needs no agent, and is never in doubt.
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

# The next attempts count. Otherwise orders would never end if their service hangs for all of them.
MAX_OVERLOADED_ATTEMPTS = 3
"""The number of attempts at an overloaded agent that count as no failure (SUP-3)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """The arguments of an attempt that starts now."""

    complete_by: datetime
    started_at: datetime | None = None
    """The time of the start, if the order's deadline shortens the timeout (SCH-17)."""
    key_for: Callable[[Step], RequestKey | None]
    """Returns the key for the agent that takes the step, or None if no agent does."""
    token_for: Callable[[Step], str | None]
    """Returns the token of the step's callback URL, or None if there are no such URLs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptReport:
    """The reports of the agents about an attempt."""

    is_known: bool = True
    """Whether the reports of the agents could be read."""
    has_begun: bool = False
    """Whether an agent began the attempt. An attempt that no agent began counts as no failure."""
    fault: str | None = None
    """The last fault of the attempt. None if no fault was reported, and empty if its text is
    unknown."""
    by_gateway: bool = False
    """Whether a gateway rejected the last call before it reached the service."""
    agent_overloaded: bool = False
    """Whether the attempt timed out while the agent's calls timed out for several orders
    (AGT-8)."""

    def is_counted(self, attempt: int) -> bool:
        """Return whether the attempt of this number counts as a failure (SUP-3).

        A first attempt counts only if its agent reported a fault. Later attempts count without a
        fault.
        """
        # The reply to a first attempt may have come, and wait for a scheduler. Later, the request
        # itself may end the agent's process each time, before it can report a fault.
        return self.has_begun and (attempt > 1 or self.fault is not None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Expiry:
    """The end of an attempt whose complete-by time has passed."""

    now: datetime
    request: str
    """The id of the attempt's request."""
    report: AttemptReport
    is_undo: bool
    """Whether the order is being undone."""
    max_unbegun: int
    """The step is given up after this number of consecutive requests that no agent began (SUP-9).
    """


@dataclass(frozen=True, slots=True)
class ExpiryOutcome:
    """An expired step with its new state and its events."""

    step: Step
    events: tuple[HistoryEvent, ...]
    is_counted: bool = False


class StepStrategy(Protocol):
    """How the steps of one kind start, expire and complete."""

    def start(self, step: Step, start: Start) -> StepIn[UnderWay] | None:
        """Record an attempt before its request is sent (SCH-3).

        Returns None if no agent takes the request.
        """

    def expire(self, step: Step, expiry: Expiry) -> ExpiryOutcome:
        """End an expired attempt: the step is tried again or given up (SUP-3)."""

    def complete(self, step: Step, result: Mapping[str, Any]) -> Step:
        """Complete the step by an external event, which may come before its turn (ANS-2, ANS-6)."""


class ServiceSteps:
    """The strategy of steps that a service does."""

    def start(self, step: Step, start: Start) -> StepIn[UnderWay] | None:
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
        if _is_overloaded(step, expiry.report):
            return _overloaded(step, expiry)
        is_counted = expiry.report.is_counted(step.counts.attempts)
        if expiry.is_undo and isinstance(step.state, Running):
            expired = _expired(step, expiry.report, is_counted=is_counted)
            return ExpiryOutcome(verbs.expire_in_undo(step, expiry.now), (expired,), is_counted)
        return _counted(step, expiry) if is_counted else _uncounted(step, expiry)

    def complete(self, step: Step, result: Mapping[str, Any]) -> Step:
        """Complete the step: the service answered through its callback URL."""
        return external_events.complete_by_callback(step, result)


class ExternalSteps:
    """The strategy of steps that an external event completes (ANS-1)."""

    def start(self, step: Step, start: Start) -> StepIn[UnderWay]:
        token = start.token_for(step)
        return external_events.await_event(step, start.complete_by, callback_token=token)

    def expire(self, step: Step, expiry: Expiry) -> ExpiryOutcome:
        """Count a failure: a missing event always counts (ANS-2)."""
        after = external_events.expire_event(step, expiry.now)
        expired = _expired(step, AttemptReport(), is_counted=True)
        return ExpiryOutcome(after, (expired, *_consequence(after, after.cause)), is_counted=True)

    def complete(self, step: Step, result: Mapping[str, Any]) -> Step:
        return external_events.complete_by_event(step, result)


STRATEGIES: Mapping[StepKind, StepStrategy] = {
    StepKind.SERVICE: ServiceSteps(),
    StepKind.EXTERNAL: ExternalSteps(),
}


def strategy_of(step: Step) -> StepStrategy:
    return STRATEGIES[step.rules.kind]


def _counted(step: Step, expiry: Expiry) -> ExpiryOutcome:
    """Count a failure. At its threshold the step cools down, or fails (SUP-3)."""
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
    """Count no failure. A step whose requests no agent begins is given up in the end (SUP-9)."""
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
    """Return the number of consecutive requests that no agent began.

    If it is unknown whether the last request began, the number does not change.
    """
    if report.has_begun:
        return 0
    return step.counts.unbegun + report.is_known


def _is_overloaded(step: Step, report: AttemptReport) -> bool:
    return report.agent_overloaded and step.counts.overloaded < MAX_OVERLOADED_ATTEMPTS


def _overloaded(step: Step, expiry: Expiry) -> ExpiryOutcome:
    """Let the step wait again, uncounted and in doubt, because its agent is overloaded (SUP-3)."""
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
    """Return the further events of an expired step that cools down or has failed."""
    is_given_up = isinstance(after.state, Failed | Skipped | UndoFailed)
    is_over = is_given_up or isinstance(after.wait, CoolingDown)
    return consequence_of(after, cause) if is_over and cause else ()
