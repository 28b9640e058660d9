"""The scheduler's decisions about pending orders and agents' replies (SCH-1 to SCH-12)."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from core import compensation, pauses
from core.business import Agent, Payload
from core.changes import Change, Decision, HistoryEntry, NotClaimed, Note, transition
from core.errors import NewerWorkflowError
from core.happenings import (
    Accepted,
    Claimed,
    Happening,
    NotTried,
    PassedOver,
    ReplyRefused,
    StepCompleted,
    StepFailed,
    StepUndone,
    WorkflowChanged,
)
from core.life import Direction, Outcome, ProcessState, StepState, WhyNot
from core.links import Links
from core.messages import AgentReply
from core.orders import MAX_KEPT, Snapshot, Step
from core.workflow import StepDefinition, Workflow, Workflows
from engine.domain.causes import Cause, Code
from scheduler.progress import Progress, Room, no_such_step

TOO_LONG = Cause(Code.RESULT_TOO_LONG, {"limit": MAX_KEPT})
RETIRED = Cause(Code.REPLY_AFTER_RETIREMENT)


@dataclass(frozen=True, kw_only=True, slots=True)
class SchedulerRules:
    """The decisions of one scheduler instance: pure, with the time as an argument."""

    instance: str
    workflows: Workflows
    payload: Payload
    providers: Mapping[str, str]
    """The provider of each agent's service: services of one provider know the same keys."""
    agents: Mapping[str, Agent] = field(default_factory=dict)
    """The declared agents by name: what their services remember, and how long they may take."""
    links: Links | None = None
    """Makes the links by which steps are answered from outside; None where there are none."""
    clock_tolerance: timedelta
    longest_upgrade: timedelta
    """How long an order is left to a newer version of the app (FLT-12).

    It follows an unknown workflow, or a step of it may have been done at an unknown provider.
    """

    def claim(self, order: Snapshot, now: datetime, room: Room) -> Change | NotClaimed:
        """Claim the order and start its ready steps in one write (SCH-2, SCH-3).

        Return the reason instead if the order is not claimed.
        """
        # The clock of the process that changed the order last may be ahead.
        now = max(now, min(order.state.updated_at, now + self.clock_tolerance))
        if why_not := self._why_not(order, now):
            return NotClaimed(why=why_not)
        claimed = [Claimed()] if order.state.process_state is ProcessState.PENDING else []
        entry = self._entry(now, *claimed)
        workflow = self.workflows.find(order.state.workflow, order.state.workflow_version)
        if workflow is None:
            return self._end_of_retired(order, entry)
        progress = self._progress(order, workflow, entry, room)
        change = progress.proceed(order)
        if change is None:
            return NotClaimed(why=_why_nothing_starts(order, progress))
        return _noting_workflow_changes(change, workflow)

    def _why_not(self, order: Snapshot, now: datetime) -> WhyNot | None:
        """Return why the order may not be claimed, whatever room there is; None if it may."""
        state = order.state
        if why_not := order.why_not_now(now):
            return why_not
        if not self.can_claim(state.workflow, state.workflow_version, now - state.waits_since):
            return WhyNot.UNKNOWN_WORKFLOW
        return None

    def can_claim(self, workflow: str, version: int, waited: timedelta) -> bool:
        """Whether this app may claim orders on this workflow version (FLT-12).

        An order on an unknown version waits `longest_upgrade` for a newer app; then it is ended.
        """
        known = self.workflows.find(workflow, version) is not None or self.workflows.was_retired(
            workflow, version
        )
        return known or waited > self.longest_upgrade

    def _end_of_retired(self, order: Snapshot, entry: HistoryEntry) -> Change | NotClaimed:
        """Give up an order whose workflow is not part of this app."""
        state = order.state
        if order.at_work():  # they answer or expire first (SCH-12)
            return NotClaimed(why=WhyNot.RUNS)
        facts = {"workflow": state.workflow, "version": state.workflow_version}
        after = order.with_state(cause=Cause(Code.WORKFLOW_RETIRED, facts))
        outcome = Outcome.UNDO_INCOMPLETE if state.direction is Direction.UNDO else Outcome.FAILED
        return compensation.end(order, after, outcome, None, entry)

    def receive(
        self, order: Snapshot, reply: AgentReply, now: datetime, room: Room, agent: str
    ) -> Decision:
        """Act on a valid reply; record any other one as refused (SCH-5, SCH-6, SCH-8).

        `agent` is the agent whose queue delivered the reply. Raises `NewerWorkflowError` for a
        valid reply on which only a newer version of the app can act (FLT-12).
        """
        step = order.step(reply.step)
        workflow = self.workflows.find(order.state.workflow, order.state.workflow_version)
        definition = workflow.definition(reply.step) if workflow else None
        why_not = self._why_invalid(step, reply, agent, now) or self._why_useless(order, reply)
        if why_not:
            refused = ReplyRefused(step=reply.step, attempt=reply.attempt, cause=why_not)
            return self._refuse(order, reply, agent, self._entry(now, refused))
        if step is None or workflow is None or definition is None:
            raise NewerWorkflowError
        answered, entry = self._answered(step, reply, definition, now)
        if order.state.direction is Direction.UNDO and step.state is StepState.RUNNING:
            # The undo was requested while the step ran.
            answered = compensation.to_be_undone(answered)
        elif answered.state is StepState.SKIPPED:
            entry = entry.also(PassedOver(step=step.name))
        after = order.with_steps(answered)
        if order.state.process_state is ProcessState.PENDING:
            # Another step timed out meanwhile: the next claim proceeds.
            return transition(order, after, entry)
        return self._progress(order, workflow, entry, room).proceed(after)

    def _why_invalid(
        self, step: Step | None, reply: AgentReply, agent: str, now: datetime
    ) -> Cause | None:
        """Return why a reply is invalid; None if it is valid (SCH-6).

        A valid reply belongs to the current attempt of a running step, comes from the agent that
        was asked, and is in time.
        """
        if step is None:
            return Cause(Code.REPLY_FOR_UNKNOWN_STEP, {"step": reply.step})
        which = {"step": step.name, "attempt": reply.attempt}
        if reply.attempt != step.attempts:
            return Cause(Code.REPLY_OUTDATED, {**which, "current": step.attempts})
        if agent != step.agent:
            asked = {"agent": agent, "expected": step.agent}
            return Cause(Code.REPLY_FROM_OTHER_AGENT, which | asked)
        if not step.runs or (reply.action == "undo") != (step.state is StepState.UNDOING):
            return Cause(Code.REPLY_NOT_AWAITED, {**which, "state": str(step.state)})
        if step.expired(now, self.clock_tolerance):
            return Cause(Code.REPLY_LATE, which)
        return None

    def _why_useless(self, order: Snapshot, reply: AgentReply) -> Cause | None:
        """Return why no version of the app can use a valid reply; None if one can."""
        name, version = order.state.workflow, order.state.workflow_version
        workflow = self.workflows.find(name, version)
        if workflow is None:
            return RETIRED if self.workflows.was_retired(name, version) else None
        return None if workflow.definition(reply.step) else no_such_step(workflow, reply.step)

    def _refuse(self, order: Snapshot, reply: AgentReply, agent: str, entry: HistoryEntry) -> Note:
        content = f"{agent} {reply.request_id} {reply.outcome}{reply.reason}{reply.result}"
        digest = hashlib.sha256(content.encode()).hexdigest()[:12]
        return Note(
            note_id=f"reply-{reply.attempt}-{digest}",
            order_id=order.order_id,
            version=order.state.version,
            entry=entry,
        )

    def _answered(
        self, step: Step, reply: AgentReply, definition: StepDefinition, now: datetime
    ) -> tuple[Step, HistoryEntry]:
        match reply.outcome:
            case "completed" if _is_too_long(step, _kept(definition, reply)):
                return self._too_long(step, now)
            case "completed":
                return self._completed(step, reply, definition, now)
            case "failed":
                return self._failed(step, reply, now)
            case _ if reply.accepted:
                return self._accepted(step, reply, now)
            case _:
                return self._not_tried(step, reply, now)

    def _completed(
        self, step: Step, reply: AgentReply, definition: StepDefinition, now: datetime
    ) -> tuple[Step, HistoryEntry]:
        ended = replace(
            step, complete_by=None, answer_by=None, uncounted=0, cause=None, in_doubt=False
        )
        if step.state is StepState.UNDOING:
            entry = self._entry(now, StepUndone(step=step.name, attempt=step.attempts))
            return replace(ended, state=StepState.UNDONE), entry
        done = replace(ended, state=StepState.COMPLETED, result=_kept(definition, reply))
        return done, self._entry(now, StepCompleted(step=step.name, attempt=step.attempts))

    def _failed(self, step: Step, reply: AgentReply, now: datetime) -> tuple[Step, HistoryEntry]:
        """Return the step as failed, for good if its service remembers refusals (AGT-3)."""
        facts = {"detail": reply.reason or ""}
        known = replace(step, in_doubt=step.in_doubt or reply.in_doubt)
        if reply.for_operator:  # not the service's own answer
            cause = Cause(Code.CALL_REJECTED, facts)
            failed = known.given_up(cause, for_operator=True)
        else:
            to_do = step.state is StepState.RUNNING
            for_good = to_do and self._remembers_refusals(step.agent)
            cause = Cause(Code.REFUSED, {**facts, **reply.identifiers})
            failed = known.refused(cause, for_good=for_good)
        return failed, self._entry(
            now, StepFailed(step=step.name, attempt=step.attempts, cause=cause)
        )

    def _too_long(self, step: Step, now: datetime) -> tuple[Step, HistoryEntry]:
        """Return the step as failed whose result cannot be kept: its service did the work."""
        failed = replace(step, in_doubt=True).refused(TOO_LONG, for_good=False)
        happened = StepFailed(step=step.name, attempt=step.attempts, cause=TOO_LONG)
        return failed, self._entry(now, happened)

    def _remembers_refusals(self, agent: str) -> bool:
        """Whether the agent's service would repeat a refusal for its key."""
        declared = self.agents.get(agent)
        return declared is not None and declared.remembers_refusals

    def _not_tried(self, step: Step, reply: AgentReply, now: datetime) -> tuple[Step, HistoryEntry]:
        """Let the step be requested again after the pause, without a failure (AGT-8, SCH-16).

        An open circuit is that of one instance. Its health row keeps the time for which it makes no
        calls, so that others may be asked before.
        """
        retry_after = timedelta(seconds=0 if reply.circuit_open else reply.retry_after)
        cause = Cause(Code.NOT_ATTEMPTED, {"detail": reply.reason})
        not_tried = NotTried(step=step.name, attempt=step.attempts, cause=cause)
        return _waiting(step, reply, now, retry_after), self._entry(now, not_tried)

    def _accepted(self, step: Step, reply: AgentReply, now: datetime) -> tuple[Step, HistoryEntry]:
        """Let the service be asked again when it says, without a failure (AGT-11).

        The answer is due in the time that the agent declares, counted from the first such reply.
        """
        waiting = _waiting(step, reply, now, timedelta(seconds=reply.retry_after))
        until = waiting.not_before or now
        agent = self.agents.get(step.agent)
        within = (agent and agent.answer_within) or timedelta()
        answer_by = step.answer_by or now + within
        settled = step.settled_at and max(step.settled_at, answer_by + step.late_effect_window)
        asked_again = replace(waiting, answer_by=answer_by, settled_at=settled)
        accepted = Accepted(step=step.name, attempt=step.attempts, agent=step.agent, until=until)
        return asked_again, self._entry(now, accepted)

    def _progress(
        self, before: Snapshot, workflow: Workflow, entry: HistoryEntry, room: Room
    ) -> Progress:
        return Progress(
            before=before,
            workflow=workflow,
            payload=self.payload,
            entry=entry,
            room=room,
            providers=self.providers,
            agents=self.agents,
            links=self.links,
            instance=self.instance,
            clock_tolerance=self.clock_tolerance,
            longest_upgrade=self.longest_upgrade,
        )

    def _entry(self, now: datetime, *happened: Happening) -> HistoryEntry:
        return HistoryEntry(at=now, actor=f"scheduler/{self.instance}", happened=happened)


