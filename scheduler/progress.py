"""How an order goes on from where it stands: what starts, what waits, how it ends (SCH-3, SCH-5, SCH-10, SCH-12)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from core import endings
from core.changes import Change, HistoryEntry, transition
from core.messages import AgentRequest, BusMessage, WakeUp
from core.orders import Direction, Outcome, ProcessState, Snapshot, Step, StepState
from core.workflow import Results, StepDefinition, Workflow

Room = Mapping[str, str]
"""By capability, the agent that takes a step of it now: one that is healthy and has room (AGT-10)."""

DONE = (StepState.COMPLETED, StepState.SKIPPED)


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """One decision about an order; pure."""

    before: Snapshot
    workflow: Workflow
    room: Room
    instance: str
    entry: HistoryEntry
    """What happened, and when."""

    def proceed(self, after: Snapshot) -> Change | None:
        """Start every step whose turn it is; with nothing left to do, the order has ended.

        None for a pending order of which nothing can be started now: it stays as it is.
        """
        if after.state.direction is Direction.UNDO:
            return self._undo(after)
        if after.in_state(StepState.FAILED):  # no new step starts; the running ones answer or expire (SCH-12)
            return self._start(after, []) if after.running() else endings.give_up(self.before, after, self.entry)
        if all(step.state in DONE for step in after.steps):
            after = after.with_state(process_state=ProcessState.PROCESSED, locked_by=None, complete_by=None)
            return transition(self.before, after, replace(self.entry, event="processed"))
        return self._start(after, _ready(after, self.workflow))

    def _undo(self, after: Snapshot) -> Change | None:
        """Undo what is to be undone, in reverse order of dependence (UND-1), once nothing moves forward any more."""
        if after.in_state(StepState.RUNNING):
            return self._start(after, [])
        ready = _ready_to_be_undone(after, self.workflow)
        if ready or after.running():
            return self._start(after, ready)
        stuck = next((step for step in after.steps if step.undo_failed), None)
        outcome = Outcome.UNDO_INCOMPLETE if stuck else Outcome.UNDONE
        return endings.end(self.before, after, outcome, stuck, self.entry)

    def _start(self, after: Snapshot, ready: Sequence[Step]) -> Change | None:
        """Start those of the steps whose time has come, and for which there is an agent, beside those that run."""
        started = list(self._started(ready))
        after = after.with_steps(*started)
        if not after.running():
            return self._wait(after, ready)
        after = after.with_state(
            process_state=ProcessState.PROCESSING, locked_by=self.instance, complete_by=after.earliest_complete_by()
        )
        starts = [f"{step.name} attempt {step.attempts} started{_where(step)}" for step in started]
        entry = replace(self.entry, detail="; ".join(filter(None, [self.entry.detail, *starts])))
        return transition(self.before, after, entry, messages=self._requests(after, started))

    def _started(self, ready: Sequence[Step]) -> Iterator[Step]:
        """Record attempts as running, before their requests go out (SCH-3)."""
        now = self.entry.at
        for step in ready:
            if (step.not_before is None or step.not_before <= now) and (agent := self.room.get(step.capability)):
                state = StepState.UNDOING if step.state is StepState.UNDOING else StepState.RUNNING
                yield replace(
                    step,
                    agent=agent,
                    state=state,
                    attempts=step.attempts + 1,
                    complete_by=now + step.allowance,
                    not_before=None,
                )

    def _wait(self, after: Snapshot, ready: Sequence[Step]) -> Change | None:
        """Give the order back until a step's time has come, or until an agent has room for it."""
        now, pending = self.entry.at, self.before.state.process_state is ProcessState.PENDING
        until = max(now, min(step.not_before or now for step in ready))
        if pending and until == now:
            return None
        after = after.with_state(process_state=ProcessState.PENDING, locked_by=None, complete_by=None, not_before=until)
        why = "no agent has room" if until == now else f"waits until {until:%H:%M:%S}"
        entry = replace(
            self.entry,
            event="waits" if pending else "put-back",
            detail="; ".join(filter(None, [self.entry.detail, why])),
        )
        wake_up = (WakeUp(order_id=after.order_id).to_bus(),) if until == now else ()
        return transition(self.before, after, entry, messages=wake_up)

    def _requests(self, order: Snapshot, started: Sequence[Step]) -> tuple[BusMessage, ...]:
        results = {step.name: step.result for step in order.steps if step.result is not None}
        return tuple(self._request(order, step, self.workflow.definition(step.name), results) for step in started)

    def _request(self, order: Snapshot, step: Step, definition: StepDefinition, results: Results) -> BusMessage:
        content = definition.request(order.order, results)
        undo = step.state is StepState.UNDOING
        return AgentRequest(
            order_id=order.order_id,
            step=step.name,
            action="undo" if undo else "do",
            operation=(definition.undone_by or "") if undo else definition.does,
            attempt=step.attempts,
            idempotency_key=f"{order.order_id}:{step.name}",  # the same for every attempt, and for the undo (AGT-3)
            issued_at=self.entry.at,
            complete_by=self.entry.at + step.allowance,
            order={**content, "result": step.result or {}} if undo else content,
        ).to_bus(step.agent, time_to_live=step.allowance)


def _where(step: Step) -> str:
    return "" if step.agent == step.capability else f" at {step.agent}"


def _ready(order: Snapshot, workflow: Workflow) -> list[Step]:
    done = {step.name for step in order.in_state(*DONE)}
    waiting = order.in_state(StepState.NOT_STARTED)
    return [step for step in waiting if done.issuperset(workflow.definition(step.name).after)]


def _ready_to_be_undone(order: Snapshot, workflow: Workflow) -> list[Step]:
    """Return the steps that wait to be undone, and on which nothing depends that is not undone yet."""
    owed = {step.name for step in order.steps if step.state is StepState.UNDOING or step.undo_failed}
    waiting = [step for step in order.steps if step.waits_for_undo]
    return [step for step in waiting if owed.isdisjoint(workflow.dependents(step.name))]
