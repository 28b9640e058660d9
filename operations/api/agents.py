"""Operators pause an agent until a time, and resume it (OPR-9).

A pause is a row beside the agent's health. Schedulers send no requests until it expires.
"""

import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from engine.domain.causes import Cause, Code
from engine.domain.errors import InputFault, InvalidError, RefusedError, UnknownAgentError
from engine.http.models import View
from engine.ports import Clock
from engine.storage.agent_health import (
    OPERATOR,
    AgentHealth,
    AgentHealthLog,
    pause_of,
    requests_from,
    silence_of,
)
from engine.words.catalogue import text
from engine.words.values import clock
from operations.api.requests import OperatorRequest, PauseRequest

log = logging.getLogger(__name__)

LONGEST_PAUSE = timedelta(days=30)


class PausedAgent(View):
    """An agent that an operator has paused."""

    agent: str
    by: str
    because: str
    """The operator's reason."""
    since: datetime
    until: datetime


class AgentPaused(PausedAgent):
    """The pause that is now in effect."""

    http_status = 202  # as with an order


class AgentResumed(View):
    """The agent that gets requests again."""

    http_status = 202  # as with an order
    agent: str


def paused_agent(pause: AgentHealth) -> PausedAgent:
    return PausedAgent(
        agent=pause.agent,
        by=pause.paused_by or "",
        because=pause.paused_because or "",
        since=pause.at,
        until=pause.operator_pause_until or pause.at,
    )


def pause_in_words(pause: AgentHealth) -> str:
    return text(
        "agent.paused",
        by=pause.paused_by,
        agent=pause.agent,
        until=clock(pause.operator_pause_until or pause.at),
        note=pause.paused_because,
    )


def closed_in_words(health: Sequence[AgentHealth], agents: Iterable[str], now: datetime) -> str:
    """Describe why agents get no requests. Agents that get requests are left out."""
    closed = ((agent, requests_from(health, agent, now)) for agent in agents)
    return "; ".join(_closed(health, agent, until, now) for agent, until in closed if until)


def _closed(health: Sequence[AgentHealth], agent: str, until: datetime, now: datetime) -> str:
    if pause := pause_of(health, agent, now):
        return pause_in_words(pause)
    reports = (report for report in health if report.agent == agent)
    if any(report.paused_until and report.paused_until > now for report in reports):
        return text("agent.throttled", agent=agent, until=clock(until))
    if silence := silence_of(health, agent, now):
        return _silent(silence, now)
    return text("agent.circuit-open", agent=agent, until=clock(until))


def _silent(silence: AgentHealth, now: datetime) -> str:
    """Describe since when an agent is silent, and when it gets its next requests (SUP-10)."""
    since, probe = silence.unresponsive_since or silence.at, silence.next_probe
    key = "agent.unresponsive.probe" if probe and probe > now else "agent.unresponsive"
    until = clock(probe) if probe else ""
    return text(key, agent=silence.agent, since=clock(since), probe=until)


def load_in_words(health: Sequence[AgentHealth], agent: str, now: datetime) -> str:
    """Describe the load that the agent's instances report, or its pause or silence."""
    lately = [report for report in health if report.agent == agent and report.counts_until > now]
    if pause := pause_of(lately, agent, now):
        return pause_in_words(pause)
    if silence := silence_of(health, agent, now):
        return _silent(silence, now)
    reports = [report for report in lately if report.is_report]
    if not reports:
        return text("agent.silent", agent=agent)
    running = sum(report.running for report in reports)
    rate = sum(report.rate for report in reports)
    return text("agent.load", agent=agent, running=running, rate=f"{rate:.0f}")


def _paused_already(pause: AgentHealth) -> Cause:
    facts = {
        "agent": pause.agent,
        "by": pause.paused_by,
        "until": str(pause.operator_pause_until),
        "note": pause.paused_because,
    }
    return Cause(Code.AGENT_PAUSED_ALREADY, facts)


@dataclass(frozen=True, kw_only=True)
class AgentPauseService:
    """The operators' actions on agents."""

    agents: Collection[str]
    """The names of this app's agents."""
    agent_health: AgentHealthLog
    clock: Clock

    async def pause(self, name: str, request: PauseRequest) -> AgentPaused:
        """Pause an agent until a time; orders wait, and running steps finish.

        A longer pause replaces the present one. Raises `InvalidError` for a time that is past or
        too far away, `RefusedError` if the agent is already paused for that long, and
        `UnknownAgentError`.
        """
        now = self.clock()
        self._check(request.until, now)
        present = await self._pause_of(name, now)
        if present and request.until <= (present.operator_pause_until or now):
            raise RefusedError(_paused_already(present))
        pause = AgentHealth(
            agent=name,
            instance=OPERATOR,
            at=now,
            paused_until=request.until,
            paused_by=request.operator,
            paused_because=request.note,
        )
        await self.agent_health.pause(pause)
        about = {"agent": name, "operator": request.operator, "until": str(request.until)}
        log.info("operators.agent_paused", extra=about)
        return AgentPaused.model_validate(paused_agent(pause))

    async def resume(self, name: str, request: OperatorRequest) -> AgentResumed:
        """Resume an agent before the end of its pause; waiting orders continue.

        Raises `RefusedError` if no operator paused it, and `UnknownAgentError`.
        """
        now = self.clock()
        if await self._pause_of(name, now) is None:
            raise RefusedError(Cause(Code.AGENT_NOT_PAUSED, {"agent": name}))
        ended = AgentHealth(
            agent=name,
            instance=OPERATOR,
            at=now,
            paused_until=now,
            paused_by=request.operator,
            paused_because=request.note,
        )
        await self.agent_health.pause(ended)
        log.info("operators.agent_resumed", extra={"agent": name, "operator": request.operator})
        return AgentResumed(agent=name)

    async def _pause_of(self, name: str, now: datetime) -> AgentHealth | None:
        if name not in self.agents:
            raise UnknownAgentError
        return pause_of(await self.agent_health.since(now), name, now)

    def _check(self, until: datetime, now: datetime) -> None:
        if until <= now:
            raise InvalidError([InputFault("until", "not-to-come")])
        if until > now + LONGEST_PAUSE:
            raise InvalidError(
                [InputFault("until", "not-within-days", {"days": LONGEST_PAUSE.days})]
            )
