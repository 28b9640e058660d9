"""What follows when a step's complete-by time has passed without a valid reply (SUP-3)."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from core import alerts
from core.changes import Change, HistoryEntry, transition
from core.messages import WakeUp
from core.orders import Outcome, ProcessState, Snapshot, Step, StepState


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
        counted = [replace(step, failure_count=step.failure_count + 1, complete_by=None) for step in expired]
        after = order.with_state(failure_count=order.state.failure_count + 1)
        lasting = [step for step in counted if step.failure_count >= step.threshold]
        if lasting:
            return self._give_up(order, after, counted, lasting[0], now)
        return self._ask_again(order, after, counted, now)

    def _ask_again(self, before: Snapshot, after: Snapshot, expired: list[Step], now: datetime) -> Change:
        after = after.with_steps(*(replace(step, state=StepState.NOT_STARTED) for step in expired)).with_state(
            process_state=ProcessState.PENDING,
            locked_by=None,
            not_before=now,
            complete_by=now + max(step.allowance for step in expired),
        )
        counts = [f"{step.name} timed out, failure {step.failure_count} of {step.threshold}" for step in expired]
        wake_up = WakeUp(order_id=before.order_id, steps=tuple(step.name for step in expired)).to_bus()
        return transition(before, after, self._entry(now, "recovered", ", ".join(counts)), messages=(wake_up,))

    def _give_up(self, before: Snapshot, after: Snapshot, expired: list[Step], lasting: Step, now: datetime) -> Change:
        reason = f"{lasting.name} timed out {lasting.failure_count} times: the cause is held to be lasting"
        after = after.with_steps(*(replace(step, state=StepState.FAILED, reason=reason) for step in expired))
        after = after.with_state(
            process_state=ProcessState.ERROR, locked_by=None, complete_by=None, outcome=Outcome.FAILED, reason=reason
        )
        alert = alerts.order_failed(after, lasting.name, now)
        return transition(before, after, self._entry(now, "failed", reason), events=(alert,))

    def _entry(self, now: datetime, event: str, detail: str) -> HistoryEntry:
        return HistoryEntry(at=now, actor=f"supervisor/{self.instance}", event=event, detail=detail)
