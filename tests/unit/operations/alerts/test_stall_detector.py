"""How long orders wait to be claimed."""

from dataclasses import replace
from datetime import datetime, timedelta
from unittest.mock import AsyncMock, patch

import pytest

from engine.decisions.transitions import HistoryEntry, Transition
from engine.domain.causes import Cause, Code
from engine.domain.deadlines import Deadline
from engine.domain.derive import derive
from engine.domain.errors import UnavailableError, UnreadableRowError
from engine.domain.keys import buckets, sortable
from engine.domain.submitted_order import Priority
from engine.domain.work_index import checked_kinds
from engine.storage.bucket_reader import PAGE
from engine.storage.sweeps import Sweep
from testkit.memory import in_memory
from tests.support.apps import app
from tests.support.away import away
from tests.support.builders import NOW, ORDER_ID, orders, seconds, some, steps
from tests.support.outbox import pending_events


def watching(store, sweeps, conditions, now=NOW):
    """An instance of the detector at that time."""
    there = app(in_memory(clock=lambda: now), pending_alert_seconds=120, sweep_alert_seconds=30)
    there.engine.store = there.operations.background_store = store
    there.engine.sweeps, there.operations.conditions = sweeps, conditions
    return there.operations.stall_detector


def stores():
    """Where there are neither orders nor sweeps nor conditions."""
    there = app(in_memory())
    return there.engine.store, there.engine.sweeps, there.operations.conditions


async def watched(*orders, sweep=None):
    """The detector on a store with these orders, and its store."""
    store, sweeps, conditions = stores()
    if sweep:
        await sweeps.record(sweep)
    for order in orders:
        await store.commit(
            Transition(
                before=None,
                after=order,
                entry=HistoryEntry(at=NOW, actor="t", events=some("submitted")),
            )
        )
    return watching(store, sweeps, conditions), store


async def waiting(*orders):
    """How long the detector says that these orders wait."""
    detector, _ = await watched(*orders)
    return await detector.check()


async def announced(store):
    """What operators will be told."""
    return await pending_events(store, *buckets(8))


def pending_since(ago, **details):
    return orders.pending(ready_since=NOW - ago, **details)


@pytest.mark.proves("SUP-7")
async def test_the_longest_wait_counts():
    """Of all buckets and priorities."""
    other = pending_since(
        seconds(90), order_id="b00-01JCX4T9Q8ZK7M2N5P6R3S1V0W", priority=Priority.HIGH
    )
    assert await waiting(pending_since(seconds(60)), other) == seconds(90)


RESTS = [steps.cooling_down(until=NOW + seconds(60))]


@pytest.mark.proves("SUP-7")
async def test_who_need_not_be_claimed_does_not_wait():
    """An order that rests, or that is processed, is nobody's fault."""
    assert await waiting() == timedelta()
    assert await waiting(pending_since(seconds(60), steps=RESTS)) == timedelta()
    assert await waiting(orders.processed(ready_since=NOW - seconds(60))) == timedelta()


@pytest.mark.proves("SUP-7")
async def test_an_order_that_waited_for_a_chosen_time_waits_since_then():
    """What a workflow or an operator chose is no delay, however long it was."""
    chosen = [steps.scheduled(at=NOW - seconds(30))]
    order = orders.pending(steps=chosen, updated_at=NOW - seconds(60))
    assert order.derived.not_before == NOW - seconds(30)
    assert await waiting(order) == seconds(30)


@pytest.mark.proves("SUP-7", "FLT-9")
@pytest.mark.parametrize("beside", [0, PAGE + 1])
async def test_an_order_that_waits_since_a_time_far_to_come_is_announced(beside):
    """A clock was ahead: how long the order waits is not known, so it counts as late (engine 24)."""
    others = [pending_since(seconds(1), order_id=f"b03-{number:026d}") for number in range(beside)]
    ahead = pending_since(seconds(-3 * 3600))
    detector, store = await watched(*others, ahead)
    assert seconds(120) < await detector.check() < seconds(121)
    (event,) = await announced(store)
    assert (event.subject, event.data["orders"]) == ("orders-waiting/payment", [ORDER_ID])
    assert NOW - seconds(121) < datetime.fromisoformat(event.data["since"]) < NOW


