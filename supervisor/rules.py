"""What follows when a step's complete-by time has passed without a valid reply (SUP-3)."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from core import endings
from core.changes import Change, HistoryEntry, transition
from core.messages import WakeUp
from core.orders import Direction, ProcessState, Snapshot, Step, StepState
from core.undo import to_be_undone


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
        if not after.running():
            return endings.give_up(order, after, entry)
        after = after.with_state(complete_by=after.earliest_complete_by())
        return transition(order, after, replace(entry, event="step-failed"))

    def _entry(self, now: datetime, counted: list[Step], expired: list[Step]) -> HistoryEntry:
        counts = [
            f"{step.name} timed out, failure {before.failure_count + 1} of {step.threshold}{_rest(step, now)}"
            for step, before in zip(counted, expired, strict=True)
        ]
        return HistoryEntry(at=now, actor=f"supervisor/{self.instance}", event="expired", detail=", ".join(counts))


def _counted(step: Step, direction: Direction, now: datetime) -> Step:
    """Return the step after one more failure: it waits for another try, rests before it, or is given up."""
    failed = replace(step, failure_count=step.failure_count + 1, complete_by=None, in_doubt=True)
    lasting = failed.failure_count >= step.threshold
    if lasting and step.rests < step.most_rests:
        failed = replace(failed, failure_count=0, rests=step.rests + 1, not_before=now + step.rest)
    elif lasting:
        reason = f"{step.name} timed out {failed.failure_count} times: the cause is held to be lasting"
        failed = replace(failed, state=StepState.FAILED, reason=reason)
    if step.state is StepState.UNDOING:
        return failed
    if direction is Direction.UNDO:
        return to_be_undone(replace(failed, state=StepState.NOT_STARTED), now)
    return failed if failed.state is StepState.FAILED else replace(failed, state=StepState.NOT_STARTED)


def _rest(step: Step, now: datetime) -> str:
    rests = step.not_before is not None and step.not_before > now
    return f"; rest {step.rests} of {step.most_rests}, until {step.not_before:%H:%M:%S}" if rests else ""


def _ask_again(before: Snapshot, after: Snapshot, expired: list[Step], entry: HistoryEntry) -> Change:
    """Give the order back: those that still run keep running, and their replies stay valid (SUP-3).

    It may be claimed at once, unless all that expired has to rest: then when the first rest is over. Of an order that
    is being undone each step has a time of its own, and none waits for another's.
    """
    names = {step.name for step in expired}
    back = after.state.direction is Direction.UNDO
    waiting = [step for step in after.steps if step.name in names or (back and step.waits_for_undo)]
    not_before = max(entry.at, min(step.not_before or entry.at for step in waiting))
    if before.state.process_state is ProcessState.PENDING:
        not_before = min(not_before, before.state.not_before)
    after = after.with_state(
        process_state=ProcessState.PENDING,
        locked_by=None,
        not_before=not_before,
        complete_by=not_before + max(step.allowance for step in expired),
    )
    wake_up = WakeUp(order_id=before.order_id, steps=tuple(step.name for step in expired)).to_bus()
    was_held = before.state.process_state is ProcessState.PROCESSING
    entry = replace(entry, event="recovered") if was_held else entry
    return transition(before, after, entry, messages=(wake_up,) if not_before <= entry.at else ())
