"""How an order moves forward: which claim, step or end follows from what is recorded (SCH-1 to SCH-8)."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from core import alerts
from core.changes import Change, HistoryEntry, Note, transition
from core.messages import AgentReply, AgentRequest, BusMessage, Correlation
from core.orders import Outcome, ProcessState, Snapshot, Step, StepState
from core.workflow import Workflow, Workflows

DONE = (StepState.COMPLETED, StepState.SKIPPED)


@dataclass(frozen=True, kw_only=True, slots=True)
class SchedulerRules:
    """The decisions of one scheduler instance; pure: the time is an argument, and nothing is read or sent."""

    instance: str
    workflows: Workflows
    clock_tolerance: timedelta

    def claim(self, order: Snapshot, now: datetime) -> Change | None:
        """Take a pending order that nobody holds, and start what can be started, in one write (SCH-2, SCH-3)."""
        state = order.state
        if state.process_state is not ProcessState.PENDING or state.locked_by is not None or state.not_before > now:
            return None
        workflow = self.workflows.find(state.workflow, state.workflow_version)
        if workflow is None:
            reason = f"workflow {state.workflow} version {state.workflow_version} is not part of this app"
            return self._give_up(order, order, None, reason, now)
        return self._proceed(order, order, workflow, self._entry(now, "claimed"))

    def receive(self, order: Snapshot, correlation: Correlation, reply: AgentReply, now: datetime) -> Change | Note:
        """Act on an agent's reply if it is valid; else only record that it came (SCH-5, SCH-6, SCH-8)."""
        step = order.step(correlation.step)
        workflow = self.workflows.find(order.state.workflow, order.state.workflow_version)
        why_not = self._why_invalid(step, correlation, now)
        if step is None or workflow is None or why_not:
            return self._refuse(order, correlation, reply, self._entry(now, "reply-refused", why_not))
        match reply.outcome:
            case "completed":
                return self._complete(order, step, reply, workflow, now)
            case "failed":
                reason = reply.reason or "the agent gave no reason"
                failed = replace(step, state=StepState.FAILED, complete_by=None, reason=reason)
                return self._give_up(order, order.with_steps(failed), failed, reason, now)
            case "notTried":
                return self._put_back(order, step, reply, now)

    def _why_invalid(self, step: Step | None, reply_to: Correlation, now: datetime) -> str:
        """Say why a reply counts for nothing; empty if it counts: current attempt, running, in time (SCH-6)."""
        if step is None:
            return f"the order has no step {reply_to.step}"
        which = f"{step.name} attempt {reply_to.attempt}"
        if reply_to.attempt != step.attempts:
            return f"{which}: the current attempt is {step.attempts}"
        if step.state is not StepState.RUNNING or reply_to.action != "do":
            return f"{which}: the step is {step.state}"
        if step.expired(now, self.clock_tolerance):
            return f"{which}: it came after the complete-by time"
        return ""

    def _refuse(self, order: Snapshot, correlation: Correlation, reply: AgentReply, entry: HistoryEntry) -> Note:
        digest = hashlib.sha256(f"{correlation}{reply.outcome}{reply.reason}{reply.result}".encode()).hexdigest()[:12]
        return Note(
            note_id=f"reply-{correlation.attempt}-{digest}",
            order_id=order.order_id,
            version=order.state.version,
            entry=entry,
        )

    def _complete(self, order: Snapshot, step: Step, reply: AgentReply, workflow: Workflow, now: datetime) -> Change:
        done = replace(step, state=StepState.COMPLETED, complete_by=None, result=reply.result or {}, reason=None)
        entry = self._entry(now, "step-completed", f"{step.name} completed by attempt {step.attempts}")
        return self._proceed(order, order.with_steps(done), workflow, entry)

    def _put_back(self, order: Snapshot, step: Step, reply: AgentReply, now: datetime) -> Change:
        """Let the step wait: it was not tried, so no failure is counted (AGT-8)."""
        after = order.with_steps(replace(step, state=StepState.NOT_STARTED, complete_by=None)).with_state(
            process_state=ProcessState.PENDING,
            locked_by=None,
            complete_by=None,
            not_before=now + timedelta(seconds=reply.retry_after or 0),
        )
        return transition(order, after, self._entry(now, "put-back", f"{step.name} was not tried: {reply.reason}"))

    def _proceed(self, before: Snapshot, after: Snapshot, workflow: Workflow, entry: HistoryEntry) -> Change:
        """Start every step whose predecessors are done; with nothing left to do the order is processed (SCH-5)."""
        if all(step.state in DONE for step in after.steps):
            after = after.with_state(process_state=ProcessState.PROCESSED, locked_by=None, complete_by=None)
            return transition(before, after, replace(entry, event="processed"))
        started = [_start(step, entry.at) for step in _ready(after, workflow)]
        after = after.with_steps(*started)
        after = after.with_state(
            process_state=ProcessState.PROCESSING, locked_by=self.instance, complete_by=after.earliest_complete_by()
        )
        starts = [f"{step.name} attempt {step.attempts} started" for step in started]
        entry = replace(entry, detail="; ".join([entry.detail, *starts] if entry.detail else starts))
        return transition(before, after, entry, messages=_requests(after, started, workflow, entry.at))

    def _give_up(self, before: Snapshot, after: Snapshot, step: Step | None, reason: str, now: datetime) -> Change:
        """Set the order to `Error` and alert an operator (SCH-8, ALR-1)."""
        after = after.with_state(
            process_state=ProcessState.ERROR, locked_by=None, complete_by=None, outcome=Outcome.FAILED, reason=reason
        )
        name = step.name if step else ""
        entry = self._entry(now, "failed", f"{name}: {reason}" if name else reason)
        return transition(before, after, entry, events=(alerts.order_failed(after, name, now),))

    def _entry(self, now: datetime, event: str, detail: str = "") -> HistoryEntry:
        return HistoryEntry(at=now, actor=f"scheduler/{self.instance}", event=event, detail=detail)


def _ready(order: Snapshot, workflow: Workflow) -> list[Step]:
    done = {step.name for step in order.in_state(*DONE)}
    waiting = order.in_state(StepState.NOT_STARTED)
    return [step for step in waiting if done.issuperset(workflow.definition(step.name).after)]


def _start(step: Step, now: datetime) -> Step:
    """Record the attempt as running before its request goes out (SCH-3)."""
    return replace(step, state=StepState.RUNNING, attempts=step.attempts + 1, complete_by=now + step.allowance)


def _requests(order: Snapshot, started: Sequence[Step], workflow: Workflow, now: datetime) -> tuple[BusMessage, ...]:
    results = {step.name: step.result or {} for step in order.in_state(StepState.COMPLETED)}
    return tuple(
        AgentRequest(
            order_id=order.order_id,
            step=step.name,
            attempt=step.attempts,
            idempotency_key=f"{order.order_id}:{step.name}",  # the same for every attempt (AGT-3)
            issued_at=now,
            complete_by=now + step.allowance,
            order=workflow.definition(step.name).request(order.order, results),
        ).to_bus(step.agent, time_to_live=step.allowance)
        for step in started
    )
