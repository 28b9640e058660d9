"""What ends is counted beside the orders' way, by minute, and shown for the last hour."""

import asyncio
import logging
from datetime import timedelta
from unittest.mock import Mock

import pytest

from engine.decisions.transitions import HistoryEntry, Transition
from engine.domain.errors import UnavailableError
from engine.domain.statuses import ProcessState
from engine.storage import figures
from engine.storage.figures import Durations, Figures, Tally, figures_of
from functions_alone.tests.support.waiting import eventually
from operations.api.overview import MAX_STEPS
from operations.api.requests import OperatorRequest
from operations.api.retention import erase
from testkit.memory import in_memory
from tests.support.apps import app
from tests.support.builders import NOW, ORDER_ID, PAYLOAD, answer, orders, scheduler, seconds, some
from tests.support.memory_world import World

LATER = NOW + seconds(42)


def took(*milliseconds):
    return Durations(count=len(milliseconds), total=sum(milliseconds), longest=max(milliseconds))


def claimed():
    return scheduler.claim(orders.new(), NOW).after


def answered(outcome="completed", after=1.25):
    """The change by which the only step of an order ends, and the order with it."""
    return scheduler.receive(claimed(), answer(outcome=outcome, detail="no"), NOW + seconds(after))


def test_the_end_of_an_order_counts_and_how_long_its_step_took():
    """In the minute in which it was counted; a step that failed has not taken any time."""
    assert figures_of(answered(), LATER) == Figures(
        at=NOW, processed=1, steps={"payment": took(1250)}
    )
    assert figures_of(answered("failed"), LATER) == Figures(at=NOW, failed=1)


def test_what_is_done_to_an_order_that_has_ended_or_begins_counts_nothing():
    """Only that it ends."""
    ended = answered("failed").after
    erased = erase(ended, OperatorRequest(operator="grace", note="asked"), PAYLOAD, NOW)
    begun = Transition(
        before=None,
        after=orders.new(),
        entry=HistoryEntry(at=NOW, actor="t", events=some("submitted")),
    )
    for change in (erased, begun, scheduler.claim(orders.new(), NOW)):
        assert figures_of(change, NOW) == Figures(at=NOW), change.entry.event


def test_a_clock_that_was_put_back_makes_no_negative_time():
    """It would make the row one that nobody can read."""
    assert figures_of(answered(after=-0.5), NOW).steps == {"payment": took(0)}


class Process:
    """A process that counts; its minutes end when the test says so."""

    def __init__(self, store):
        self.now, self.ends, self.slept = NOW, asyncio.Event(), []
        self.tally = Tally(store, lambda: self.now, self._sleep)

    async def _sleep(self, pause):
        self.slept.append(pause)
        await self.ends.wait()

    async def minute_ends(self):
        self.ends.set()
        await self.tally._writing
        self.ends.clear()


async def test_a_process_writes_a_row_for_every_minute_in_which_something_ended():
    """Once the minute is over, whatever comes next."""
    kept = app(in_memory()).engine.figures
    process = Process(kept)
    process.now = LATER
    for change in (
        answered(after=1),
        answered(after=3),
        scheduler.claim(orders.new(), NOW),
        answered("failed"),
    ):
        process.tally.count(change)
    await asyncio.sleep(0)
    assert process.slept == [60 - 42]
    hour = NOW - timedelta(hours=1), NOW + timedelta(hours=1)
    assert await kept.between(*hour) == []
    await process.minute_ends()
    first = Figures(at=NOW, processed=2, failed=1, steps={"payment": took(1000, 3000)})
    assert await kept.between(*hour) == [first]
    process.now = NOW + seconds(60)
    process.tally.count(answered())
    await process.minute_ends()
    second = Figures(at=process.now, processed=1, steps={"payment": took(1250)})
    assert await kept.between(*hour) == [first, second]


