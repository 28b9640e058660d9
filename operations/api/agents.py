"""Operators hold an agent until a time, and release it (OPR-9).

A hold is a row beside the agent's health: schedulers send no requests until it has expired.
"""

import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from engine.domain.errors import InvalidError, RefusedError, UnknownAgentError
from engine.http.models import View
from engine.ports import Clock
from engine.storage.agent_health import (
    OPERATOR,
    AgentHealth,
    AgentHealthLog,
    closed_until,
    hold_of,
    unresponsive_since,
)
from engine.words import CLOCK
from operations.api.requests import HoldRequest, OperatorRequest

log = logging.getLogger(__name__)

LONGEST_HOLD = timedelta(days=30)


class HeldAgent(View):
    """An agent that an operator holds."""

    agent: str
    by: str
    because: str
    """The operator's note."""
    since: datetime
    until: datetime


class Held(HeldAgent):
    """The hold that is in force now."""

    http_status = 202  # as with an order


class Released(View):
    """The agent that may be asked again."""

    http_status = 202  # as with an order
    agent: str


def held_agent(hold: AgentHealth) -> HeldAgent:
    """Return the hold as operators see it."""
    return HeldAgent(
        agent=hold.agent,
        by=hold.held_by or "",
        because=hold.held_because or "",
        since=hold.at,
        until=hold.held_until or hold.at,
    )


def hold_in_words(hold: AgentHealth) -> str:
    """Return the hold in words."""
    until = f"{hold.held_until:{CLOCK}}"
    return f"{hold.held_by} holds {hold.agent} until {until}, because: {hold.held_because}"


def closed_in_words(health: Sequence[AgentHealth], agents: Iterable[str], now: datetime) -> str:
    """Return why those of the agents that make no calls make none; the others are left out."""
    closed = ((agent, closed_until(health, agent, now)) for agent in agents)
    return "; ".join(_closed(health, agent, until, now) for agent, until in closed if until)


def _closed(health: Sequence[AgentHealth], agent: str, until: datetime, now: datetime) -> str:
    if hold := hold_of(health, agent, now):
        return hold_in_words(hold)
    reports = (report for report in health if report.agent == agent)
    if any(report.paused_until and report.paused_until > now for report in reports):
        return f"the service of {agent} asks not to be called, until {until:{CLOCK}}"
    return f"circuit of {agent} open, until {until:{CLOCK}}"


def load_in_words(health: Sequence[AgentHealth], agent: str, now: datetime) -> str:
    """Return the load that the agent's instances report, or since when the agent is silent."""
    lately = [report for report in health if report.agent == agent and report.counts_until > now]
    if hold := hold_of(lately, agent, now):
        return hold_in_words(hold)
    if silent := unresponsive_since(lately, agent, now):
        return f"nobody has taken {agent}'s requests since {silent:{CLOCK}}"
    reports = [report for report in lately if report.is_report]
    if not reports:
        return f"{agent}: not heard of lately"
    running = sum(report.running for report in reports)
    rate = sum(report.rate for report in reports)
    return f"{agent}: {running} calls under way, {rate:.0f} requests begun a second"


@dataclass(frozen=True, kw_only=True)
class AgentPauseService:
    """The operators' actions on agents."""

    agents: Collection[str]
    """The names of this app's agents."""
    agent_health: AgentHealthLog
    clock: Clock

    async def hold(self, name: str, request: HoldRequest) -> Held:
        """Hold an agent until a time; orders wait, and what is under way may end.

        A longer hold takes the place of the present one. Raises `InvalidError` for a time that is
        past or too far away, `RefusedError` if the agent is held for that long already, and
        `UnknownAgentError`.
        """
        now = self.clock()
        self._check(request.until, now)
        present = await self._hold_of(name, now)
        if present and request.until <= (present.held_until or now):
            raise RefusedError(f"{hold_in_words(present)}: to end that sooner, release the agent")
        hold = AgentHealth(
            agent=name,
            instance=OPERATOR,
            at=now,
            paused_until=request.until,
            held_by=request.operator,
            held_because=request.note,
        )
        await self.agent_health.hold(hold)
        about = {"agent": name, "operator": request.operator, "until": str(request.until)}
        log.info("operators.agent_held", extra=about)
        return Held.model_validate(held_agent(hold))

    async def release(self, name: str, request: OperatorRequest) -> Released:
        """Release an agent before the time; orders that waited for it go on.

        Raises `RefusedError` if nobody holds it, and `UnknownAgentError`.
        """
        now = self.clock()
        if await self._hold_of(name, now) is None:
            raise RefusedError(f"no operator holds {name}")
        ended = AgentHealth(
            agent=name,
            instance=OPERATOR,
            at=now,
            paused_until=now,
            held_by=request.operator,
            held_because=request.note,
        )
        await self.agent_health.hold(ended)
        log.info("operators.agent_released", extra={"agent": name, "operator": request.operator})
        return Released(agent=name)

    async def _hold_of(self, name: str, now: datetime) -> AgentHealth | None:
        if name not in self.agents:
            raise UnknownAgentError
        return hold_of(await self.agent_health.since(now), name, now)

    def _check(self, until: datetime, now: datetime) -> None:
        if until <= now:
            raise InvalidError(["until: expected a time that is still to come"])
        if until > now + LONGEST_HOLD:
            raise InvalidError([f"until: expected {LONGEST_HOLD.days} days from now at most"])
