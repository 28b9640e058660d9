"""How an order goes on from where it stands: what starts, what waits, how it ends (SCH-3, SCH-5, SCH-10, SCH-12)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from core import endings
from core.business import Payload
from core.changes import Change, HistoryEntry, transition
from core.messages import BusMessage
from core.orders import DONE, MAX_REASON, Direction, Outcome, ProcessState, Snapshot, Step, StepState
from core.workflow import Workflow
from scheduler.requests import BrokenRequestError, request_of

Room = Mapping[str, str]
"""By capability, the agent that takes a step of it now: one that is healthy and has room (AGT-10)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """One decision about an order; pure."""

    before: Snapshot
    workflow: Workflow
    payload: Payload
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
        return self._start(after, after.ready())

    def _undo(self, after: Snapshot) -> Change | None:
        """Undo what is to be undone, in reverse order of dependence (UND-1), once nothing moves forward any more."""
        if after.ready() or after.running():
            return self._start(after, after.ready())
        stuck = next((step for step in after.steps if step.undo_failed), None)
        outcome = Outcome.UNDO_INCOMPLETE if stuck else Outcome.UNDONE
        return endings.end(self.before, after, outcome, stuck, self.entry)

    def _start(self, after: Snapshot, ready: Sequence[Step]) -> Change | None:
        """Start those of the steps whose time has come, and for which there is an agent, beside those that run."""
        started = list(self._started(ready))
        requests, failed = self._requests(after, started)
        if failed:
            return self._fail(after, failed)
        after = after.with_steps(*started)
        if not after.running():
            return self._wait(after)
        after = handled(after, self.instance)
        starts = [f"{_what(step)} attempt {step.attempts} started{_where(step)}" for step in started]
        entry = replace(self.entry, detail="; ".join(filter(None, [self.entry.detail, *starts])))
        return transition(self.before, after, entry, messages=tuple(requests))

    def _started(self, ready: Sequence[Step]) -> Iterator[Step]:
        """Record attempts as running, before their requests go out (SCH-3)."""
        now = self.entry.at
        for step in ready:
            if (step.not_before is None or step.not_before <= now) and (agent := self.room.get(step.capability)):
                state = StepState.UNDOING if step.state is StepState.UNDOING else StepState.RUNNING
                until = now + step.timeout
                yield replace(
                    step,
                    agent=agent,
                    state=state,
                    attempts=step.attempts + 1,
                    complete_by=until,
                    tried_until=until,
                    not_before=None,
                    reason=None,
                )

    def _wait(self, after: Snapshot) -> Change | None:
        """Give the order back until a step's time has come, or an agent has room; unclaimed, it stays as it is."""
        if self.before.state.process_state is ProcessState.PENDING:
            return None
        until = after.claimable_from(self.entry.at)
        why = "no agent has room" if until == self.entry.at else f"waits until {until:%H:%M:%S}"
        entry = replace(self.entry, event="put-back", detail="; ".join(filter(None, [self.entry.detail, why])))
        after = after.with_state(process_state=ProcessState.PENDING, locked_by=None, complete_by=None)
        return transition(self.before, after, entry)

    def _requests(self, order: Snapshot, started: Sequence[Step]) -> tuple[list[BusMessage], list[Step]]:
        """Return the requests, and the steps of which there can be none: those have failed."""
        requests, failed = [], []
        for step in started:
            try:
                requests.append(request_of(order, step, self.workflow, self.payload, self.entry.at))
            except BrokenRequestError as fault:
                failed.append(_unasked(order, step, str(fault)))
        return requests, failed

    def _fail(self, order: Snapshot, failed: Sequence[Step]) -> Change | None:
        """Go on with steps that have failed before anybody was asked; their policy decides (SCH-8)."""
        reasons = [str(step.reason) for step in failed]
        entry = replace(self.entry, detail="; ".join(filter(None, [self.entry.detail, *reasons])))
        return replace(self, entry=entry).proceed(order.with_steps(*failed))


def _unasked(order: Snapshot, started: Step, reason: str) -> Step:
    """Return the step as it failed; what nobody was asked to undo may stand."""
    before = next(step for step in order.steps if step.name == started.name)
    undo = started.state is StepState.UNDOING
    return replace(before, state=StepState.FAILED, reason=reason[:MAX_REASON], in_doubt=before.in_doubt or undo)


def handled(order: Snapshot, instance: str) -> Snapshot:
    """Return the order as this scheduler handles it: due when the first of the steps that run is."""
    return order.with_state(
        process_state=ProcessState.PROCESSING, locked_by=instance, complete_by=order.earliest_complete_by()
    )


def _what(step: Step) -> str:
    return f"undo of {step.name}" if step.state is StepState.UNDOING else step.name


def _where(step: Step) -> str:
    return "" if step.agent == step.capability else f" at {step.agent}"
