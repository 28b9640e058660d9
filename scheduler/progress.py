"""How an order proceeds: which steps start or wait, and how it ends.

Implements SCH-3, SCH-5, SCH-10 and SCH-12.
"""

import re
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from core import compensation
from core.business import Agent, Payload
from core.changes import Change, HistoryEntry, transition
from core.errors import AppError, InvalidError
from core.happenings import Happening, Processed, PutBack, StepStarted, Waits
from core.life import DONE, Direction, Outcome, StepState
from core.links import Links
from core.messages import AgentRequest, BusMessage, faults_of, idempotency_key
from core.orders import ERASED, OUTSIDE, Snapshot, Step
from core.texts import plain
from core.workflow import StepDefinition, Workflow, results_for
from engine.domain.causes import Cause, Code
from engine.words import words_of
from scheduler.judging import JudgingError, is_its_turn, judge

Room = Mapping[str, Sequence[str]]
"""The healthy agents with room for each capability, the preferred first (AGT-10)."""

MAX_BYTES = 192 * 1024
"""Maximum size of a request. Service Bus carries 256 KiB, including its own headers."""

MAX_TOLD = 200
"""Maximum number of characters that are shown of an error."""

NAMES_CODE = (LookupError, AttributeError, NameError, TypeError, ArithmeticError, AppError)
"""Errors whose message names code, such as a key; those of other errors may repeat values."""


class BrokenRequestError(AppError):
    """The workflow cannot make the request of a step; the cause holds no personal data."""

    def __init__(self, cause: Cause) -> None:
        super().__init__(words_of(cause))
        self.cause = cause


def request_of(order: Snapshot, step: Step, progress: "Progress") -> BusMessage:
    """Return the request of an attempt that begins now; raises `BrokenRequestError`."""
    workflow = progress.workflow
    definition = workflow.definition(step.name)
    if definition is None:
        raise BrokenRequestError(no_such_step(workflow, step.name))
    try:
        return _request(order, step, definition, progress.entry.at, progress.links)
    except Exception as error:  # any error of a workflow fails its step
        shown = _shown(error, progress.payload.personal(order.order.payload))
        cause = Cause(Code.REQUEST_FAILED, {**_in(workflow, step.name), "error": shown})
        raise BrokenRequestError(cause) from error


def no_such_step(workflow: Workflow, step: str) -> Cause:
    """Return the cause that the workflow no longer has the step at which an order stands."""
    return Cause(Code.STEP_REMOVED, _in(workflow, step))


def _in(workflow: Workflow, step: str) -> dict[str, Any]:
    return {"workflow": workflow.name, "version": workflow.version, "step": step}


def _request(
    order: Snapshot,
    step: Step,
    definition: StepDefinition,
    issued_at: datetime,
    links: Links | None,
) -> BusMessage:
    content = definition.request(order.order, results_for(order, definition))
    undo = step.state is StepState.UNDOING
    message = AgentRequest(
        order_id=order.order_id,
        step=step.name,
        action="undo" if undo else "do",
        operation=(definition.compensation or "") if undo else definition.operation,
        attempt=step.attempts,
        idempotency_key=idempotency_key(order.order_id, step),
        issued_at=issued_at,
        complete_by=issued_at + step.timeout,
        answer_by=step.answer_by,
        answer_url=links.of(order.order_id, step) if links and not undo else None,
        content={**content, "result": step.result or {}} if undo else content,
    ).to_bus(step.agent, time_to_live=step.timeout)
    if (size := len(message.body.encode())) > MAX_BYTES:
        raise InvalidError([f"it has {size} bytes; a message carries {MAX_BYTES}"])
    return message


def _shown(error: Exception, personal: Iterable[str]) -> str:
    """Return the error's type with its message, or with its source line; nothing personal."""
    if isinstance(error, ValidationError):
        message = "; ".join(faults_of(error))
    elif isinstance(error, NAMES_CODE):
        message = str(error)
    else:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        message = f"at {Path(frame.filename).name}, line {frame.lineno}"
    return plain(f"{type(error).__name__} {_without(personal, message)}", MAX_TOLD)


