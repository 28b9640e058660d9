"""The work index of an order that can go on, and what it costs to find those to claim."""

from dataclasses import replace
from datetime import timedelta

import pytest

from engine.domain import work_index
from engine.domain.keys import newest_first, sortable
from engine.domain.statuses import Outcome
from engine.domain.submitted_order import Priority
from engine.storage.bucket_reader import PAGE, BucketReader
from testkit.memory import MemoryStateStore
from tests.support.builders import (
    NOW,
    ORDER_ID,
    TIMEOUT,
    claimed,
    index_rows,
    orders,
    seconds,
    steps,
)

BUCKET = "b00"
SINCE, UNTIL = sortable(NOW), sortable(NOW + seconds(60))


PAYMENT, SHIPPING = steps.new("payment"), steps.new("shipping", capability="shipping")
TWO = [PAYMENT, SHIPPING]
"""Two steps that may run at the same time, of which nothing has begun."""
ONE_RUNS = [steps.running(PAYMENT), SHIPPING]
BOTH_RUN = [steps.running(PAYMENT), steps.running(SHIPPING)]
ONE_FAILED = [steps.failed(PAYMENT), SHIPPING]
DUE = f"!running|{sortable(NOW + TIMEOUT)}|{ORDER_ID}"

PENDING_ROWS = {
    "pending": (
        orders.pending(steps=TWO),
        [f"!pending|1|{need}|{SINCE}|{ORDER_ID}" for need in ("payment", "shipping")],
    ),
    "pending, and both steps need the same": (
        orders.pending(steps=[PAYMENT, steps.new("refund")]),
        [f"!pending|1|payment|{SINCE}|{ORDER_ID}"],
    ),
    "urgent": (
        orders.pending(steps=TWO, priority=Priority.HIGH),
        [f"!pending|0|{need}|{SINCE}|{ORDER_ID}" for need in ("payment", "shipping")],
    ),
    "until a chosen time": (
        orders.pending(steps=[steps.scheduled(name, at=NOW + seconds(60)) for name in TWO]),
        [f"!pending|1|{need}|later|{UNTIL}|{ORDER_ID}" for need in ("payment", "shipping")],
    ),
    "one at a chosen time": (
        orders.pending(steps=[steps.scheduled(PAYMENT, at=NOW + seconds(60)), SHIPPING]),
        [
            f"!pending|1|payment|later|{UNTIL}|{ORDER_ID}",
            f"!pending|1|shipping|{SINCE}|{ORDER_ID}",
        ],
    ),
    "handled, with a step that could start": (
        orders.processing(steps=ONE_RUNS),
        [f"!pending|1|shipping|{SINCE}|{ORDER_ID}", DUE],
    ),
    "handled, with a step that could start at a chosen time": (
        orders.processing(
            steps=[steps.running(PAYMENT), steps.scheduled(SHIPPING, at=NOW + seconds(60))]
        ),
        [f"!pending|1|shipping|later|{UNTIL}|{ORDER_ID}", DUE],
    ),
    "handled, and all that may run does": (orders.processing(steps=BOTH_RUN), [DUE]),
    "given back, with nothing that could start": (orders.pending(steps=BOTH_RUN), [DUE]),
    "failed, while a step runs": (
        orders.processing(steps=[steps.failed(PAYMENT), steps.running(SHIPPING)]),
        [DUE],
    ),
    "failed, and nothing runs": (
        orders.pending(steps=ONE_FAILED),
        [f"!pending|1|-|{SINCE}|{ORDER_ID}"],
    ),
    "to be undone, once a step has answered": (
        orders.undoing(steps=ONE_RUNS),
        [DUE],
    ),
    "processed": (
        orders.processed(steps=TWO),
        [f"_ended|processed|{newest_first(NOW)}|{ORDER_ID}"],
    ),
    "in error": (
        orders.in_error(steps=TWO),
        [f"!error|{SINCE}|{ORDER_ID}"],
    ),
    "undone": (
        orders.in_error(steps=TWO, outcome=Outcome.UNDONE),
        [f"_ended|undone|{newest_first(NOW)}|{ORDER_ID}"],
    ),
}