@pytest.mark.proves("SUP-7", "FLT-9")
async def test_an_order_that_waits_since_a_moment_to_come_will_be_late_soon_enough():
    """Clocks differ a little. A chosen time may be far away."""
    detector, store = await watched(
        pending_since(seconds(-119)),
        pending_since(seconds(-7200), order_id=f"b03-{1:026d}", not_before=NOW + seconds(7200)),
    )
    assert await detector.check() == timedelta()
    assert await announced(store) == []


@pytest.mark.proves("SUP-7", "SCH-10")
async def test_a_step_that_waits_for_too_long_beside_one_that_runs_is_announced():
    """Somebody handles the order, but no agent takes that step."""
    both = [steps.running(complete_by=NOW + seconds(60)), steps.new("other")]
    order = orders.processing(steps=both, ready_since=NOW - seconds(121))
    detector, store = await watched(order)
    await detector.check()
    assert [event.data["reason"]["code"] for event in await announced(store)] == [Code.NOT_CLAIMED]


@pytest.mark.proves("SUP-7")
async def test_an_order_that_waits_too_long_is_announced_once():
    """However often one looks."""
    detector, store = await watched(pending_since(seconds(121)))
    await detector.check()
    await detector.check()
    (event,) = await announced(store)
    assert (event.type, event.subject) == ("OrderProcessing.Stalled", "orders-waiting/payment")
    assert (event.data["status"], event.data["count"], event.data["orders"]) == (
        "new",
        1,
        [ORDER_ID],
    )


@pytest.mark.proves("SUP-7", "FLT-6")
async def test_an_order_that_waits_too_long_is_announced_though_nobody_can_read_of_sweeps():
    """And that they cannot be read is raised."""
    detector, store = await watched(pending_since(seconds(121)))
    with (
        patch.object(
            detector.sweeps,
            "last",
            AsyncMock(side_effect=UnreadableRowError(Cause(Code.ROW_MISSING))),
        ),
        pytest.raises(ExceptionGroup),
    ):
        await detector.check()
    assert [event.data["orders"] for event in await announced(store)] == [[ORDER_ID]]


@pytest.mark.proves("SUP-7")
@pytest.mark.parametrize(("ago", "count"), [(-1, 0), (31, 1)])
async def test_a_sweep_that_stays_away_is_announced(ago, count):
    """After the time that is allowed, and not before; however short-lived who looks is."""
    store, sweeps, conditions = stores()
    await sweeps.record(Sweep(at=NOW, instance="v1", recovered=0))
    for late in (ago, ago + 30):
        await watching(store, sweeps, conditions, NOW + seconds(late)).check()
    events = await announced(store)
    assert [(event.subject, event.data["since"]) for event in events] == [
        ("supervisor", NOW.isoformat())
    ] * count


@pytest.mark.proves("SUP-7")
async def test_after_a_pause_of_the_whole_system_there_is_no_alert_before_a_sweep_is_possible():
    """Nor after the next one, though the first look then finds the last sweep long ago."""
    store, sweeps, conditions = stores()
    for start in (NOW, NOW + seconds(86_400)):
        await sweeps.record(Sweep(at=start, instance="v1", recovered=0))
        for late in (3600, 3629):
            await watching(store, sweeps, conditions, start + seconds(late)).check()
    assert await announced(store) == []


@pytest.mark.proves("SUP-7", "ALR-4")
async def test_orders_that_wait_for_the_same_agent_are_one_alert():
    """With their number over all buckets, since when the first waits, and no time in the reason."""
    late = [
        pending_since(seconds(ago), order_id=f"b{bucket:02d}-{ago:026d}")
        for ago, bucket in ((121, 3), (122, 0), (130, 3))
    ]
    detector, store = await watched(*late)
    await detector.check()
    (event,) = await announced(store)
    assert event.data["reason"]["code"] == Code.NOT_CLAIMED
    assert event.data["since"] == (NOW - seconds(130)).isoformat()
    assert (event.data["count"], event.data["orders"]) == (
        3,
        [f"b03-{130:026d}", f"b00-{122:026d}", f"b03-{121:026d}"],
    )


@pytest.mark.proves("SUP-7", "ALR-4")
async def test_an_order_that_waits_for_two_agents_counts_once_with_both():
    """Either may be the one that no scheduler serves; the longest wait is that of one order."""
    needs = [steps.new("payment"), steps.new("shipping", capability="shipping")]
    detector, store = await watched(pending_since(seconds(130), steps=needs))
    assert await detector.check() == seconds(130)
    counts = {event.subject: event.data["count"] for event in await announced(store)}
    assert [*counts.values()] == [1, 1]
    assert {subject.rpartition("/")[2] for subject in counts} == {"payment", "shipping"}