async def test_a_row_that_cannot_be_written_costs_its_figures_and_nothing_else(caplog):
    """The log says so; the next minute is counted as ever."""

    class Away:
        tries = 0

        async def add(self, figures):
            self.tries += 1
            raise UnavailableError

    away = Away()
    process = Process(away)
    with caplog.at_level(logging.WARNING):
        for tries in (1, 2):
            process.tally.count(answered())
            await process.minute_ends()
            assert away.tries == tries
    assert [record.message for record in caplog.records] == ["figures.not_written"] * 2


async def test_the_figures_of_an_order_reach_the_operators(monkeypatch):
    """Through the app as it is put together, once the minute is over."""
    monkeypatch.setattr(figures, "MINUTE", timedelta())
    now = NOW
    made = app(in_memory(clock=lambda: now))
    entry = HistoryEntry(at=NOW, actor="t", events=some("submitted"))
    await made.engine.unit_of_work.commit(Transition(before=None, after=orders.new(), entry=entry))
    await made.engine.unit_of_work.run(ORDER_ID, scheduler.claim)
    now = NOW + seconds(2)
    await made.engine.unit_of_work.run(
        ORDER_ID, lambda order, now: scheduler.receive(order, answer(), now)
    )
    assert (await made.engine.store.load(ORDER_ID)).process_state is ProcessState.PROCESSED
    now = NOW + seconds(60)

    async def are_shown():
        hour = await made.operations.services.overview.last_hour()
        assert hour.minutes == [Figures(at=NOW, processed=1, steps={"payment": took(2000)})]
        return hour

    hour = await eventually(are_shown)
    assert (hour.since, hour.until) == (now - timedelta(hours=1), now)


async def shown(*counted):
    return (await hour_of(*counted)).minutes


async def hour_of(*counted):
    made = app(in_memory(clock=lambda: LATER))
    for one_minute in counted:
        await made.engine.figures.add(one_minute)
    return await made.operations.services.overview.last_hour()


async def test_what_processes_counted_is_put_together_by_minute():
    """The last hour of it: neither the minute that is not over, nor what is older."""
    minute = seconds(60)
    one = Figures(at=NOW - minute, processed=2, failed=1, steps={"a": took(5, 7), "b": took(1)})
    other = Figures(at=NOW - minute, processed=1, steps={"a": took(90), "c": took(3)})
    oldest = Figures(at=NOW - 60 * minute, failed=1)
    unseen = [Figures(at=at, processed=9) for at in (NOW, NOW - 61 * minute)]
    steps = {"a": took(5, 7, 90), "b": took(1), "c": took(3)}
    together = Figures(at=NOW - minute, processed=3, failed=1, steps=steps)
    assert await shown(one, oldest, *unseen, other) == [oldest, together]


async def test_of_very_many_steps_those_are_shown_that_are_done_most():
    """An app with many workflows has more than anybody can look at."""
    steps = {f"seldom-{number}": took(1) for number in range(MAX_STEPS)}
    all_shown = await hour_of(Figures(at=NOW - seconds(60), steps=steps))
    assert not all_shown.more_steps
    hour = await hour_of(Figures(at=NOW - seconds(60), steps=steps | {"often": took(1, 1)}))
    (minute,) = hour.minutes
    assert hour.more_steps
    assert len(minute.steps) == MAX_STEPS
    assert "often" in minute.steps


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Steps", '{"a": {"count": 0, "total": 1, "longest": 1}}'),
        ("Steps", "[]"),
        ("Processed", -1),
        ("At", "soon"),
    ],
)
async def test_a_row_that_nobody_can_read_costs_only_itself(name, value):
    """Whatever is wrong with it."""
    kept, good = app(in_memory()).engine.figures, Figures(at=NOW, processed=1, steps={"a": took(1)})
    await kept.add(good)
    row = figures.FORM.columns(good) | {name: value}
    await kept._table.submit("figures", [figures.Put(f"{figures.sortable(NOW)}|garbage", row)])
    assert await kept.between(NOW, NOW + seconds(60)) == [good]


async def test_what_cannot_be_counted_is_sent_all_the_same():
    """Figures are only looked at: the order is written, and its messages are sent."""
    world = World()
    world.unit_of_work._count = Mock(side_effect=ValueError("no figure"))
    await world.submitted()
    assert world.parts.bus.sent