@pytest.mark.proves("SCH-1", "SUP-2")
@pytest.mark.parametrize("how", PENDING_ROWS)
def test_what_an_order_owes_follows_from_its_steps(how):
    """It has a place for each agent that a step needs, while a claim could start that step (SCH-10)."""
    order, keys = PENDING_ROWS[how]
    assert sorted(index_rows(order)) == keys


@pytest.mark.proves("SCH-1")
@pytest.mark.parametrize(
    ("order", "late", "may"),
    [
        (orders.new(), 0, True),
        (orders.new(), -3 * 3600, True),
        (orders.pending(steps=[steps.scheduled(at=NOW + seconds(60))]), 59.999, False),
        (orders.pending(steps=[steps.scheduled(at=NOW + seconds(60))]), 60, True),
    ],
)
def test_an_order_may_be_claimed_once_its_time_has_come(order, late, may):
    """The key of its row alone says so. A time since which it waits is no such time (engine 24)."""
    (row,) = index_rows(order).values()
    assert work_index.may_be_claimed(row, NOW + seconds(late)) is may
    assert work_index.since(row) == (order.derived.not_before or NOW)


@pytest.mark.proves("SUB-6", "SCH-1")
def test_who_was_announced_is_left_to_its_wake_up():
    """An order or step that waited for a time, or beside one that runs, was not announced."""
    scheduled = orders.pending(steps=[steps.scheduled(at=NOW)], updated_at=NOW - seconds(60))
    rows = [
        row
        for order in (orders.new(), scheduled, orders.processing(steps=ONE_RUNS))
        for row in index_rows(order).values()
        if row.key.startswith("!pending")
    ]
    assert [work_index.was_announced(row) for row in rows] == [True, False, False]


class Counted(MemoryStateStore):
    """A store of which one bucket holds such rows as a test wants, and that counts what is read."""

    def __init__(self):
        super().__init__()
        self.queries = []
        self.number = 0

    async def work_items(self, *query):
        rows = await super().work_items(*query)
        self.queries.append(len(rows))
        return rows

    def fill(self, count, **details):
        """Add the rows of so many orders; return their ids."""
        ids = [f"{BUCKET}-{number:026d}" for number in range(self.number, self.number + count)]
        self.number += count
        self.add(orders.pending(**details), ids)
        return ids

    def add(self, order, ids):
        """Add the rows of orders like this one."""
        rows, pending = self.rows.setdefault(BUCKET, {}), index_rows(order)
        for order_id in ids:
            for key, row in pending.items():
                named = replace(row, key=key.replace(ORDER_ID, order_id), order_id=order_id)
                rows[named.key] = (1, named)

    def run(self, count):
        """Add the rows of so many orders that run."""
        self.add(claimed(), [f"{BUCKET}-{number:026d}" for number in range(count)])


@pytest.fixture
def store():
    return Counted()


def who_may(row):
    """The order, if it may be claimed now."""
    return row.order_id if work_index.may_be_claimed(row, NOW) else None


async def looked(store, choose=who_may, most=1000):
    """What a look at all finds to claim."""
    look = BucketReader(store=store, bucket=BUCKET, due=NOW, choose=choose)
    await look.at_all(NOW, most)
    return look


LATER = NOW + timedelta(hours=6)
AT_LATER = [steps.scheduled(at=LATER)]
WAS_DUE = [steps.scheduled(at=NOW - seconds(5))]


@pytest.mark.proves("SCH-1", "WRK-3")
async def test_however_many_wait_for_a_later_time_a_look_costs_two_queries_at_most(store):
    """And a page of rows: they stand behind all that may be claimed."""
    store.fill(10_000, steps=AT_LATER)
    assert (await looked(store)).chosen == []
    assert len(store.queries) <= 2
    assert sum(store.queries) <= PAGE


@pytest.mark.proves("SCH-1", "SCH-11")
async def test_the_head_of_a_lane_is_found_in_one_query_before_those_that_wait_for_a_later_time(
    store,
):
    """Though it came last; the second query only finds that there is no other lane."""
    store.fill(1_000, steps=AT_LATER)
    ids = store.fill(3)
    look = BucketReader(store=store, bucket=BUCKET, due=NOW, choose=who_may)
    assert await look.at_pending() == ids
    assert store.queries == [PAGE, 0]