@pytest.mark.proves("SUP-7")
async def test_that_nobody_has_ever_swept_is_announced_however_short_lived_who_looks_is():
    """Each look may run on a new instance, which saw no earlier look; there is one event."""
    store, sweeps, conditions = stores()
    for late in (0, 15, 30):
        await watching(store, sweeps, conditions, NOW + seconds(late)).check()
    assert await announced(store) == []
    for late in (31, 60):
        await watching(store, sweeps, conditions, NOW + seconds(late)).check()
    (event,) = await announced(store)
    assert (event.subject, event.data["since"]) == ("supervisor", NOW.isoformat())


@pytest.mark.proves("SUP-7")
async def test_every_order_that_waits_too_long_counts():
    """Also one behind a page, of its own lane or another."""
    urgent = [
        pending_since(seconds(200), order_id=f"b03-{number:026d}", priority=Priority.HIGH)
        for number in range(PAGE + 5)
    ]
    early = pending_since(seconds(119), order_id="b00-01JCX4T9Q8ZK7M2N5P6R3S1V0W")
    detector, store = await watched(*urgent, pending_since(seconds(121)), early)
    assert await detector.check() == seconds(200)
    (event,) = await announced(store)
    assert event.data["count"] > PAGE
    assert await detector.check() == seconds(200)
    assert await announced(store) == [event]


def later(detector, by, store):
    """The detector so much later, on the same rows."""
    return watching(store, detector.sweeps, detector.conditions, NOW + by)


async def statuses(store, condition="orders-waiting/payment"):
    """What the events of a condition say, by their revisions."""
    of_it = (event for event in await announced(store) if event.subject == condition)
    events = sorted(of_it, key=lambda event: event.data["revision"])
    assert {event.event_id for event in events} == {
        f"{event.data['alert']}:{event.data['revision']}" for event in events
    }
    return [(event.data["revision"], event.data["status"]) for event in events]


@pytest.mark.proves("SUP-7", "ALR-4")
async def test_a_condition_that_ends_says_so_once_and_one_that_comes_back_soon_is_the_same():
    """Whichever instance looks; while a bucket cannot be read, none ends."""
    detector, store = await watched(pending_since(seconds(121)))
    await detector.check()
    rows = {key: row for key, row in store.table.partitions["b03"].items() if "!outbox" not in key}
    for key in rows:
        del store.table.partitions["b03"][key]
    with patch.object(detector.sweeps, "last", away), pytest.raises(ExceptionGroup):
        await later(detector, seconds(30), store).check()
    assert await statuses(store) == [(1, "new")]
    for late in (60, 90):
        await later(detector, seconds(late), store).check()
    assert await statuses(store) == [(1, "new"), (2, "resolved")]
    store.table.partitions["b03"].update(rows)
    await later(detector, seconds(120), store).check()
    assert await statuses(store) == [(1, "new"), (2, "resolved"), (3, "changed")]


@pytest.mark.proves("SUP-7")
async def test_what_could_not_be_announced_is_announced_with_the_next_look():
    """The store was away for a moment."""
    detector, store = await watched(pending_since(seconds(121)))
    with patch.object(store, "announce", away), pytest.raises(UnavailableError):
        await detector.check()
    await detector.check()
    assert [event.data["orders"] for event in await announced(store)] == [[ORDER_ID]]


@pytest.mark.proves("SUP-7", "ALR-1")
async def test_an_instance_that_ends_before_it_announced_loses_nothing_and_repeats_nothing():
    """The row is written before the event: the next look announces it, under the same id."""
    detector, store = await watched(pending_since(seconds(121)))
    put, puts = detector.conditions.put, []

    async def ends_after_the_first(*args):
        puts.append(args)
        if len(puts) > 1:
            raise UnavailableError
        return await put(*args)

    with (
        patch.object(detector.conditions, "put", ends_after_the_first),
        pytest.raises(UnavailableError),
    ):
        await detector.check()
    await detector.check()
    assert await statuses(store) == [(1, "new")]


