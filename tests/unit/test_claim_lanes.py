"""The agenda of an order that can go on, and what it costs to find those to claim."""

from dataclasses import replace
from datetime import timedelta

import pytest
from builders import COOLDOWN, NOW, ORDER_ID, THRESHOLD, TIMEOUT, claimed, new_order, seconds
from scheduling import step

from core import agenda
from core.agenda import obligations
from core.keys import sortable
from core.life import Direction, Outcome, ProcessState, StepState
from core.orders import Priority
from core.workflow import Workflow
from kit.memory import MemoryStateStore
from stores.claim_lanes import PAGE, BucketLook

BUCKET = "b00"
SINCE, UNTIL = sortable(NOW), sortable(NOW + seconds(60))


def two_steps(**state):
    """An order of two steps that may run at the same time, of which nothing has begun."""
    workflow = Workflow(name="w", version=1, steps=(step("payment"), step("shipping")))
    steps = workflow.initial_steps(timeout=TIMEOUT, threshold=THRESHOLD, cooldown=COOLDOWN)
    return replace(new_order(**state), steps=steps)


def runs(order, *names):
    """The order, of which these steps run."""
    steps = (
        replace(order.step(name), state=StepState.RUNNING, complete_by=NOW + TIMEOUT)
        for name in names
    )
    return order.with_steps(*steps)


PROCESSING = two_steps(process_state=ProcessState.PROCESSING, locked_by="s1")
FAILED = replace(PROCESSING.step("payment"), state=StepState.FAILED)
DUE = f"!running|{sortable(NOW + TIMEOUT)}|{ORDER_ID}"

OWED = {
    "pending": (two_steps(), [f"!pending|1|payment|{SINCE}|{ORDER_ID}"]),
    "urgent": (two_steps(priority=Priority.HIGH), [f"!pending|0|payment|{SINCE}|{ORDER_ID}"]),
    "until a chosen time": (
        two_steps(not_before=NOW + seconds(60)),
        [f"!pending|1|payment|later|{UNTIL}|{ORDER_ID}"],
    ),
    "handled, with a step that could start": (
        runs(PROCESSING, "payment"),
        [f"!pending|1|shipping|{SINCE}|{ORDER_ID}", DUE],
    ),
    "handled, with a step that could start at a chosen time": (
        runs(PROCESSING.with_state(not_before=NOW + seconds(60)), "payment"),
        [f"!pending|1|shipping|later|{UNTIL}|{ORDER_ID}", DUE],
    ),
    "handled, and all that may run does": (runs(PROCESSING, "payment", "shipping"), [DUE]),
    "given back, with nothing that could start": (runs(two_steps(), "payment", "shipping"), [DUE]),
    "failed, while a step runs": (runs(PROCESSING.with_steps(FAILED), "shipping"), [DUE]),
    "failed, and nothing runs": (
        two_steps().with_steps(FAILED),
        [f"!pending|1|-|{SINCE}|{ORDER_ID}"],
    ),
    "to be undone, once a step has answered": (
        runs(two_steps(direction=Direction.UNDO), "payment"),
        [DUE],
    ),
    "processed": (two_steps(process_state=ProcessState.PROCESSED), []),
    "in error": (
        two_steps(process_state=ProcessState.ERROR, outcome=Outcome.FAILED),
        [f"!error|{SINCE}|{ORDER_ID}"],
    ),
    "undone": (two_steps(process_state=ProcessState.ERROR, outcome=Outcome.UNDONE), []),
}


@pytest.mark.proves("SCH-1", "SUP-2")
@pytest.mark.parametrize("how", OWED)
def test_what_an_order_owes_follows_from_its_steps(how):
    """It is pending while a part could start or end, running while one runs; chosen times apart."""
    order, keys = OWED[how]
    assert sorted(obligations(order)) == keys


