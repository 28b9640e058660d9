"""The record of silent agents (SUP-10)."""

from unittest.mock import AsyncMock, patch

import pytest

from engine.domain.errors import UnavailableError
from engine.storage.agent_health import OPERATOR, AgentHealth, AgentHealthLog
from supervisor.silence import SilenceRecorder
from testkit.memory import of_columns
from tests.support.builders import NOW, seconds

SINCE = NOW - seconds(60)


@pytest.fixture
def agent_health():
    return AgentHealthLog(of_columns())


def recorder(agent_health, at=NOW, instance="v1"):
    return SilenceRecorder(agent_health=agent_health, instance=instance, clock=lambda: at)


async def recorded(agent_health):
    return [(row.at, row.unresponsive_since) for row in await agent_health.since(SINCE)]


@pytest.mark.proves("SUP-10")
async def test_a_sweep_records_an_agent_once(agent_health):
    """Since the first request that it found; the next finding keeps that time."""
    first = recorder(agent_health)
    await first.record("payment", SINCE, [])
    await first.record("payment", SINCE - seconds(5), [])
    assert await recorded(agent_health) == [(NOW, SINCE)]
    later = NOW + seconds(90)
    health = await agent_health.since(SINCE)
    await recorder(agent_health, later, "v2").record("payment", NOW + seconds(30), health)
    assert await recorded(agent_health) == [(later, SINCE)]


@pytest.mark.proves("OPR-9", "SUP-9")
async def test_after_a_pause_a_silence_begins_anew(agent_health):
    """The time for which an operator paused the agent is no silence."""
    await recorder(agent_health).record("payment", SINCE, [])
    resumed = AgentHealth(
        agent="payment",
        instance=OPERATOR,
        at=NOW + seconds(10),
        paused_until=NOW + seconds(10),
        paused_by="grace",
    )
    health = [*await agent_health.since(SINCE), resumed]
    again = NOW + seconds(20)
    await recorder(agent_health, NOW + seconds(90)).record("payment", again, health)
    assert await recorded(agent_health) == [(NOW + seconds(90), again)]


@pytest.mark.proves("FLT-7")
async def test_a_record_that_cannot_be_written_is_left_to_the_next_sweep(agent_health, caplog):
    """Not to each order of this one."""
    first = recorder(agent_health)
    publish = AsyncMock(side_effect=UnavailableError)
    with patch.object(agent_health, "publish", publish):
        await first.record("payment", SINCE, [])
        await first.record("payment", SINCE, [])
    assert publish.call_count == 1
    assert [record.message for record in caplog.records] == ["supervisor.health_not_published"]
    await recorder(agent_health).record("payment", SINCE, [])
    assert await recorded(agent_health) == [(NOW, SINCE)]
