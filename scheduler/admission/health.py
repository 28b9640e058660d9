"""The health of the agents, as one process knows it."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from engine.domain.attempts import NotAttemptedReason
from engine.domain.messages import AgentReply, DeferredReply, NotAttemptedReply
from engine.storage.agent_health import AgentHealth

HEALTH_MAX_AGE = timedelta(minutes=1)
"""Up to this age, reports about an agent's health are read and remembered."""


def with_reports(
    health: Sequence[AgentHealth], reports: Sequence[AgentHealth], now: datetime
) -> Sequence[AgentHealth]:
    """Return the known health, with these reports in the place of the instances' older ones."""
    if not reports:
        return health
    oldest = now - HEALTH_MAX_AGE
    reporting = {(report.agent, report.instance) for report in reports}
    kept = [
        row
        for row in health
        if row.counts_until > oldest and (row.agent, row.instance) not in reporting
    ]
    return [*reports, *kept]


def health_from_reply(reply: AgentReply, agent: str, now: datetime) -> Sequence[AgentHealth]:
    """Return the agent's health from its reply. Empty unless the circuit is open."""
    if not isinstance(reply, NotAttemptedReply | DeferredReply):
        return ()
    if reply.reason is None or not reply.reason.is_circuit_open:
        return ()
    until = now + timedelta(seconds=reply.retry_after)
    report = AgentHealth(
        agent=agent,
        instance=reply.instance,
        at=now,
        open_until=until,
        paused_until=until if reply.reason is NotAttemptedReason.THROTTLED else None,
    )
    return (report,)