@pytest.mark.proves("SCH-1")
@pytest.mark.parametrize(
    ("order", "late", "may"),
    [
        (new_order(), 0, True),
        (new_order(), -3 * 3600, True),
        (new_order(not_before=NOW + seconds(60)), 59.999, False),
        (new_order(not_before=NOW + seconds(60)), 60, True),
    ],
)
def test_an_order_may_be_claimed_once_its_time_has_come(order, late, may):
    """The key of its row alone says so. A time since which it waits is no such time (engine 24)."""
    (row,) = obligations(order).values()
    assert agenda.may_be_claimed(row, NOW + seconds(late)) is may
    assert agenda.since(row) == (order.state.not_before or NOW)


@pytest.mark.proves("SUB-6", "SCH-1")
def test_who_was_announced_is_left_to_its_wake_up():
    """An order or step that waited for a time, or beside one that runs, was not announced."""
    orders = [new_order(), new_order(not_before=NOW), runs(PROCESSING, "payment")]
    rows = [
        row
        for order in orders
        for row in obligations(order).values()
        if row.key.startswith("!pending")
    ]
    assert [agenda.was_announced(row) for row in rows] == [True, False, False]


class Counted(MemoryStateStore):
    """A store of which one bucket holds such rows as a test wants, and that counts what is read."""

    def __init__(self):
        super().__init__()
        self.queries = []
        self.number = 0

    async def agenda(self, *query):
        rows = await super().agenda(*query)
        self.queries.append(len(rows))
        return rows

    def fill(self, count, **state):
        """Add the rows of so many orders; return their ids."""
        ids = []
        for _ in range(count):
            ids.append(f"{BUCKET}-{self.number:026d}")
            self.number += 1
            order = new_order(**state).with_state(order_id=ids[-1])
            for key, row in obligations(order).items():
                self.rows.setdefault(BUCKET, {})[key] = (1, row)
        return ids

    def run(self, count):
        """Add the rows of so many orders that run."""
        for number in range(count):
            order = claimed().with_state(order_id=f"{BUCKET}-{number:026d}")
            for key, row in obligations(order).items():
                self.rows.setdefault(BUCKET, {})[key] = (1, row)


@pytest.fixture
def store():
    return Counted()


def who_may(row):
    """The order, if it may be claimed now."""
    return row.order_id if agenda.may_be_claimed(row, NOW) else None


async def looked(store, choose=who_may, most=1000):
    """What a look at all finds to claim."""
    look = BucketLook(store=store, bucket=BUCKET, due=NOW, choose=choose)
    await look.at_all(NOW, most)
    return look


LATER = NOW + timedelta(hours=6)


@pytest.mark.proves("SCH-1", "WRK-3")
async def test_however_many_wait_for_a_later_time_a_look_costs_two_queries_at_most(store):
    """And a page of rows: they stand behind all that may be claimed."""
    store.fill(10_000, not_before=LATER, waits_since=LATER)
    assert (await looked(store)).chosen == []
    assert len(store.queries) <= 2
    assert sum(store.queries) <= PAGE


@pytest.mark.proves("SCH-1", "SCH-11")
async def test_the_head_of_a_lane_is_found_in_one_query_before_those_that_wait_for_a_later_time(
    store,
):
    """Though it came last; the second query only finds that there is no other lane."""
    store.fill(1_000, not_before=LATER, waits_since=LATER)
    ids = store.fill(3)
    look = BucketLook(store=store, bucket=BUCKET, due=NOW, choose=who_may)
    assert await look.at_pending() == ids
    assert store.queries == [PAGE, 0]


@pytest.mark.proves("SCH-1", "SUP-3")
@pytest.mark.parametrize("before", [0, 5, 1_000])
async def test_who_has_waited_out_a_chosen_time_is_found_however_many_may_be_claimed(store, before):
    """They stand behind all that never had one; those whose time is to come are left out."""
    store.fill(before)
    due = store.fill(3, not_before=NOW - seconds(5), waits_since=NOW - seconds(5))
    store.fill(500, not_before=LATER, waits_since=LATER)
    chosen = (await looked(store)).chosen
    assert set(due) <= set(chosen)
    assert len(store.queries) <= 3
    assert len(chosen) == min(before, PAGE) + len(due)