def overdue_since(ago, order_id=ORDER_ID):
    """An order whose payment should have been answered so long ago."""
    return orders.processing(steps=[steps.running(complete_by=NOW - ago)], order_id=order_id)


def due_since(ago):
    """A pending order whose deadline passed so long ago."""
    order, at = orders.new(), NOW - ago
    late = replace(order, deadline=Deadline(due_by=at, due_soon_at=at).warned())
    return replace(late, derived=derive(late, late, NOW))


@pytest.mark.proves("SUP-7", "SCH-17")
@pytest.mark.parametrize(
    ("ago", "declared", "found"),
    [(121, True, ["orders-overdue"]), (119, True, []), (121, False, [])],
)
async def test_a_deadline_that_no_sweep_has_noticed_is_announced(ago, declared, found):
    """After the usual time; where no workflow declares one, there is no query for it."""
    detector, store = await watched(due_since(seconds(ago)))
    await replace(detector, checked=checked_kinds(has_deadlines=declared)).check()
    assert [event.subject for event in await announced(store)] == found


@pytest.mark.proves("SUP-7", "FLT-12")
@pytest.mark.parametrize(
    "column", [{"SchemaVersion": 99}, {"Steps": "[{"}], ids=["newer", "broken"]
)
async def test_an_order_that_nobody_can_recover_is_announced_once(column):
    """Its time is over, and the supervisor, which finds it at each sweep, cannot read its state."""
    detector, store = await watched(overdue_since(seconds(121)))
    count, row = store.table.partitions["b03"][f"{ORDER_ID}|state"]
    store.table.partitions["b03"][f"{ORDER_ID}|state"] = (count + 1, {**row, **column})
    for _ in range(3):
        assert await detector.check() == timedelta()
    (event,) = await announced(store)
    assert (event.type, event.subject) == ("OrderProcessing.Stalled", "orders-overdue")
    assert event.data["since"] == (NOW - seconds(121)).isoformat()
    assert event.data["orders"] == [ORDER_ID]


@pytest.mark.proves("SUP-7")
async def test_an_order_that_is_in_time_or_overdue_for_a_moment_is_not_announced():
    """The next sweep finds it."""
    detector, store = await watched(
        overdue_since(-seconds(1)), overdue_since(seconds(119), f"b03-{1:026d}")
    )
    await detector.check()
    assert await announced(store) == []


@pytest.mark.proves("SUP-7", "FLT-6")
async def test_many_orders_that_nobody_can_recover_hide_nobody():
    """Those of other buckets count, and rows nobody can read disturb nobody."""
    many = [overdue_since(seconds(300), f"b03-{number:026d}") for number in range(PAGE)]
    detector, store = await watched(*many, overdue_since(seconds(400), f"b00-{1:026d}"))
    for time in ("0", sortable(NOW - seconds(250))):
        store.table.partitions["b03"][f"!running|{time}|nobody"] = (1, {})
    await detector.check()
    (event,) = await announced(store)
    assert event.data["count"] >= PAGE
    assert event.data["orders"][0] == f"b00-{1:026d}"


@pytest.mark.proves("SUP-7")
async def test_what_a_look_costs_does_not_grow_with_what_runs_in_time():
    """One range of each bucket, up to what is overdue for too long."""
    detector, store = await watched(
        *(overdue_since(-seconds(60), f"b03-{number:026d}") for number in range(PAGE + 1))
    )
    with patch.object(store, "work_items", AsyncMock(wraps=store.work_items)) as work_items:
        await detector.check()
    running = [
        call.args for call in work_items.await_args_list if call.args[1].startswith("!running")
    ]
    assert len(running) == len(store.buckets)
    assert all(end <= f"!running|{sortable(NOW - seconds(120))}" for _, _, end, _ in running)


@pytest.mark.proves("SUP-7")
async def test_submissions_that_nobody_takes_have_one_alert_while_they_wait():
    """Whoever put them there; that the queue moves slowly is no news, and that it waits again is."""
    store, sweeps, conditions = stores()
    detector = watching(store, sweeps, conditions)
    for ago in (119, 121, 130, 125, 10, 121):
        detector.submissions.head_since = NOW - seconds(ago)
        await detector.check()
    assert await statuses(store, "submissions") == [(1, "new"), (2, "resolved"), (3, "changed")]
    assert {event.data["since"] for event in await announced(store)} == {
        (NOW - seconds(121)).isoformat()
    }
