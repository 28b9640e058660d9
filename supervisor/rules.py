"""The decision after a step's complete-by time has passed without a valid reply (SUP-3)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain
from zlib import crc32

from core import pauses
from core.changes import Change, HistoryEntry, transition
from core.compensation import after_a_failure, failures_of, to_be_undone
from core.happenings import (
    CoolsDown,
    Expired,
    Happening,
    Recovered,
)
from core.life import Direction, ProcessState, StepState
from core.messages import request_id_of
from core.orders import OUTSIDE, Snapshot, Step
from engine.domain.causes import Cause, Code
from stores.agent_health import AgentHealth, AttemptFault, fault_of, has_begun, has_spoken


@dataclass(frozen=True, kw_only=True, slots=True)
class SupervisorRules:
    """The decisions of one supervisor instance: pure, with the time as an argument."""

    instance: str
    clock_tolerance: timedelta

    def recover(
        self, order: Snapshot, now: datetime, heard: Sequence[AgentHealth]
    ) -> Change | None:
        """Ask for another try of the expired steps, or give up; None if no step has expired.

        An attempt that an agent has begun counts as one failure; `heard` are the agents' health
        reports. A step is given up once its count *reaches* the threshold: with a threshold of 3 it
        is tried three times. An attempt that no agent has begun is not counted. An answer from
        outside that does not come in time always is.
        """
        expired = order.overdue(now, self.clock_tolerance)
        if not expired:
            return None
        verdicts = [_verdict(order, step, heard, now) for step in expired]
        counted = any(verdict.counts for verdict in verdicts)
        after = order.with_steps(*(verdict.step for verdict in verdicts))
        after = after.with_state(failure_count=order.state.failure_count + counted)
        failing = after.state.direction is Direction.FORWARD and after.in_state(StepState.FAILED)
        happened = tuple(chain.from_iterable(verdict.happened for verdict in verdicts))
        entry = HistoryEntry(at=now, actor=f"supervisor/{self.instance}", happened=happened)
        if not failing or after.state.process_state is ProcessState.PENDING:
            return _ask_again(order, after, expired, entry)
        return after_a_failure(order, after, entry)

    def asked_in_vain(
        self, order: Snapshot, now: datetime, heard: Sequence[AgentHealth]
    ) -> Iterator[tuple[str, datetime]]:
        """Yield the agents of expired steps that have not reported since they were asked, and when.

        `heard` are the agents' health reports.
        """
        for step in order.at_work():
            asked_at = step.started_at
            if (
                asked_at
                and step.expired(now, self.clock_tolerance)
                and not has_spoken(heard, step.agent, asked_at)
            ):
                yield step.agent, asked_at


@dataclass(frozen=True, kw_only=True, slots=True)
class _Verdict:
    """The new state of an expired step, and its history events."""

    step: Step
    expired: Expired
    then: tuple[Happening, ...] = ()

    @property
    def counts(self) -> bool:
        """Whether the attempt counts as a failure."""
        return self.expired.failure is not None

    @property
    def happened(self) -> tuple[Happening, ...]:
        """All history events in their order."""
        return (self.expired, *self.then)


def _verdict(order: Snapshot, step: Step, heard: Sequence[AgentHealth], now: datetime) -> _Verdict:
    """Return the verdict on an expired step; its reason is the fault of this very attempt."""
    if step.waits:
        return _unanswered(step, now)
    waits = StepState.UNDOING if step.state is StepState.UNDOING else StepState.NOT_STARTED
    waiting = replace(step, state=waits, complete_by=None, in_doubt=True)
    request = request_id_of(order.order_id, step)
    fault = fault_of(heard, request)
    verdict = _counted(waiting, fault) if has_begun(heard, request) else _not_begun(step, now)
    if verdict.step.failure_count > 1 and not fault:
        delayed = replace(verdict.step, not_before=now + _apart(request, step.timeout))
        verdict = replace(verdict, step=delayed)
    if order.state.direction is Direction.UNDO and waits is StepState.NOT_STARTED:
        # The order is being undone: the step is not tried again.
        return replace(verdict, step=to_be_undone(waiting))
    if verdict.step.failure_count >= step.threshold:
        return _lasting(verdict, fault, now)
    return verdict


def _unanswered(step: Step, now: datetime) -> _Verdict:
    """Return the verdict on a step that nobody outside has answered in time (ANS-2).

    Nothing was tried, so nothing is in doubt; the step is asked for again, as a reminder.
    """
    count = step.failure_count + 1
    asked = replace(
        step,
        state=StepState.NOT_STARTED,
        complete_by=None,
        failure_count=count,
        cause=Cause(Code.NO_EXTERNAL_EVENT),
    )
    verdict = _Verdict(step=asked, expired=replace(_expired(asked), failure=count))
    return _lasting(verdict, None, now) if count >= step.threshold else verdict


def _not_begun(step: Step, now: datetime) -> _Verdict:
    """Return the verdict on an attempt that no agent has begun: no failure is counted."""
    cause = Cause(Code.NOT_BEGUN, {"agent": step.agent})
    waiting = replace(pauses.waiting(step, now), in_doubt=True, cause=cause)
    return _Verdict(step=waiting, expired=_expired(step))


def _counted(waiting: Step, fault: AttemptFault | None) -> _Verdict:
    """Return the verdict on a failure: the step waits for another try."""
    reported, count = fault.text if fault else "", waiting.failure_count + 1
    cause = Cause(Code.TIMED_OUT, {"fault": reported}).shortened()
    failed = replace(waiting, failure_count=count, uncounted=0, cause=cause)
    return _Verdict(step=failed, expired=replace(_expired(waiting), failure=count, fault=reported))


def _expired(step: Step) -> Expired:
    return Expired(
        step=step.name, attempt=step.attempts, agent=step.agent, threshold=step.threshold
    )


def _apart(request: str, within: timedelta) -> timedelta:
    """Return the delay of a request that has timed out repeatedly without a reported fault.

    It, or another request, may end the agent's process each time. Requests that come apart do not
    fail together again.
    """
    return within * (crc32(request.encode()) / 2**32)


def _lasting(verdict: _Verdict, fault: AttemptFault | None, now: datetime) -> _Verdict:
    """Return the verdict on a step at its threshold: it cools down, or is given up at last."""
    failed = verdict.step
    if failed.cooldowns < failed.max_cooldowns:
        until, number = now + failed.cooldown, failed.cooldowns + 1
        step = replace(failed, failure_count=0, cooldowns=number, not_before=until)
        rest = CoolsDown(step=failed.name, number=number, most=failed.max_cooldowns, until=until)
        return replace(verdict, step=step, then=(rest,))
    facts = {"step": failed.name, "failures": failed.failure_count}
    if failed.capability == OUTSIDE:
        cause = Cause(Code.EXTERNAL_EVENT_MISSING, facts)
    else:
        cause = Cause(Code.THRESHOLD_REACHED, {**facts, "fault": verdict.expired.fault})
    at_door = bool(fault and fault.at_door)
    given_up = failed.given_up(cause, for_operator=at_door)
    return replace(verdict, step=given_up, then=failures_of(given_up, cause))


def _ask_again(
    before: Snapshot, after: Snapshot, expired: Sequence[Step], entry: HistoryEntry
) -> Change:
    """Give the order back; its other running steps and their replies stay valid (SUP-3).

    The next attempt of each step that is tried again has a complete-by time already.
    """
    names = {step.name for step in expired}
    waiting = (step for step in after.waiting() if step.name in names)
    again = (
        replace(step, retry_by=(step.not_before or entry.at) + step.timeout) for step in waiting
    )
    was_handled = before.state.process_state is ProcessState.PROCESSING
    entry = entry.also(Recovered()) if was_handled else entry
    return transition(before, after.with_steps(*again).requeued(), entry)
