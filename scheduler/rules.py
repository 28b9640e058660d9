"""How an order moves, forward or back: which claim, step or end follows from what is recorded (SCH-1 to SCH-12)."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from core import endings
from core.changes import Change, HistoryEntry, Note, transition
from core.messages import AgentReply, AgentRequest, BusMessage, Correlation
from core.orders import Direction, Outcome, ProcessState, Snapshot, Step, StepState
from core.undo import to_be_undone
from core.workflow import Results, StepDefinition, Workflow, Workflows

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
        entry = self._entry(now, "claimed")
        workflow = self.workflows.find(state.workflow, state.workflow_version)
        if workflow is None:
            reason = f"workflow {state.workflow} version {state.workflow_version} is not part of this app"
            return endings.end(order, order.with_state(reason=reason), Outcome.FAILED, None, entry)
        return self._proceed(order, order, workflow, entry)

    def receive(self, order: Snapshot, correlation: Correlation, reply: AgentReply, now: datetime) -> Change | Note:
        """Act on an agent's reply if it is valid; else only record that it came (SCH-5, SCH-6, SCH-8)."""
        step = order.step(correlation.step)
        workflow = self.workflows.find(order.state.workflow, order.state.workflow_version)
        why_not = (
            self._why_invalid(step, correlation, now) if workflow else "the order's workflow is not part of this app"
        )
        if step is None or workflow is None or why_not:
            return self._refuse(order, correlation, reply, self._entry(now, "reply-refused", why_not))
        match reply.outcome:
            case "completed":
                after, entry = self._completed(order, step, reply, workflow, now)
            case "failed":
                after, entry = self._failed(order, step, reply, now)
            case "notTried":
                return self._put_back(order, step, reply, now)
        if order.state.process_state is ProcessState.PENDING:
            return transition(order, after, entry)  # another step timed out meanwhile: whoever claims the order goes on
        return self._proceed(order, after, workflow, entry)

    def _why_invalid(self, step: Step | None, reply_to: Correlation, now: datetime) -> str:
        """Say why a reply counts for nothing; empty if it counts: current attempt, running, in time (SCH-6)."""
        if step is None:
            return f"the order has no step {reply_to.step}"
        which = f"{step.name} attempt {reply_to.attempt}"
        if reply_to.attempt != step.attempts:
            return f"{which}: the current attempt is {step.attempts}"
        if not step.runs or (reply_to.action == "undo") != (step.state is StepState.UNDOING):
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

    def _completed(
        self, order: Snapshot, step: Step, reply: AgentReply, workflow: Workflow, now: datetime
    ) -> tuple[Snapshot, HistoryEntry]:
        ended = replace(step, complete_by=None, reason=None, in_doubt=False)
        if step.state is StepState.UNDOING:
            entry = self._entry(now, "step-undone", f"{step.name} undone by attempt {step.attempts}")
            return order.with_steps(replace(ended, state=StepState.UNDONE)), entry
        done = replace(ended, state=StepState.COMPLETED, result=_kept(workflow.definition(step.name), reply))
        if order.state.direction is Direction.UNDO:
            done = to_be_undone(done, now)
        return order.with_steps(done), self._entry(
            now, "step-completed", f"{step.name} completed by attempt {step.attempts}"
        )

    def _failed(self, order: Snapshot, step: Step, reply: AgentReply, now: datetime) -> tuple[Snapshot, HistoryEntry]:
        reason = reply.reason or "the agent gave no reason"
        in_doubt = step.in_doubt or reply.in_doubt
        failed = replace(step, state=StepState.FAILED, complete_by=None, reason=reason, in_doubt=in_doubt)
        if order.state.direction is Direction.UNDO and step.state is StepState.RUNNING:
            failed = to_be_undone(failed, now)
        return order.with_steps(failed), self._entry(now, "step-failed", f"{step.name}: {reason}")

    def _put_back(self, order: Snapshot, step: Step, reply: AgentReply, now: datetime) -> Change:
        """Let the step wait: it was not tried, so no failure is counted (AGT-8)."""
        later = now + timedelta(seconds=reply.retry_after or 0)
        state = StepState.UNDOING if step.state is StepState.UNDOING else StepState.NOT_STARTED
        waiting = replace(step, state=state, complete_by=None, not_before=later)
        if order.state.direction is Direction.UNDO and step.state is StepState.RUNNING:
            waiting = to_be_undone(waiting, now)  # an earlier attempt may have done it
        after = order.with_steps(waiting).with_state(
            process_state=ProcessState.PENDING, locked_by=None, complete_by=None, not_before=later
        )
        event = "put-back" if order.state.process_state is ProcessState.PROCESSING else "not-tried"
        return transition(order, after, self._entry(now, event, f"{step.name} was not tried: {reply.reason}"))

    def _proceed(self, before: Snapshot, after: Snapshot, workflow: Workflow, entry: HistoryEntry) -> Change:
        """Start every step whose turn it is; with nothing left to do, the order has ended (SCH-5, SCH-10)."""
        if after.state.direction is Direction.UNDO:
            return self._undo(before, after, workflow, entry)
        if after.in_state(StepState.FAILED):  # no new step starts; the running ones answer or expire (SCH-12)
            return (
                self._go_on(before, after, [], workflow, entry)
                if after.running()
                else endings.give_up(before, after, entry)
            )
        if all(step.state in DONE for step in after.steps):
            after = after.with_state(process_state=ProcessState.PROCESSED, locked_by=None, complete_by=None)
            return transition(before, after, replace(entry, event="processed"))
        return self._go_on(before, after, _ready(after, workflow), workflow, entry)

    def _undo(self, before: Snapshot, after: Snapshot, workflow: Workflow, entry: HistoryEntry) -> Change:
        """Undo what is to be undone, in reverse order of dependence (UND-1), once nothing moves forward any more."""
        if after.in_state(StepState.RUNNING):
            return self._go_on(before, after, [], workflow, entry)
        ready = _ready_to_be_undone(after, workflow)
        due = [step for step in ready if step.not_before is None or step.not_before <= entry.at]
        if due or after.running():
            return self._go_on(before, after, due, workflow, entry)
        if ready:
            return _wait(before, after, min(step.not_before for step in ready if step.not_before), entry)
        stuck = next((step for step in after.steps if step.undo_failed), None)
        return endings.end(before, after, Outcome.UNDO_INCOMPLETE if stuck else Outcome.UNDONE, stuck, entry)

    def _go_on(
        self, before: Snapshot, after: Snapshot, ready: Sequence[Step], workflow: Workflow, entry: HistoryEntry
    ) -> Change:
        """Start these steps, beside those that run."""
        started = [_start(step, entry.at) for step in ready]
        after = after.with_steps(*started)
        after = after.with_state(
            process_state=ProcessState.PROCESSING, locked_by=self.instance, complete_by=after.earliest_complete_by()
        )
        starts = [f"{step.name} attempt {step.attempts} started" for step in started]
        entry = replace(entry, detail="; ".join([entry.detail, *starts] if entry.detail else starts))
        return transition(before, after, entry, messages=_requests(after, started, workflow, entry.at))

    def _entry(self, now: datetime, event: str, detail: str = "") -> HistoryEntry:
        return HistoryEntry(at=now, actor=f"scheduler/{self.instance}", event=event, detail=detail)


