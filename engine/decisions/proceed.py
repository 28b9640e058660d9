"""How an order continues: its steps start or wait, or it ends (SCH-3, SCH-10, SCH-12, UND-1).

The decision is pure. The time, the capacity of the agents and the workflow are arguments.
"""

# The pattern in an hour, 13 of 23: the next steps

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from types import MappingProxyType

from engine.decisions import conditions
from engine.decisions.drafts import Draft, NextVersion, consequence_of, end
from engine.decisions.requests import (
    BrokenRequestError,
    Personal,
    RequestMaker,
    idempotency_key,
    personal_in,
)
from engine.decisions.step_kinds import Start, strategy_of
from engine.decisions.undo import end_or_undo
from engine.declarations.business import AgentDefinition, Payload
from engine.declarations.workflow import WorkflowDefinition, Workflows
from engine.domain import verbs
from engine.domain.causes import Cause, Code
from engine.domain.effects import RequestKey
from engine.domain.events import HistoryEvent, OrderProcessed, Requeued, StepStarted
from engine.domain.messages import BusMessage
from engine.domain.orders import OrderAggregate
from engine.domain.states import (
    AtWork,
    ConditionPending,
    Deferred,
    UnderWay,
    UndoFailed,
    Undoing,
    UndoPending,
)
from engine.domain.statuses import Outcome
from engine.domain.steps import Step, StepIn
from engine.features import key_generations, late_effects
from engine.features.conditions import condition_met
from engine.features.external_events.callback_urls import CallbackUrls

Capacity = Mapping[str, Sequence[str]]
"""For each capability, the healthy agents with capacity. The preferred agent is first (AGT-10)."""

SilentAgents = Mapping[str, datetime]
"""For each silent agent, the time since which it has not answered requests (SUP-9)."""

NO_SILENT_AGENTS: SilentAgents = MappingProxyType({})