def _noting_workflow_changes(change: Change, workflow: Workflow) -> Change:
    """Note in the change, once, that step definitions changed while the order was on them."""
    known = (step for step in change.after.steps if step.fingerprint)
    changed = [step for step in known if step.fingerprint != _fingerprint(workflow, step)]
    if not changed:
        return change
    steps = ", ".join(f"{step.name} ({_now(workflow, step)})" for step in changed)
    noted = WorkflowChanged(workflow=workflow.name, version=workflow.version, steps=steps)
    now = (replace(step, fingerprint=_fingerprint(workflow, step)) for step in changed)
    return replace(change, after=change.after.with_steps(*now), entry=change.entry.also(noted))


def _fingerprint(workflow: Workflow, step: Step) -> str:
    """Return the fingerprint of the step's definition; empty if the definition is gone."""
    definition = workflow.definition(step.name)
    return definition.fingerprint if definition else ""


def _now(workflow: Workflow, step: Step) -> str:
    fingerprint = _fingerprint(workflow, step)
    return f"now {fingerprint}" if fingerprint else "gone"


def _why_nothing_starts(order: Snapshot, progress: Progress) -> WhyNot:
    if progress.unreachable(order.ready()):
        return WhyNot.UNKNOWN_PROVIDER
    return WhyNot.NO_ROOM_AT_ITS_OWN if order.needs() in progress.room else WhyNot.NO_ROOM


def _waiting(step: Step, reply: AgentReply, now: datetime, retry_after: timedelta) -> Step:
    """Return the step as it waits for its next attempt; the last one does not count."""
    in_doubt = step.in_doubt or reply.in_doubt
    return replace(pauses.waiting(step, now, retry_after), in_doubt=in_doubt)


def _is_too_long(step: Step, kept: Mapping[str, Any]) -> bool:
    """Whether the result cannot be kept; that of an undo is not."""
    return step.state is StepState.RUNNING and len(json.dumps(kept)) > MAX_KEPT


def _kept(definition: StepDefinition, reply: AgentReply) -> dict[str, Any]:
    """Return the fields of the service's answer that the workflow keeps (UND-3)."""
    return {
        name: value
        for name, value in (reply.result or {}).items()
        if name in definition.result_fields
    }
