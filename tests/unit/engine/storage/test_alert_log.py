"""The alerts as they are kept: each event once, and a row for each condition."""

from dataclasses import replace
from unittest.mock import AsyncMock, patch

import pytest

from engine.alerts import events as alerts
from engine.alerts.conditions import Condition, ConditionStatus
from engine.alerts.events import Acknowledgement
from engine.decisions.transitions import OperatorEvent
from engine.domain.errors import ConflictError
from engine.storage.alert_log import AlertLog
from testkit.memory import of_columns
from tests.support.builders import NOW, refusal, seconds

STALLS = Condition(
    key="submissions", reason=refusal("why"), since=NOW, first=NOW, last=NOW, count=1, raised_at=NOW
)
WORD = Acknowledgement(by="grace", at=NOW, note="I look")


def event(revision, status=ConditionStatus.CHANGED, **changes):
    """The event of a revision of the condition."""
    late = NOW + seconds(revision)
    return alerts.stalled(
        replace(STALLS, revision=revision, status=status, last=late, raised_at=late, **changes)
    )


@pytest.mark.proves("SUP-7", "ALR-1")
@pytest.mark.parametrize("order", [(1, 2, 3), (3, 1, 2), (2, 3, 1), (1, 3, 3)])
async def test_all_events_of_a_condition_are_one_alert_with_the_latest(order):
    """In whatever order they come; each process has seen none of them."""
    table = of_columns()
    for revision in order:
        await AlertLog(table).record(event(revision))
    (alert,) = await AlertLog(table).newest(10)
    assert alert.event == event(3)


async def test_who_has_acknowledged_an_alert_stays_when_its_condition_changes():
    """It is the same alert."""
    log = AlertLog(of_columns())
    await log.record(event(1))
    (alert,) = await log.newest(10)
    await log.acknowledge(alert.key, WORD)
    await log.record(event(2))
    (alert,) = await log.newest(10)
    assert (alert.acknowledged, alert.event.data["revision"]) == (WORD, 2)


async def test_an_alert_is_acknowledged_though_its_condition_changes_meanwhile():
    """What is told as acknowledged is so; after many conflicts nothing is told (bugs2 53)."""
    table = of_columns()
    log = AlertLog(table)
    await log.record(event(1))
    (alert,) = await log.newest(10)
    submit = table.submit

    async def behind(partition, operations):
        table.submit = submit
        await AlertLog(table).record(event(2))
        return await submit(partition, operations)

    with patch.object(table, "submit", behind):
        assert await log.acknowledge(alert.key, WORD) == WORD
    (alert,) = await log.newest(10)
    assert (alert.acknowledged, alert.event) == (WORD, event(2))
    assert await log.acknowledge(alert.key, replace(WORD, by="ada")) == WORD
    await log.record(event(1, first=NOW + seconds(3600)))
    other = next(found for found in await log.newest(10) if found.acknowledged is None)
    with (
        patch.object(table, "submit", AsyncMock(side_effect=ConflictError)),
        pytest.raises(ConflictError),
    ):
        await log.acknowledge(other.key, WORD)


async def test_two_beginnings_of_a_condition_are_two_alerts():
    """The first one may have been seen to long ago."""
    log = AlertLog(of_columns())
    await log.record(event(1))
    await log.record(event(1, first=NOW + seconds(3600)))
    assert len(await log.newest(10)) == 2


async def test_an_event_that_another_process_writes_at_the_same_time_overwrites_no_later_one():
    """The row is read again; after many conflicts the event is given back."""
    table = of_columns()
    log = AlertLog(table)
    await log.record(event(1))
    submit, late = table.submit, AlertLog(table)

    async def behind(partition, operations):
        table.submit = submit
        await late.record(event(3))
        return await submit(partition, operations)

    with patch.object(table, "submit", behind):
        await log.record(event(2))
    (alert,) = await log.newest(10)
    assert alert.event == event(3)
    with (
        patch.object(table, "submit", AsyncMock(side_effect=ConflictError)),
        pytest.raises(ConflictError),
    ):
        await log.record(event(4))


async def test_a_repeat_costs_no_operation():
    """A process remembers what it has recorded, up to a number."""
    table = of_columns()
    log = AlertLog(table)
    alert = OperatorEvent(event_id="e", type="t", subject="s", at=NOW, data={})
    await log.record(alert)
    with (
        patch("engine.storage.alert_log.REMEMBERED", 10),
        patch.object(table, "submit", AsyncMock(wraps=table.submit)) as submit,
    ):
        await log.record(alert)
        assert submit.await_count == 0
        for number in range(10):
            await log.record(replace(alert, event_id=str(number)))
        submit.reset_mock()
        await log.record(alert)
        assert submit.await_count == 1
    assert [logged.event.event_id for logged in await log.newest(100)].count("e") == 1


@pytest.mark.parametrize(
    "data", [{"alert": "", "revision": 1}, {"alert": "a", "revision": 0}, {"alert": "a"}]
)
async def test_data_that_only_look_like_a_condition_are_an_alert_of_their_own(data):
    """Others may publish to the topic too."""
    log = AlertLog(of_columns())
    for number in (1, 2):
        await log.record(
            OperatorEvent(
                event_id=f"e{number}", type=alerts.STALLED, subject="s", at=NOW, data=data
            )
        )
    assert len(await log.newest(10)) == 2
