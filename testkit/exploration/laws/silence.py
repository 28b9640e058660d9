"""Laws about requests to silent agents, and about the orders that wait for them."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from engine.decisions.transitions import Transition
from engine.domain.causes import Code
from engine.domain.events import StepFailed, StepStarted, UndoRequested
from engine.domain.states import AtWork
from engine.storage.agent_health import AgentHealth
from testkit.exploration.driving import Handler
from testkit.exploration.laws.facts import health_in
from testkit.exploration.laws.registry import COMMIT, DECISION, law
from testkit.exploration.violations import demand
from testkit.exploration.world import World


def _silences(handler: Handler) -> dict[str, AgentHealth]:
    """Return the records of silent agents in the handler's last reading."""
    looks = [rows for answer in handler.log if (rows := health_in(answer))]
    found = looks[-1] if looks else []
    return {row.agent: row for row in found if row.unresponsive_since}


def _pause(since: datetime, at: datetime) -> timedelta:
    """Return the pause after a finding: a quarter of the silence, from a second to two minutes."""
    return min(max((at - since) / 4, timedelta(seconds=1)), timedelta(minutes=2))


@law("SUP-10", at=DECISION)
def few_requests_at_a_silent_agent(world: World, handler: Handler, transition: Transition) -> None:
    """A silent agent gets one probe request at a time, after a growing pause."""
    silences = _silences(handler)
    for event in transition.entry.events:
        record = silences.get(event.agent) if isinstance(event, StepStarted) else None
        if record is None or record.unresponsive_since is None:
            continue
        probe = record.at + _pause(record.unresponsive_since, record.at)
        at = transition.entry.at
        demand(
            at >= probe, f"{record.agent} is silent, but gets a request too soon, at {at} (SUP-10)"
        )
        own = transition.after.order_id
        others = [request for request in _open_at(world, record.agent, at) if own not in request]
        demand(
            not others,
            f"{record.agent} is silent, but has more than one request: {others} (SUP-10)",
        )


def _open_at(world: World, agent: str, now: datetime) -> Iterator[str]:
    """Yield the requests at an agent whose time is not up."""
    for part in world.parts():
        order = part.order()
        for step in order.in_state(AtWork) if order else ():
            if step.agent == agent and not step.is_expired(now, world.deployed.tolerance):
                yield f"{part.order_id}:{step.name}"


@law("SUP-9", at=DECISION)
def given_up_for_silence_alone(world: World, handler: Handler, transition: Transition) -> None:
    """A claim ends a step only after its agents were silent, and the order waited, for too long."""
    before, bound = transition.before, world.deployed.max_silence
    if before is None or handler.job.kind == "sweep":
        return
    for event in transition.entry.events:
        if not isinstance(event, StepFailed) or event.cause.code is not Code.NO_AGENT_BEGAN:
            continue
        step, at = before.step(event.step), transition.entry.at
        agents = world.deployed.offers[step.rules.capability] if step else ()
        known = _silences(handler)
        times = [known[agent].unresponsive_since if agent in known else at for agent in agents]
        since = max(before.derived.ready_since, *(time or at for time in times))
        demand(at - since > bound, f"{event.step} failed too soon, after {at - since} (SUP-9)")


@law("SUP-9", at=COMMIT)
def no_undo_for_a_silent_agent(_: World, transition: Transition) -> None:
    """No order is undone because no agent began its step."""
    for event in transition.entry.events:
        asks = isinstance(event, UndoRequested) and event.cause.code is Code.NO_AGENT_BEGAN
        demand(not asks, "the order is undone because no agent began its step (SUP-9)")