@pytest.mark.proves("SCH-1", "SUP-3")
@pytest.mark.parametrize("before", [0, 5, 1_000])
async def test_who_has_waited_out_a_chosen_time_is_found_however_many_may_be_claimed(store, before):
    """They stand behind all that never had one; those whose time is to come are left out."""
    store.fill(before)
    due = store.fill(3, steps=WAS_DUE, updated_at=NOW - seconds(60))
    store.fill(500, steps=AT_LATER)
    chosen = (await looked(store)).chosen
    assert set(due) <= set(chosen)
    assert len(store.queries) <= 3
    assert len(chosen) == min(before, PAGE) + len(due)


@pytest.mark.proves("SCH-1", "FLT-9")
@pytest.mark.parametrize("before", [0, 5, PAGE - 5])
async def test_who_waits_since_a_time_to_come_is_found_before_chosen_times(store, before):
    """A process whose clock is ahead has changed it: that holds nobody back (engine 24)."""
    store.fill(before)
    ids = store.fill(3, ready_since=LATER)
    store.fill(500, steps=AT_LATER)
    assert set(ids) <= set((await looked(store)).chosen)


@pytest.mark.proves("SUP-7", "WRK-3")
@pytest.mark.parametrize("waiting", [0, 10, 1_000])
async def test_who_waits_since_times_that_are_passed_over_is_not_read(store, waiting):
    """The watch looks for those that wait for long, and those of a clock that is ahead."""
    old, young = NOW - seconds(60), NOW + seconds(60)
    late = store.fill(3, ready_since=old - seconds(1))
    store.fill(waiting, ready_since=NOW)
    ahead = store.fill(3, ready_since=LATER)
    due = store.fill(3, steps=[steps.scheduled(at=old)], updated_at=old - seconds(60))
    store.fill(500, steps=AT_LATER)
    look = BucketReader(
        store=store, bucket=BUCKET, due=old, choose=who_may, passed_over=(old, young)
    )
    assert {*late, *ahead, *due} <= set(await look.at_pending())
    assert sum(store.queries) <= 4 * PAGE


@pytest.mark.proves("SUP-7")
async def test_of_those_of_a_clock_that_is_ahead_enough_are_read(store):
    """They may fill more than the page in which they begin."""
    store.fill(50, ready_since=NOW)
    store.fill(PAGE, ready_since=LATER)
    span = (NOW - seconds(60), NOW + seconds(60))

    def ahead(row):
        return row if work_index.is_ready_after(row, span[1]) else None

    look = BucketReader(store=store, bucket=BUCKET, due=span[0], choose=ahead, passed_over=span)
    assert len(await look.at_pending()) == PAGE


@pytest.mark.proves("SCH-1", "FLT-12")
async def test_those_that_are_not_chosen_hide_nobody(store):
    """The known order stands behind two pages of orders of unknown workflows."""
    store.fill(2_500, ready_since=NOW - seconds(60))
    ids = store.fill(1)
    (known,) = (
        await looked(store, lambda row: row.order_id if row.order_id in ids else None)
    ).chosen
    assert known == ids[0]


@pytest.mark.proves("SCH-1", "SCH-11")
async def test_every_lane_is_looked_at_however_many_wait_in_another(store):
    """Urgent ones, and those with another need, claimable or not."""
    store.fill(500, priority=Priority.HIGH)
    store.fill(500, priority=Priority.HIGH, steps=AT_LATER)
    normal = store.fill(2)
    ends = orders.pending(steps=ONE_FAILED, order_id=f"{BUCKET}-{9:026d}")
    for key, row in index_rows(ends).items():
        store.rows[BUCKET][key] = (1, row)
    chosen = (await looked(store)).chosen
    assert {*normal, ends.order_id} <= set(chosen)
    assert len(chosen) == PAGE + 3


@pytest.mark.proves("WRK-2", "SCH-1")
async def test_a_look_sees_all_that_runs_however_many_wait(store):
    """Up to what may run, and nothing of what is overdue."""
    store.fill(1_000)
    store.fill(1_000, steps=AT_LATER)
    store.run(250)
    late = claimed(at=NOW - timedelta(hours=1))
    for key, row in index_rows(late).items():
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
    row = work_index.IndexRow(key=key, order_id="x")
    work_index.may_be_claimed(row, NOW)
    assert work_index.end_of_claim_lane(row) > key