@pytest.mark.proves("SCH-1", "FLT-9")
@pytest.mark.parametrize("before", [0, 5, PAGE - 5])
async def test_who_waits_since_a_time_to_come_is_found_before_chosen_times(store, before):
    """A process whose clock is ahead has changed it: that holds nobody back (engine 24)."""
    store.fill(before)
    ids = store.fill(3, waits_since=LATER)
    store.fill(500, not_before=LATER, waits_since=LATER)
    assert set(ids) <= set((await looked(store)).chosen)


@pytest.mark.proves("SUP-7", "WRK-3")
@pytest.mark.parametrize("waiting", [0, 10, 1_000])
async def test_who_waits_since_times_that_are_passed_over_is_not_read(store, waiting):
    """The watch looks for those that wait for long, and those of a clock that is ahead."""
    old, young = NOW - seconds(60), NOW + seconds(60)
    late = store.fill(3, waits_since=old - seconds(1))
    store.fill(waiting, waits_since=NOW)
    ahead = store.fill(3, waits_since=LATER)
    due = store.fill(3, not_before=old)
    store.fill(500, not_before=LATER)
    look = BucketLook(store=store, bucket=BUCKET, due=old, choose=who_may, passed_over=(old, young))
    assert {*late, *ahead, *due} <= set(await look.at_pending())
    assert sum(store.queries) <= 4 * PAGE


@pytest.mark.proves("SUP-7")
async def test_of_those_of_a_clock_that_is_ahead_enough_are_read(store):
    """They may fill more than the page in which they begin."""
    store.fill(50, waits_since=NOW)
    store.fill(PAGE, waits_since=LATER)
    span = (NOW - seconds(60), NOW + seconds(60))

    def ahead(row):
        return row if agenda.waits_since_after(row, span[1]) else None

    look = BucketLook(store=store, bucket=BUCKET, due=span[0], choose=ahead, passed_over=span)
    assert len(await look.at_pending()) == PAGE


@pytest.mark.proves("SCH-1", "FLT-12")
async def test_those_that_are_not_chosen_hide_nobody(store):
    """The known order stands behind two pages of orders of unknown workflows."""
    store.fill(2_500, waits_since=NOW - seconds(60))
    ids = store.fill(1)
    (known,) = (
        await looked(store, lambda row: row.order_id if row.order_id in ids else None)
    ).chosen
    assert known == ids[0]


@pytest.mark.proves("SCH-1", "SCH-11")
async def test_each_lane_is_looked_at_however_many_wait_in_another(store):
    """Urgent ones, and those with another need, claimable or not."""
    store.fill(500, priority=Priority.HIGH)
    store.fill(500, priority=Priority.HIGH, not_before=LATER)
    normal = store.fill(2)
    ends = two_steps().with_steps(FAILED).with_state(order_id=f"{BUCKET}-{9:026d}")
    for key, row in obligations(ends).items():
        store.rows[BUCKET][key] = (1, row)
    chosen = (await looked(store)).chosen
    assert {*normal, ends.state.order_id} <= set(chosen)
    assert len(chosen) == PAGE + 3


@pytest.mark.proves("WRK-2", "SCH-1")
async def test_a_look_sees_all_that_runs_however_many_wait(store):
    """Up to what may run, and nothing of what is overdue."""
    store.fill(1_000)
    store.fill(1_000, not_before=LATER)
    store.run(250)
    late = claimed(at=NOW - timedelta(hours=1))
    for key, row in obligations(late).items():
        store.rows[BUCKET][key] = (1, row)
    look = await looked(store)
    assert len(look.running) == 250
    assert late.order_id not in [row.order_id for row in look.running]


@pytest.mark.proves("FLT-6")
@pytest.mark.parametrize(
    "key", ["!pending|", "!pending|0", "!pending|1|payment", "!pending|1|payment|later"]
)
def test_a_key_that_no_version_writes_is_no_trouble_to_who_looks(key):
    """It may be the last of a page: from it the look has to know where to read on."""
    row = agenda.AgendaRow(key=key, order_id="x")
    agenda.may_be_claimed(row, NOW)
    assert agenda.end_of_claim_lane(row) > key
