"""All orders by their age, and how they are removed, in memory and on tables."""

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from itertools import count
from uuid import uuid4

import pytest
from ulid import ULID

from engine.decisions.transitions import HistoryEntry, Note, OperatorEvent, Transition
from engine.domain.errors import UnknownOrderError
from engine.domain.keys import history_range, order_key, state_key
from engine.domain.statuses import Outcome
from engine.storage import archive, figures
from engine.storage.figures import Figures
from engine.storage.poison import Arrival
from engine.storage.submission_keys import PARTITIONS, Binding
from engine.storage.tables import Delete
from engine.words.history import in_words
from operations.api.requests import FindRequest, OperatorRequest
from operations.api.retention import LATE, RUN_TIME, erase
from testkit.memory import in_memory
from tests.support.apps import app
from tests.support.builders import CONTENT, PAYLOAD, orders, refusal, some
from tests.support.kept import SUBMISSIONS

NOW = datetime(2020, 6, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
SAME_PARTITION = [
    key for key in map(str, range(4000)) if sha256(key.encode()).hexdigest().startswith("00")
]
GRACE = {"operator": "grace", "note": "the customer asked for it"}


def content_of(email):
    return CONTENT | {"customer": {"name": "Ada", "email": email}}


class Kept:
    """A store whose orders are as old as they are said to be; the keys of customers are elsewhere, unless given."""

    def __init__(self, made, keys=None):
        self.made = app(
            replace(made.engine.adapters, clock=lambda: NOW), retention_days=30, buckets=1
        )
        self.made.engine.submission_keys = keys or app(in_memory()).engine.submission_keys
        self.retention = self.made.operations.services.retention

    async def order(self, *, days, to=orders.pending, ended=None, notes=0, email="ada@example.com"):
        """Record an order that was made so many days ago, and ended then unless it is said otherwise."""
        made, ended = NOW - days * DAY, NOW - (days if ended is None else ended) * DAY
        order_id = f"b00-{ULID.from_datetime(made)!s}"
        order = to(
            order_id=order_id, payload=content_of(email), updated_at=ended, ready_since=ended
        )
        entry = HistoryEntry(
            at=made, actor="submission/i", events=some("submitted"), change_id=order_id
        )
        await self.made.engine.store.commit(Transition(before=None, after=order, entry=entry))
        entry = HistoryEntry(at=made, actor="t", events=some("noted"))
        all_notes = [
            Note(note_id=f"n{number:04d}", order_id=order_id, version=1, entry=entry)
            for number in range(notes)
        ]
        await asyncio.gather(*(self.made.engine.store.note(note) for note in all_notes))
        return order_id

    async def left(self, *order_ids):
        """Which of the orders are there, each whole: an order that is gone left no history."""
        found = []
        for order_id in order_ids:
            order, history = (
                await self.made.engine.store.load(order_id),
                await self.made.engine.store.history(order_id),
            )
            assert (order is None) == (history == []), order_id
            found += [order_id] if order else []
        return found

    async def empty(self):
        """Remove what other tests left."""
        page = await self.made.operations.archive.oldest("b00", None, "")
        while page.orders:
            for order in page.orders:
                await self.made.operations.archive.remove(order)
            page = await self.made.operations.archive.oldest("b00", None, "")
        await self.made.operations.archive.go_on_from("b00", "")


PROCESSED = {"to": orders.processed}
UNDONE = {"to": partial(orders.in_error, outcome=Outcome.UNDONE)}
FAILED = {"to": orders.in_error}


@pytest.fixture
async def kept(made):
    kept = Kept(made)
    await kept.empty()
    return kept


async def test_what_is_finished_and_old_enough_is_removed_and_nothing_else(kept):
    """By its end, not only by its age; what an operator still has to see to stays, however old it is."""
    old, undone = await kept.order(days=40, **PROCESSED), await kept.order(days=40, **UNDONE)
    others = [
        await kept.order(days=20, **PROCESSED),
        await kept.order(days=40, ended=20, **PROCESSED),
        await kept.order(days=400, **FAILED),
        await kept.order(days=400),
    ]
    assert await kept.retention.sweep() == 2
    assert await kept.left(old, undone, *others) == others
    assert await kept.retention.sweep() == 0


async def test_nothing_is_removed_unless_a_retention_is_set(kept):
    """The default keeps everything."""
    order_id = await kept.order(days=4000, **PROCESSED)
    assert await replace(kept.retention, keep=None).sweep() == 0
    assert await kept.left(order_id) == [order_id]


async def test_figures_are_removed_once_they_are_shown_no_more(kept, monkeypatch):
    """Also where all else is kept for ever."""
    monkeypatch.setattr(figures, "MAX_REMOVED", 1)
    *old, shown = (
        Figures(at=NOW - timedelta(minutes=minutes), processed=1) for minutes in (63, 62, 61, 59)
    )
    for counted in (*old, shown):
        await kept.made.engine.figures.add(counted)
    await replace(kept.retention, keep=None).sweep()
    assert await kept.made.engine.figures.between(NOW - DAY, NOW) == [shown]


async def test_an_order_with_more_history_than_a_transaction_or_a_page_holds_is_removed_whole(kept):
    """Beside others, of which nothing is lost."""
    large = await kept.order(days=40, notes=1100, **PROCESSED)
    open_one = await kept.order(days=39)
    small = await kept.order(days=38, **PROCESSED)
    assert await kept.retention.sweep() == 2
    assert await kept.left(large, open_one, small) == [open_one]


def time_for(parts):
    """A clock by which the time of a run is up after so many pages or parts."""
    reads = count()  # besides after each: for since when, and until when
    return lambda: NOW + RUN_TIME if next(reads) > parts else NOW


async def short_run(kept, parts):
    """Sweep on another instance, with time for so many pages or parts; return how many orders went."""
    there = Kept(kept.made, kept.made.engine.submission_keys)
    return await replace(there.retention, clock=time_for(parts)).sweep()


async def test_many_old_orders_that_stay_keep_none_behind_them_from_being_removed(
    kept, monkeypatch
):
    """A run that cannot read all goes on where the last one ended, on whichever instance, and begins anew at the end.

    Its timer comes once an hour, and hardly ever finds the instance of the hour before.
    """
    monkeypatch.setattr(archive, "PAGE", 3)
    staying = [await kept.order(days=60 - number, **FAILED) for number in range(6)]
    behind = await kept.order(days=40, **PROCESSED)
    removed = [await short_run(kept, parts=2) for _ in range(4)]
    assert sum(removed) == 1
    assert removed[0] == 0
    assert await kept.left(*staying, behind) == staying
    first = await kept.order(days=70, **PROCESSED)
    assert sum([await short_run(kept, parts=2) for _ in range(6)]) == 1
    assert await kept.left(first, *staying) == staying


async def test_a_run_goes_on_while_it_has_time(kept, monkeypatch):
    """However many pages there are of what is too old: in two minutes a bucket is rid of thousands of orders."""
    monkeypatch.setattr(archive, "PAGE", 3)
    for number in range(20):
        await kept.order(days=90 - number, **PROCESSED)
    assert await kept.retention.sweep() == 20


async def test_every_bucket_has_the_same_time():
    """One that is full of old orders keeps none of the others from being looked at."""
    made = app(replace(in_memory(), clock=lambda: NOW), retention_days=30, buckets=100)
    read = []
    oldest = made.operations.archive.oldest

    async def full(bucket, before, start):
        page = await oldest(bucket, before, start)
        await asyncio.sleep(0)  # as over the wire, others go on meanwhile
        read.append(bucket)
        return replace(page, continuation=f"{bucket}-{len(read):026d}")

    made.operations.archive.oldest = full
    await replace(made.operations.services.retention, clock=time_for(300)).sweep()
    assert set(Counter(read).values()) == {3, 4}


def behind(caplog):
    """What the last run said that it does not keep pace with."""
    lines = [line for line in caplog.records if line.message == "retention.behind"]
    caplog.clear()
    return [(line.levelname, line.what) for line in lines]


async def test_a_run_that_leaves_what_should_long_be_gone_says_so(kept, caplog, monkeypatch):
    """Not if the rest has become too old only within a day: the next runs remove it. Nor does it count what stays."""
    monkeypatch.setattr(archive, "PAGE", 4)
    for days in (50, 49, 30.9, 30.8):
        await kept.order(days=days, **PROCESSED)
    assert await short_run(kept, parts=1) == 1
    assert behind(caplog) == [("ERROR", ["b00"])]
    assert await short_run(kept, parts=1) == 1
    assert behind(caplog) == []
    assert await short_run(kept, parts=9) == 2
    assert behind(caplog) == []


async def test_so_does_one_that_leaves_alerts_poison_or_keys(caplog, monkeypatch):
    """All are removed for as long as there is time, and what is left when it is up is told of."""
    monkeypatch.setattr("operations.api.retention.MAX_ALERTS", 2)
    monkeypatch.setattr("operations.api.poison.MAX_REMOVED", 2)
    monkeypatch.setattr("engine.storage.submission_keys.MOST", 2)
    there = app(in_memory())
    kept = Kept(there, there.engine.submission_keys)
    await fill(kept.made, NOW - 40 * DAY)
    assert await short_run(kept, parts=1) == 0
    assert behind(caplog) == [("ERROR", ["alerts", "poison", "keys"])]
    await short_run(kept, parts=20)
    assert behind(caplog) == []
    assert await left_of(kept.made) == (0, 0, 0)

    await fill(kept.made, NOW - 30 * DAY - LATE / 2)
    await short_run(kept, parts=1)
    assert behind(caplog) == []
    assert await left_of(kept.made) == (5, 5, 5)


FIRST, SECOND = (Binding(order_id=f"order-{number}", fingerprint="p") for number in (1, 2))


async def fill(made, at):
    """Seven alerts, poison messages and keys of that time."""
    made.engine.submission_keys._clock = lambda: at
    for number in range(7):
        await made.operations.alert_log.record(
            OperatorEvent(event_id=f"{at}{number}", type="T", subject="s", at=at, data={})
        )
        await made.engine.poison_store.put(
            SUBMISSIONS, f"{number}".encode(), refusal("r"), Arrival(at=at)
        )
        await made.engine.submission_keys.claim(SAME_PARTITION[number], FIRST)


async def left_of(made):
    """How many alerts, poison messages and keys there are."""
    alerts, poison = (
        await made.operations.alert_log.newest(100),
        await made.engine.poison_store.page(SUBMISSIONS, 100),
    )
    keys = await made.engine.adapters.table("submissionkeys").rows("00", "!", "~")
    return len(alerts), len(poison), len([row for row in keys if not row.key.startswith("!")])


async def test_what_a_crash_leaves_of_an_order_is_removed_the_next_time(kept):
    """The order goes first, in one transaction; its history may be left over, and is no order."""
    order_id = await kept.order(days=40, notes=3, **PROCESSED)
    (order,) = (await kept.made.operations.archive.oldest("b00", NOW, "")).orders
    start, end = history_range(order_id)
    await kept.made.operations.archive.remove(
        replace(order, keys=[key for key in order.keys if not start <= key < end])
    )
    assert await kept.made.engine.store.load(order_id) is None
    assert len(await kept.made.engine.store.history(order_id)) == 4
    assert await kept.retention.sweep() == 1
    assert await kept.made.engine.store.history(order_id) == []


async def test_removing_what_somebody_else_removes_is_no_error(kept):
    """Two hosts may do it at once."""
    order_id = await kept.order(days=40, notes=2, **PROCESSED)
    (order,) = (await kept.made.operations.archive.oldest("b00", NOW, "")).orders
    await kept.made.operations.archive.remove(order)
    await kept.made.operations.archive.remove(order)
    assert await kept.left(order_id) == []


async def test_old_alerts_are_removed_too(kept):
    """Whether or not somebody has acknowledged them."""
    alerts = [
        OperatorEvent(event_id=str(uuid4()), type="T", subject="s", at=NOW - days * DAY, data={})
        for days in (40, 20)
    ]
    for alert in alerts:
        await kept.made.operations.alert_log.record(alert)
    await kept.retention.sweep()
    left = [alert.event for alert in await kept.made.operations.alert_log.newest(1000)]
    assert [alert in left for alert in alerts] == [False, True]
    assert (
        await kept.made.operations.alert_log.remove_before(NOW, 1000) == 1
    )  # other tests count alerts


async def test_old_poison_messages_are_removed_too(kept):
    """By when they arrived, whole and exactly those."""
    for days in (40, 30.0001, 20):
        await kept.made.engine.poison_store.put(
            SUBMISSIONS, b"x" * 70_000, refusal("r"), Arrival(at=NOW - days * DAY)
        )
    await kept.retention.sweep()
    (left,) = await kept.made.engine.poison_store.page(SUBMISSIONS, 100)
    assert left.at == NOW - 20 * DAY
    await kept.made.engine.poison_store.remove(SUBMISSIONS, left.message_id)


async def test_old_keys_of_customers_are_forgotten_too(made):
    """As long as the order that they stand for; then the key is as good as new."""
    now = made.engine.adapters.clock()
    retention = replace(Kept(made, made.engine.submission_keys).retention, clock=lambda: now)
    key = str(uuid4())
    assert await made.engine.submission_keys.claim(key, FIRST) == FIRST
    now += 30 * DAY
    await retention.sweep()
    assert await made.engine.submission_keys.claim(key, SECOND) == FIRST
    now += DAY
    await retention.sweep()
    assert await made.engine.submission_keys.claim(key, SECOND) == SECOND


async def test_a_customer_is_erased_and_the_history_stays(kept):
    """All orders of that customer, found by the e-mail address, and of nobody else; the history says who did it."""
    hers = [
        await kept.order(days=days, email="Ada@Example.com", **PROCESSED) for days in (300, 20, 1)
    ]
    other = await kept.order(days=2, email="grace@example.com")
    assert sorted(await found(kept, "ada@example.com")) == sorted(hers)
    for order_id in hers:
        await kept.retention.erase(order_id, OperatorRequest(**GRACE))
        order = await kept.made.engine.store.load(order_id)
        assert order.submitted.payload["customer"] == {"name": "erased", "email": "erased"}
        assert order.submitted.payload["items"]
        assert [entry.event for entry in await kept.made.engine.store.history(order_id)] == [
            "submitted",
            "erased",
        ]
    assert await found(kept, "ada@example.com") == []
    assert (await kept.made.engine.store.load(other)).submitted.payload == content_of(
        "grace@example.com"
    )


async def test_a_customer_is_looked_for_in_every_bucket():
    """One after the other, to the last."""
    retention, places, continuation = (
        app(in_memory(), buckets=3).operations.services.retention,
        [],
        None,
    )
    while not places or continuation:
        page = await retention.find(
            FindRequest(email="ada@example.com", continuation=continuation, **GRACE)
        )
        places.append(continuation := page.continuation)
    assert places == ["b01-", "b02-", None]


async def test_every_page_of_a_search_for_a_customer_is_logged_without_the_customer(kept, caplog):
    """A page may be the first that somebody reads."""
    caplog.set_level("INFO")
    await kept.order(days=1, email="ada@example.com", **PROCESSED)
    await kept.retention.find(FindRequest(email="ada@example.com", **GRACE))
    await kept.retention.find(FindRequest(email="ada@example.com", continuation="b00-", **GRACE))
    searched = [record for record in caplog.records if record.msg == "operators.customer_searched"]
    assert [record.operator for record in searched] == ["grace", "grace"]
    assert "ada@example.com" not in caplog.text


async def found(kept, email):
    orders, continuation = [], None
    while True:
        request = FindRequest(email=email, continuation=continuation, **GRACE)
        page = await kept.retention.find(request)
        orders += page.orders
        if (continuation := page.continuation) is None:
            return orders


async def test_with_a_customer_go_submissions_that_nobody_could_read(kept):
    """Those that name the order, also if it was never recorded; others stay."""
    recorded, refused, other = (
        await kept.order(days=1, **PROCESSED),
        "b00-" + "7" * 26,
        "b00-" + "8" * 26,
    )
    for order_id in (recorded, refused, other):
        await kept.made.engine.poison_store.put(
            SUBMISSIONS, f'{{"orderId": "{order_id}"'.encode(), refusal("r"), Arrival(at=NOW)
        )
    await kept.retention.erase(recorded, OperatorRequest(**GRACE))
    with pytest.raises(UnknownOrderError):
        await kept.retention.erase(refused, OperatorRequest(**GRACE))
    (left,) = await kept.made.engine.poison_store.page(SUBMISSIONS, 100)
    assert other in left.body.decode()
    await kept.made.engine.poison_store.remove(SUBMISSIONS, left.message_id)


def test_an_erased_order_goes_on_as_before():
    """Nothing but the customer changes: steps need no personal data."""
    order = orders.new()
    now = order.derived.ready_since
    change = erase(order, OperatorRequest(**GRACE), PAYLOAD, now)
    assert change.after.steps == order.steps
    assert (change.entry.actor, in_words(change.entry.events)) == (
        "operator/grace",
        "the customer asked for it",
    )
    after = replace(change.after, submitted=order.submitted)
    assert after == orders.having(order, version=2, updated_at=now)


async def test_what_a_sweep_costs_does_not_depend_on_how_many_young_orders_there_are(
    on_azurite, transport
):
    """One range of each partition, up to the age: orders, actions, alerts, poison, keys, figures, health; and two more.

    A bucket's place, and what waits for the channels that are off.
    """
    kept, costs = Kept(on_azurite, on_azurite.engine.submission_keys), []
    await kept.empty()
    for _ in range(2):
        transport.requests.clear()
        await kept.retention.sweep()
        costs.append(len(transport.requests))
        for _ in range(30):
            await kept.order(days=1, **PROCESSED)
    queues = len(await kept.retention.poison._queues())
    assert costs == [8 + queues + len(PARTITIONS)] * 2


async def test_an_order_that_is_not_there_whole_is_kept_and_named_to_who_looks_for_a_customer(kept):
    """It may be theirs, and nobody can erase it before it is mended."""
    halves = [await kept.order(days=40, email="half@example.com", **PROCESSED) for _ in range(2)]
    missing = [
        Delete(key(order_id)) for key, order_id in zip((state_key, order_key), halves, strict=True)
    ]
    await kept.made.engine.store.table.submit("b00", missing)
    assert await kept.retention.sweep() == 0
    page = await kept.retention.find(FindRequest(email="half@example.com", **GRACE))
    assert (page.orders, sorted(page.unreadable)) == ([], sorted(halves))
    for order in (await kept.made.operations.archive.oldest("b00", NOW, "")).orders:
        await kept.made.engine.store.table.submit_separately(
            "b00", [Delete(key) for key in order.keys]
        )
