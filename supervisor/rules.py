"""What follows when a step's complete-by time has passed without a valid reply (SUP-3)."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from core.changes import Change, HistoryEntry, transition
from core.compensation import after_a_failure, to_be_undone
from core.orders import Direction, ProcessState, Snapshot, Step, StepState

LASTING = ": the cause is held to be lasting"


@dataclass(frozen=True, kw_only=True, slots=True)
class SupervisorRules:
    """The decisions of one supervisor instance; pure: the time is an argument, and nothing is read or sent."""

    instance: str
    clock_tolerance: timedelta

    def recover(self, order: Snapshot, now: datetime) -> Change | None:
        """Count the failure of every expired step, once, and ask for another try of just those, or give up.

        A step is given up once its count *reaches* the threshold: with a threshold of 3 it is tried three times.
        """
        expired = [step for step in order.steps if step.expired(now, self.clock_tolerance)]
        if not expired:
            return None
        counted = [_counted(step, order.state.direction, now) for step in expired]
        after = order.with_steps(*counted).with_state(failure_count=order.state.failure_count + 1)
        failing = after.state.direction is Direction.FORWARD and after.in_state(StepState.FAILED)
        entry = self._entry(now, counted, expired)
        if not failing or after.state.process_state is ProcessState.PENDING:
            return _ask_again(order, after, expired, entry)
        return after_a_failure(order, after, replace(entry, event="step-failed"))

    def _entry(self, now: datetime, counted: list[Step], expired: list[Step]) -> HistoryEntry:
        counts = [
            f"{before.name} timed out, failure {before.failure_count + 1} of {before.threshold}"
            f"{_last(before)}{_rest(step, now)}"
            for step, before in zip(counted, expired, strict=True)
        ]
        return HistoryEntry(at=now, actor=f"supervisor/{self.instance}", event="expired", detail=", ".join(counts))


def _counted(step: Step, direction: Direction, now: datetime) -> Step:
    """Return the step after one more failure: it waits for another try, cools down before it, or is given up."""
    reason = f"timed out{_last(step)}"
    failed = replace(step, failure_count=step.failure_count + 1, complete_by=None, in_doubt=True, reason=reason)
    waiting = step.state if step.state is StepState.UNDOING else StepState.NOT_STARTED
    if direction is Direction.UNDO and waiting is StepState.NOT_STARTED:  # it is not tried again
        return to_be_undone(replace(failed, state=waiting))
    if failed.failure_count < step.threshold:
        return replace(failed, state=waiting)
    if step.cooldowns < step.max_cooldowns:
        return replace(
            failed, state=waiting, failure_count=0, cooldowns=step.cooldowns + 1, not_before=now + step.cooldown
        )
    reason = f"{step.name} timed out {failed.failure_count} times{_last(step) or LASTING}"
    return replace(failed, state=StepState.FAILED, reason=reason)


def _last(step: Step) -> str:
    """Return what the agent said of the last call of this attempt, if it said anything."""
    if not step.reason:
        return ""
    return f"; {step.reason}" if step.reason.startswith("no answer") else f"; last answer: {step.reason}"


def _rest(step: Step, now: datetime) -> str:
    rests = step.cooldowns and step.not_before is not None and step.not_before > now
    return f"; cooldown {step.cooldowns} of {step.max_cooldowns}, until {step.not_before:%H:%M:%S}" if rests else ""


def _ask_again(before: Snapshot, after: Snapshot, expired: list[Step], entry: HistoryEntry) -> Change:
    """Give the order back: those that still run keep running, and their replies stay valid (SUP-3)."""
    after = after.with_state(
        process_state=ProcessState.PENDING,
        locked_by=None,
        complete_by=after.claimable_from(entry.at) + max(step.timeout for step in expired),
    )
    was_held = before.state.process_state is ProcessState.PROCESSING
    return transition(before, after, replace(entry, event="recovered") if was_held else entry)