@dataclass(frozen=True, kw_only=True, slots=True)
class Scheduler:
    """One scheduler instance, with the parts of the deployed app that it needs."""

    instance: str
    workflows: Workflows
    payload: Payload
    providers: Mapping[str, str]
    """The provider of each agent's service. Services of the same provider know the same keys."""
    agents: Mapping[str, AgentDefinition] = field(default_factory=dict)
    """The declared agents by name, with the key retention and the time limits of their services."""
    callbacks: CallbackUrls | None = None
    """Makes callback URLs, or None if the app has none."""
    clock_tolerance: timedelta
    version_overlap: timedelta
    """How long an order waits for a newer version of the app (FLT-12). Such an order follows an
    unknown workflow, or a step of it may have been done at an unknown provider."""
    max_silence: timedelta
    """How long an order waits for silent agents before its step is given up (SUP-9)."""

    def agents_of(self, capability: str) -> Sequence[str]:
        offering = [agent.name for agent in self.agents.values() if agent.offers == capability]
        return offering or list(self.providers)

    def providers_of(self, capability: str) -> set[str]:
        return {self.providers[name] for name in self.agents_of(capability)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Proceed:
    """One decision of a scheduler about an order on a known workflow."""

    scheduler: Scheduler
    workflow: WorkflowDefinition
    capacity: Capacity
    silent: SilentAgents = field(default_factory=dict)

    def __call__(self, draft: Draft) -> NextVersion | None:
        """Start every step whose turn it is, or end the order if no step is left.

        Returns None if no step of a pending order can start now. Then the order does not change.
        """
        if draft.order.is_undo:
            return self._undo(draft)
        if draft.order.has_any(ConditionPending):
            draft = conditions.evaluate(draft, self.workflow, self._personal(draft.order))
        return self._go_forward(draft)

    def _go_forward(self, draft: Draft) -> NextVersion | None:
        order = draft.order
        if order.is_finished:
            return draft.but(order.complete(), OrderProcessed()).commit()
        if order.is_stopping and not order.has_any(AtWork):
            return end_or_undo(draft)
        # If it stops, no new step starts; agents answer or expire (SCH-12).
        return self._start(draft)

    def _undo(self, draft: Draft) -> NextVersion | None:
        """Undo the steps in reverse order of dependence, once no step moves forward (UND-1)."""
        if draft.order.still_to_undo():
            return self._start(draft)
        stuck = next(iter(draft.order.in_state(UndoFailed)), None)
        if stuck:
            return end(draft, Outcome.UNDO_INCOMPLETE, stuck.name, stuck.state.cause)
        return end(draft, Outcome.UNDONE, None, draft.order.cause)

    def _start(self, draft: Draft) -> NextVersion | None:
        """Start the ready steps that have an agent and whose start time has come."""
        if (unreachable := self.unreachable(draft.order.ready)) and not self._may_be_newer(draft):
            return self._fail(draft, [(step, _provider_gone(step)) for step in unreachable])
        if unserved := self._unserved(draft):
            given_up = [(it, verbs.no_agent_began(it, it.counts.unbegun)) for it in unserved]
            return self._fail(draft, given_up)
        met = conditions.met(draft.order)
        started = list(self._started(met, draft.now))
        requests, broken = self._requests(draft, met, started)
        if broken:
            return self._fail(draft, broken)
        if not started and draft.order is draft.before:  # nothing is written for nothing
            return None
        after = met.with_steps(*started)
        if not after.has_any(UnderWay):
            return _requeue(draft, after)
        claimed = after.claimed_by(self.scheduler.instance)
        return draft.but(claimed, *map(_started_event, started)).commit(*requests)

    # Attempts

    def _started(self, order: OrderAggregate, now: datetime) -> Iterator[StepIn[UnderWay]]:
        """Record attempts as running before their requests are sent (SCH-3)."""
        for step in order.ready:
            if not order.may_start(step, now):
                continue
            complete_by = _complete_by(order, step, now)
            is_cut_short = complete_by < now + step.rules.timeout
            start = Start(
                complete_by=complete_by,
                started_at=now if is_cut_short else None,
                key_for=partial(self._key, now),
                token_for=self._token,
            )
            if started := strategy_of(step).start(step, start):
                yield started

    def _token(self, step: Step) -> str | None:
        callbacks = self.scheduler.callbacks
        return callbacks.token_for(step) if callbacks else None

    def _key(self, now: datetime, step: Step) -> RequestKey | None:
        """Return the key of an attempt that starts now, or None if no agent has capacity for it."""
        agent = self._agent_for(step)
        if agent is None:
            return None
        declared = self.scheduler.agents.get(agent)
        keys_last = declared.keys_last if declared else None
        tolerance = self.scheduler.clock_tolerance
        return RequestKey(
            agent=agent,
            provider=self.scheduler.providers.get(agent),
            generation=step.key.generation if step.key else 0,
            known_until=key_generations.known_until(step, keys_last, now),
            effects_final_at=late_effects.effects_final_at(step, now, tolerance),
        )

    def _agent_for(self, step: Step) -> str | None:
        """Return the agent that takes the step now, or None if no agent has capacity for it.

        After an attempt without a result, another agent is preferred. A step that was ever tried
        stays with services that know its idempotency key (AGT-3), and is undone there too.
        """
        # This applies even if the agent did not call: the same request may have been delivered
        # twice.
        takers = self._able(step, self.capacity.get(step.rules.capability, ()))
        preferred = next(iter(takers), None)
        if step.cause:
            others = (agent for agent in takers if agent != step.agent)
            return next(others, preferred)
        is_known_there = isinstance(step.state, UndoPending | Deferred) or step.answer_by
        return step.agent if is_known_there and step.agent in takers else preferred

    def _able(self, step: Step, agents: Sequence[str]) -> Sequence[str]:
        """Return the agents whose service knows the step's idempotency key, if the step has one."""
        key = step.key
        if key is None or key.provider is None:
            return agents
        providers = self.scheduler.providers
        return [agent for agent in agents if providers.get(agent) == key.provider]

    def _unserved(self, draft: Draft) -> list[Step]:
        """Return the due steps that are given up, because no agent takes their requests (SUP-9).

        The order has waited longer than `max_silence`, and all agents that may do the step have
        been silent for as long. Pauses, start times and the order's deadline are respected.
        """
        since = draft.now - self.scheduler.max_silence
        if draft.before.derived.ready_since >= since:
            return []
        due = (step for step in draft.order.ready if draft.order.may_start(step, draft.now))
        return [step for step in due if not step.is_external and self._are_silent(step, since)]

    def _are_silent(self, step: Step, since: datetime) -> bool:
        """Return whether all agents that may do the step have been silent since before `since`."""
        agents = self._able(step, self.scheduler.agents_of(step.rules.capability))
        times = [self.silent.get(agent) for agent in agents]
        return bool(times) and all(time is not None and time < since for time in times)

    def unreachable(self, steps: Iterable[Step]) -> list[Step]:
        """Return the steps that were tried at a provider which no agent calls any more."""
        # Another provider would do them twice, or report them as undone without knowing their key
        # (AGT-3).
        tried = ((step, key.provider) for step in steps if (key := step.key) and key.provider)
        providers_of = self.scheduler.providers_of
        return [step for step, known in tried if known not in providers_of(step.rules.capability)]

    def _may_be_newer(self, draft: Draft) -> bool:
        """Return whether a newer version of the app may have the missing agent (FLT-12)."""
        waited = draft.now - draft.before.derived.ready_since
        return waited <= self.scheduler.version_overlap

    # Requests

    def _requests(
        self, draft: Draft, order: OrderAggregate, started: Sequence[StepIn[UnderWay]]
    ) -> tuple[list[BusMessage], list[tuple[Step, Cause]]]:
        """Return the requests, and the steps whose request cannot be made or sent, with causes.

        The question of an external step is made too, but it is sent to no agent.
        """
        ready = {step.name: step for step in order.ready}
        maker = RequestMaker(
            workflow=self.workflow,
            personal=self._personal(order),
            callbacks=self.scheduler.callbacks,
            now=draft.now,
        )
        requests, broken = [], []
        for step in started:
            if key_generations.is_forgotten(step, draft.now):
                broken.append((ready[step.name], _key_forgotten(order, step)))
                continue
            try:
                if isinstance(step.state, AtWork):
                    requests.append(maker.request_of(order, step))
                else:
                    maker.content_of(order, step)
            except BrokenRequestError as fault:
                broken.append((ready[step.name], fault.cause))
        return requests, broken

    def _fail(self, draft: Draft, broken: Sequence[tuple[Step, Cause]]) -> NextVersion | None:
        """Continue by the rules of steps whose request cannot be made or sent (SCH-8, AGT-12)."""
        failed = [_failed(step, cause, draft.now) for step, cause in broken]
        causes = (cause for _, cause in broken)
        events: Iterator[HistoryEvent] = chain.from_iterable(map(consequence_of, failed, causes))
        return self(draft.but(draft.order.with_steps(*failed), *events))

    def _personal(self, order: OrderAggregate) -> Personal:
        return personal_in(order, self.scheduler.payload)


def _complete_by(order: OrderAggregate, step: Step, now: datetime) -> datetime:
    """Return the complete-by time of an attempt that starts now (SCH-17).

    It is never after a deadline that limits attempts.
    """
    complete_by = now + step.rules.timeout
    return min(complete_by, order.attempts_end_by or complete_by)


def _failed(step: Step, cause: Cause, now: datetime) -> Step:
    """Return a step that was not requested, with its failure.

    An operator decides if the step may have been done at a service that no agent can call.
    """
    if isinstance(step.state, ConditionPending):
        step = condition_met(step)
    if cause.code is Code.NO_AGENT_BEGAN:
        return verbs.give_up_unbegun(step, now, cause)
    is_gone = cause.code is Code.PROVIDER_GONE
    decides = is_gone or cause.code is Code.KEY_FORGOTTEN
    return verbs.fail(step, cause, unanswered=is_gone, operator_decides=decides)


def _requeue(draft: Draft, after: OrderAggregate) -> NextVersion:
    """Let the order wait for its release, for a step's start time or for an agent with capacity."""
    return draft.but(after.requeue(), _why_requeued(after, draft.now)).commit()


def _why_requeued(order: OrderAggregate, now: datetime) -> Requeued:
    if order.hold:
        return Requeued(held_by=order.hold.by)
    until = order.next_start(now)
    is_chosen = until is not None and any(
        step.not_before == until and not step.counts.attempts for step in order.ready
    )
    return Requeued(until=until, is_chosen=is_chosen)


def _key_forgotten(order: OrderAggregate, step: Step) -> Cause:
    """Return the cause of a step with a forgotten key, which an operator has to settle (AGT-12)."""
    known_until = step.key.known_until if step.key else None
    facts = {
        "agent": step.agent,
        "key": idempotency_key(order.order_id, step),
        "known_until": known_until.isoformat() if known_until else "",
        "is_undo": isinstance(step.state, Undoing),
    }
    return Cause(Code.KEY_FORGOTTEN, facts)


def _provider_gone(step: Step) -> Cause:
    provider = step.key.provider if step.key else None
    facts = {"provider": provider, "is_undo": isinstance(step.state, UndoPending)}
    return Cause(Code.PROVIDER_GONE, facts)


def _started_event(step: StepIn[UnderWay]) -> StepStarted:
    return StepStarted(
        step=step.name,
        attempt=step.counts.attempts,
        capability=step.rules.capability,
        agent=step.agent,
        complete_by=step.state.complete_by,
        is_undo=isinstance(step.state, Undoing),
        generation=step.key.generation if step.key else 0,
    )