def _wait(before: Snapshot, after: Snapshot, until: datetime, entry: HistoryEntry) -> Change:
    """Let the order wait for the time at which a slow call can no longer take effect (UND-2)."""
    after = after.with_state(process_state=ProcessState.PENDING, locked_by=None, complete_by=None, not_before=until)
    return transition(before, after, replace(entry, event="put-back", detail="waits until no call can take effect"))


def _ready(order: Snapshot, workflow: Workflow) -> list[Step]:
    done = {step.name for step in order.in_state(*DONE)}
    waiting = order.in_state(StepState.NOT_STARTED)
    return [step for step in waiting if done.issuperset(workflow.definition(step.name).after)]


def _ready_to_be_undone(order: Snapshot, workflow: Workflow) -> list[Step]:
    """Return the steps that wait to be undone, and on which nothing depends that is not undone yet."""
    owed = {step.name for step in order.steps if step.state is StepState.UNDOING or step.undo_failed}
    waiting = [step for step in order.steps if step.waits_for_undo]
    return [step for step in waiting if owed.isdisjoint(workflow.dependents(step.name))]


def _start(step: Step, now: datetime) -> Step:
    """Record the attempt as running before its request goes out (SCH-3)."""
    state = StepState.UNDOING if step.state is StepState.UNDOING else StepState.RUNNING
    return replace(step, state=state, attempts=step.attempts + 1, complete_by=now + step.allowance, not_before=None)


def _kept(definition: StepDefinition, reply: AgentReply) -> dict[str, Any]:
    """Return what of the service's answer the workflow wants to keep (UND-3)."""
    return {name: value for name, value in (reply.result or {}).items() if name in definition.keeps}


def _requests(order: Snapshot, started: Sequence[Step], workflow: Workflow, now: datetime) -> tuple[BusMessage, ...]:
    results = {step.name: step.result for step in order.steps if step.result is not None}
    return tuple(_request(order, step, workflow.definition(step.name), results, now) for step in started)


def _request(order: Snapshot, step: Step, definition: StepDefinition, results: Results, now: datetime) -> BusMessage:
    content = definition.request(order.order, results)
    undo = step.state is StepState.UNDOING
    return AgentRequest(
        order_id=order.order_id,
        step=step.name,
        action="undo" if undo else "do",
        operation=(definition.undone_by or "") if undo else definition.does,
        attempt=step.attempts,
        idempotency_key=f"{order.order_id}:{step.name}",  # the same for every attempt, and for the undo (AGT-3)
        issued_at=now,
        complete_by=now + step.allowance,
        order={**content, "result": step.result or {}} if undo else content,
    ).to_bus(step.agent, time_to_live=step.allowance)