def _without(personal: Iterable[str], text: str) -> str:
    """Return the text without these values."""
    # The longest first: a value may be the beginning of another one.
    values = sorted(filter(None, personal), key=len, reverse=True)
    if not values:
        return text
    any_value = "|".join(map(re.escape, values))
    return re.sub(rf"(?<!\w)(?:{any_value})(?!\w)", ERASED, text, flags=re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """One pure decision about an order."""

    before: Snapshot
    workflow: Workflow
    payload: Payload
    room: Room
    providers: Mapping[str, str]
    """The provider of each agent's service: services of one provider know the same keys."""
    agents: Mapping[str, Agent] = field(default_factory=dict)
    """The declared agents by name, with how long their services remember a key."""
    links: Links | None = None
    """Makes the links by which steps are answered from outside; None where there are none."""
    instance: str
    clock_tolerance: timedelta
    longest_upgrade: timedelta
    """How long a step of an unknown provider is left to a newer version of the app (FLT-12)."""
    entry: HistoryEntry
    """What happened, and when."""

    def proceed(self, after: Snapshot) -> Change | None:
        """Start every step whose turn it is, or end the order if no step is left.

        Return None if no step of a pending order can start now: the order stays as it is.
        """
        if after.state.direction is Direction.UNDO:
            return self._undo(after)
        judged, happened = self._judged(after)
        return replace(self, entry=self.entry.also(*happened)).go_forward(judged)

    def _judged(self, order: Snapshot) -> tuple[Snapshot, tuple[Happening, ...]]:
        """Judge each step whose turn has come; one that is skipped lets others follow (SCH-14)."""
        happened: list[Happening] = []
        for step in order.steps:  # each comes after those that it depends on
            definition = self.workflow.definition(step.name)
            if definition is None or not is_its_turn(order, step):
                continue
            try:
                judged, told = judge(order, step, definition, self.entry.at)
            except JudgingError as error:
                shown = _shown(error.cause, self.payload.personal(order.order.payload))
                facts = {**_in(self.workflow, step.name), "function": str(error), "error": shown}
                cause = Cause(Code.CONDITION_FAILED, facts)
                judged = step.given_up(cause)
                told = compensation.failures_of(judged, cause)
            order = order if judged is step else order.with_steps(judged)
            happened += told
        return order, tuple(happened)

    def go_forward(self, after: Snapshot) -> Change | None:
        """Start each judged step that may begin; give up after a failure, or end what is done."""
        if after.in_state(StepState.FAILED):
            # No new step starts; agents answer or expire (SCH-12).
            if after.at_work():
                return self._start(after, [])
            return compensation.give_up(self.before, after, self.entry)
        if all(step.state in DONE for step in after.steps):
            return transition(self.before, after.completed(), self.entry.also(Processed()))
        return self._start(after, after.ready())

    def _undo(self, after: Snapshot) -> Change | None:
        """Undo the steps in reverse order of dependence, once none moves forward (UND-1)."""
        if after.still_to_undo():
            return self._start(after, after.ready())
        stuck = next((step for step in after.steps if step.undo_failed), None)
        outcome = Outcome.UNDO_INCOMPLETE if stuck else Outcome.UNDONE
        return compensation.end(self.before, after, outcome, stuck, self.entry)

    def _start(self, after: Snapshot, ready: Sequence[Step]) -> Change | None:
        """Start the ready steps that have an agent and whose time has come."""
        if (unreachable := self.unreachable(ready)) and not self._may_be_upgraded():
            return self._fail(after, [_not_asked_elsewhere(after, step) for step in unreachable])
        started = list(self._started(after, ready))
        requests, failed = self._requests(after, started)
        if failed:
            return self._fail(after, failed)
        if not started and after is self.before:  # a claim that starts nothing writes nothing
            return None
        waiting = (step for step in ready if is_its_turn(after, step))
        judged = (replace(step, unjudged=False) for step in waiting)  # they may begin: it is kept
        after = after.with_steps(*judged).with_steps(*started)
        if not after.running():
            return self._wait(after)
        after = after.claimed_by(self.instance)
        entry = self.entry.also(*map(_start_of, started))
        return transition(self.before, after, entry, messages=tuple(requests))

    def _started(self, order: Snapshot, ready: Sequence[Step]) -> Iterator[Step]:
        """Record attempts as running, before their requests go out (SCH-3)."""
        now = self.entry.at
        for step in ready:
            agent = self._agent_for(step)
            if agent and (order.begins_at(step) or now) <= now:
                state = StepState.UNDOING if step.state is StepState.UNDOING else StepState.RUNNING
                until = now + step.timeout
                yield replace(
                    self.links.with_right(step) if self.links else step,
                    agent=agent,
                    provider=self.providers.get(agent),
                    state=state,
                    attempts=step.attempts + 1,
                    complete_by=until,
                    settled_at=compensation.settled_at(step, now, self.clock_tolerance),
                    key_known_until=self._key_known_until(step, agent),
                    not_before=None,
                    retry_by=None,
                    unjudged=False,
                    cause=None,
                )

    def _key_known_until(self, step: Step, agent: str) -> datetime | None:
        """Return until when the service knows the key of an attempt that begins now (AGT-12).

        If its effect is unknown, the service may have the key from an earlier attempt. If it is
        undone by its key alone, the service has had the key since it was done; there is no such
        time if it was refused.
        """
        if step.effect_unknown or (step.is_undone_by_key and step.key_known_until):
            return step.key_known_until
        declared = self.agents.get(agent)
        keys_last = declared and declared.keys_last
        return self.entry.at + keys_last if keys_last else None

    def _agent_for(self, step: Step) -> str | None:
        """Return the agent that takes the step now; None if no agent has room for it.

        A step that is answered from outside needs no agent, and no room (ANS-1).

        After a fruitless attempt, another agent is preferred. A step that was ever tried stays with
        services that know its idempotency key (AGT-3), and is undone there. This holds also if the
        agent replied that it did not try: the same request may have been delivered twice.
        """
        if step.capability == OUTSIDE:
            return OUTSIDE
        takers = self.room.get(step.capability, ())
        if step.provider:
            takers = [agent for agent in takers if self.providers.get(agent) == step.provider]
        preferred = next(iter(takers), None)
        if step.cause:  # its last attempt came to nothing
            others = (agent for agent in takers if agent != step.agent)
            return next(others, preferred)
        is_known_there = step.state is StepState.UNDOING or step.answer_by is not None
        if is_known_there and step.agent in takers:
            return step.agent
        return preferred

    def unreachable(self, steps: Iterable[Step]) -> list[Step]:
        """Return the steps with a provider that may have done them, and to which no agent leads.

        Another provider would do them a second time, or call them undone without knowing their
        key (AGT-3).
        """
        tried = (step for step in steps if step.provider)
        return [step for step in tried if step.provider not in self._providers_of(step.capability)]

    def _may_be_upgraded(self) -> bool:
        """Whether a newer version of the app may have an agent that this one lacks (FLT-12)."""
        return self.entry.at - self.before.state.waits_since <= self.longest_upgrade

    def _providers_of(self, capability: str) -> set[str]:
        """Return the providers to which the agents of a capability lead."""
        offering = [agent.name for agent in self.agents.values() if agent.offers == capability]
        return {self.providers[name] for name in offering or self.providers}

    def _wait(self, after: Snapshot) -> Change:
        """Give the order back until it is released, a step's time comes or an agent has room."""
        entry = self.entry.also(self._why_it_waits(after))
        return transition(self.before, after.requeued(), entry)

    def _why_it_waits(self, order: Snapshot) -> Waits | PutBack:
        if order.state.is_held:
            return Waits(held_by=order.state.held_by)
        until = order.chosen_time(self.entry.at)
        chosen = any(step.not_before == until and not step.attempts for step in order.ready())
        return Waits(until=until) if until and chosen else PutBack(until=until)

    def _requests(
        self, order: Snapshot, started: Sequence[Step]
    ) -> tuple[list[BusMessage], list[Step]]:
        """Return the requests, and as failed the steps whose request cannot be made or sent.

        That of a step which is answered from outside is made too, but sent to no agent.
        """
        requests, failed = [], []
        for step in started:
            if step.is_forgotten(self.entry.at):
                failed.append(_unasked(order, step, _forgotten(order, step), for_operator=True))
                continue
            try:
                request = request_of(order, step, self)
            except BrokenRequestError as fault:
                failed.append(_unasked(order, step, fault.cause))
                continue
            if not step.waits:
                requests.append(request)
        return requests, failed

    def _fail(self, order: Snapshot, failed: Sequence[Step]) -> Change | None:
        """Proceed by the rules for steps whose request cannot be made or sent (SCH-8, AGT-12)."""
        failures = chain.from_iterable(
            compensation.failures_of(each, each.cause) for each in failed if each.cause
        )
        return replace(self, entry=self.entry.also(*failures)).proceed(order.with_steps(*failed))


def _unasked(order: Snapshot, started: Step, cause: Cause, *, for_operator: bool = False) -> Step:
    """Return the step as failed; the effect of a step whose undo was not requested may stand."""
    before = next(step for step in order.steps if step.name == started.name)
    undo = started.state is StepState.UNDOING
    failed = before.given_up(cause, for_operator=for_operator)
    return replace(failed, unjudged=False, in_doubt=before.effect_unknown or undo)


def _forgotten(order: Snapshot, step: Step) -> Cause:
    """Return the cause of a step whose key is forgotten: an operator finds out (AGT-12)."""
    facts = {
        "agent": step.agent,
        "key": idempotency_key(order.order_id, step),
        "known_until": step.key_known_until and step.key_known_until.isoformat(),
        "is_undo": step.state is StepState.UNDOING,
    }
    return Cause(Code.KEY_FORGOTTEN, facts)


def _not_asked_elsewhere(order: Snapshot, step: Step) -> Step:
    """Return the step as failed whose provider is gone: an operator finds out there (AGT-3)."""
    facts = {"provider": step.provider, "is_undo": step.state is StepState.UNDOING}
    cause = Cause(Code.PROVIDER_GONE, facts)
    return replace(_unasked(order, step, cause, for_operator=True), in_doubt=True)


def _start_of(step: Step) -> StepStarted:
    """Return the history event of an attempt that begins; raises `ValueError` unless it runs."""
    if step.complete_by is None:
        raise ValueError(f"step {step.name} does not run")
    return StepStarted(
        step=step.name,
        attempt=step.attempts,
        capability=step.capability,
        agent=step.agent,
        complete_by=step.complete_by,
        undo=step.state is StepState.UNDOING,
        round=step.round or None,
    )
