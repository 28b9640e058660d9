"""Restore an order from a copy into a store that has no row of it (OPR-11).

Events after the copy are unknown. So each step that may have been tried, done or undone since is in
doubt. Its request is sent again with the same key, or an operator decides (AGT-3, AGT-12).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from engine.decisions.drafts import NextVersion
from engine.declarations.business import AgentDefinition
from engine.domain.derive import as_of, changed
from engine.domain.effects import Doubt, RequestKey
from engine.domain.events import Restored
from engine.domain.orders import OrderAggregate
from engine.domain.states import AtWork, Failed, NothingToUndo, Skipped, UndoFailed, Undone
from engine.domain.steps import Step
from engine.domain.verbs import doubt_since_copy
from engine.features import late_effects

LEFT_BY_OPERATORS = Failed | UndoFailed | NothingToUndo | Skipped | Undone
"""The states that a step leaves only by an operator's action or by the undo of its order."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Copied:
    """The time of the copy, and the limits of what may have happened since."""

    at: datetime
    agents: Sequence[AgentDefinition]
    clock_tolerance: timedelta


def decide(order: OrderAggregate, copied: Copied, note: str, now: datetime) -> NextVersion:
    """Record the copied order, with the work items that follow from it.

    No message is sent, because polls find the order. The order keeps its age and the time of its
    last change, so that retention and lists treat it as before. An order whose deadline has passed
    since the copy continues without one (SCH-17).
    """
    before = replace(order, derived=replace(order.derived, work_items=()), etag=None)
    after = order
    if not order.has_ended:
        after = order.with_steps(*(_unknown_since(step, copied, now) for step in order.steps))
    # The order may have been over in time, so its deadline is lifted.
    if deadline := order.pending_deadline:
        after = replace(after, deadline=deadline.after_resume(now))
    after = as_of(order.updated_at, changed(before, after, now))
    return NextVersion(before, after, (Restored(copied_at=copied.at, note=note),))


def _unknown_since(step: Step, copied: Copied, now: datetime) -> Step:
    """Return the step in doubt. An external step calls no service, so it is never in doubt."""
    if step.is_external or isinstance(step.state, LEFT_BY_OPERATORS):
        return step
    providers = _providers_of(step, copied.agents)
    key = RequestKey(
        agent=step.agent,
        provider=next(iter(providers)) if len(providers) == 1 else None,
        generation=step.key.generation if step.key else 0,
        known_until=_known_until(step, providers, copied),
        effects_final_at=late_effects.effects_final_at(step, now, copied.clock_tolerance),
    )
    return doubt_since_copy(step, key)


def _known_until(step: Step, providers: set[str], copied: Copied) -> datetime | None:
    """Return the time until which the key is certainly known (AGT-12).

    Returns None if the key is never forgotten.
    """
    may_be_retried = isinstance(step.effect, Doubt) or isinstance(step.state, AtWork)
    if step.key and may_be_retried:
        return step.key.known_until
    if len(providers) > 1:  # nobody knows which of them has the key
        return copied.at
    keys_last = [
        agent.keys_last for agent in _offering(step, copied.agents) if _provider(agent) in providers
    ]
    return min((copied.at + time for time in keys_last if time), default=None)


def _providers_of(step: Step, agents: Sequence[AgentDefinition]) -> set[str]:
    """Return the known providers that may have received requests for the step."""
    if step.key and step.key.provider:
        return {step.key.provider}
    return {_provider(agent) for agent in _offering(step, agents)}


def _offering(step: Step, agents: Sequence[AgentDefinition]) -> list[AgentDefinition]:
    return [agent for agent in agents if agent.offers == step.rules.capability]


def _provider(agent: AgentDefinition) -> str:
    return agent.provider or agent.name
