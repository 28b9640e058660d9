"""What every state store has to do: in memory, of columns or of records, and on tables."""

import asyncio
from dataclasses import replace
from datetime import datetime

import pytest

from engine.azure.clock import order_ids, utc_now
from engine.decisions.transitions import HistoryEntry, Note, OperatorEvent, Transition
from engine.domain import exact_json, work_index
from engine.domain.causes import Code
from engine.domain.errors import ConflictError, UnreadableRowError
from engine.domain.keys import LAST, bucket_of, history_key, order_key, state_key
from engine.domain.orders import OrderAggregate
from engine.domain.submitted_order import Priority
from engine.storage import outbox
from engine.storage.archive import Archive
from engine.storage.tables import Delete, Insert, Put, columns_of, entity
from engine.storage.unit_of_work import UnitOfWork
from operations.api.requests import OperatorRequest
from operations.api.retention import erase
from testkit.memory import MemoryStateStore, in_memory
from tests.support.apps import app
from tests.support.builders import (
    NOW,
    PAYLOAD,
    answer,
    index_rows,
    next_try,
    orders,
    scheduler,
    seconds,
    some,
    steps,
    supervisor,
    transition,
)
from tests.support.outbox import outbox_rows, pending_events

new_id = order_ids(8)
HOSTILE = "'; DROP TABLE orders; -- <b>\"\\\u202e\U0001f9a0 | %s {{x}} \u00e9"


@pytest.fixture(params=["records", "memory", "azurite"])
def made(request):
    """The app, on parts of either kind, or with the store that the explorer has."""
    made = request.getfixturevalue("on_azurite") if request.param == "azurite" else app(in_memory())
    if request.param == "records":
        made.engine.store = MemoryStateStore()
        made.operations.archive = Archive(made.engine.store, made.engine.adapters.table("agents"))
    return made


def submission(order_id=None, to=orders.pending, **details) -> Transition:
    """The first version of a new order, in this state."""
    order_id = order_id or new_id()
    order = to(order_id=order_id, **details)
    entry = HistoryEntry(
        at=NOW, actor="submission/i", events=some("submitted"), change_id=f"create-{order_id}"
    )
    return Transition(before=None, after=order, entry=entry)


async def recorded(store, **details):
    change = submission(**details)
    await store.commit(change)
    return await store.load(change.after.order_id)


def held(order) -> Transition:
    """Somebody puts the order on hold, which leaves its steps as they are."""
    after = orders.on_hold(order)
    return transition(order, after, HistoryEntry(at=NOW, actor="t", events=some("held")))


def claim(order, change_id="claim-1") -> Transition:
    return scheduler.claim(order, NOW).identified(change_id)


async def work_items_of(store, order_id):
    rows = await store.work_items(bucket_of(order_id), "!", "~", 1000)
    return [row.key for row in rows if row.order_id == order_id]


@pytest.mark.proves("SUB-2")
async def test_an_order_comes_back_as_it_was_recorded(made):
    """Order, state, steps and history are there after one commit; null properties stay null."""
    change = submission()
    await made.engine.store.commit(change)
    order = await made.engine.store.load(change.after.order_id)
    assert order == orders.recorded(change.after)
    assert order.etag
    assert await made.engine.store.history(order.order_id) == [change.entry]
    assert await work_items_of(made.engine.store, order.order_id) == list(index_rows(order))


OF_A_NEWER_VERSION = {"Tenant": "acme", "Rank": 7, "Weight": 3.0, "Gift": True, "PromisedFor": NOW}
"""Of each type that a row of ours may have."""


def with_regions(columns):
    """Return the columns of a state row as a newer version has them, which says more of each part of a step."""
    (step,), (rules,) = exact_json.read(columns["Steps"]), exact_json.read(columns["Rules"])
    for part in (step, step["ExactState"], step["Effect"], step["Effect"]["Key"], rules):
        part["Region"] = ["eu"]
    return {**columns, "Steps": exact_json.write([step]), "Rules": exact_json.write([rules])}


def regions_in(columns):
    """Return what is there of it: of the step, its exact state, its effect, the key, and the rules."""
    (step,), (rules,) = exact_json.read(columns["Steps"]), exact_json.read(columns["Rules"])
    parts = (step, step["ExactState"], step["Effect"], step["Effect"].get("Key", {}), rules)
    return ["Region" in part for part in parts]


@pytest.mark.proves("FLT-12")
@pytest.mark.parametrize("made", ["memory", "azurite"], indirect=True)
async def test_what_a_newer_version_keeps_in_an_order_outlives_every_change_by_an_older_one(made):
    """Columns of either row, with their types, and what it says of a step: through a reply, and an erasure.

    The reply ends the exact state and the effect, and what was said of them.
    """
    order_id, store = (
        (await recorded(made.engine.store, to=orders.processing)).order_id,
        made.engine.store,
    )
    bucket, keys = bucket_of(order_id), (order_key(order_id), state_key(order_id))

    async def rows():
        return [columns_of(row) for key in keys if (row := await store.table.get(bucket, key))]

    for key, columns in zip(keys, await rows(), strict=True):
        newer = with_regions(columns) if "Steps" in columns else columns
        await store.table.submit(bucket, [Put(key, newer | OF_A_NEWER_VERSION)])
    claimed = await store.commit(held(await store.load(order_id)))
    _, of_state = await rows()
    assert regions_in(of_state) == [True] * 5
    reply = answer(order_id=order_id, result={"reference": "r"})
    await store.commit(scheduler.receive(claimed, reply, NOW).identified("reply-1"))
    request = OperatorRequest(operator="grace", note="x")
    await store.commit(
        erase(await store.load(order_id), request, PAYLOAD, NOW).identified("erase-1")
    )
    of_order, of_state = await rows()
    assert (of_state["Version"], "Result00" in of_state) == (4, True)
    assert regions_in(of_state) == [True, False, False, True, True]
    for columns in (of_order, of_state):
        kept = {name: columns.get(name) for name in OF_A_NEWER_VERSION}
        assert kept == OF_A_NEWER_VERSION
        assert [type(value) for value in kept.values()] == [str, int, float, bool, datetime]


async def test_a_commit_returns_the_order_as_loading_it_would(made):
    """So that whoever comes next need not read it: the new ETags are those of the stored rows."""
    order = await made.engine.store.commit(submission())
    assert await made.engine.store.load(order.order_id) == order
    order = await made.engine.store.commit(claim(order))
    assert await made.engine.store.load(order.order_id) == order


async def test_there_is_no_such_order(made):
    """An unknown id is None, not an error."""
    assert await made.engine.store.load(new_id()) is None


@pytest.mark.proves("SUB-3")
async def test_an_order_is_recorded_once(made):
    """A second creation is a conflict and leaves the first as it is."""
    order = await recorded(made.engine.store)
    with pytest.raises(ConflictError):
        await made.engine.store.commit(submission(order.order_id, failures=7))
    assert await made.engine.store.load(order.order_id) == order


@pytest.mark.proves("SCH-2", "SUP-4")
async def test_of_many_commits_from_one_snapshot_exactly_one_wins(made):
    """All others conflict, and nothing of theirs is written."""
    order = await recorded(made.engine.store)
    changes = [claim(order, f"claim-{number}") for number in range(10)]
    outcomes = await asyncio.gather(*map(made.engine.store.commit, changes), return_exceptions=True)
    (won,) = [
        number for number, outcome in enumerate(outcomes) if isinstance(outcome, OrderAggregate)
    ]
    assert [type(outcome) for outcome in outcomes].count(ConflictError) == 9
    winner = changes[won]
    assert [await made.engine.store.committed(change) for change in changes].count(True) == 1
    assert await made.engine.store.committed(winner)
    assert (await made.engine.store.load(order.order_id)).version == 2


async def test_a_property_that_becomes_null_is_gone(made):
    """LockedBy and CompleteBy are cleared by a replace; a merge would keep them."""
    order = await recorded(made.engine.store, to=orders.processing)
    assert None not in (order.derived.locked_by, order.derived.complete_by)
    after = orders.processed(order, version=2)
    await made.engine.store.commit(
        Transition(
            before=order,
            after=after,
            entry=HistoryEntry(at=NOW, actor="t", events=some("freed"), change_id="f"),
        )
    )
    derived = (await made.engine.store.load(order.order_id)).derived
    assert (derived.locked_by, derived.complete_by) == (None, None)


async def test_the_work_index_follows_the_state(made):
    """A claim removes the pending row and adds the running one, in the same transaction."""
    order = await recorded(made.engine.store)
    change = claim(order)
    await made.engine.store.commit(change)
    assert await work_items_of(made.engine.store, order.order_id) == list(index_rows(change.after))


@pytest.mark.proves("FLT-12")
async def test_an_order_goes_on_after_a_newer_version_that_has_other_keys_for_what_it_owes(
    made, monkeypatch
):
    """What was written is removed, whatever this version would have written: nothing conflicts, and nothing is left."""
    with monkeypatch.context() as newer:
        newer.setattr(work_index, "claim_lane", lambda priority, needs: f"!pending|{priority}|")
        order = await recorded(made.engine.store)
        (newer_key,) = await work_items_of(made.engine.store, order.order_id)
    assert newer_key not in index_rows(order)
    await made.engine.store.commit(change := claim(order))
    assert await work_items_of(made.engine.store, order.order_id) == list(index_rows(change.after))


async def test_what_the_work_index_says_of_an_order_follows_its_state(made):
    """Also while the work item stays the same: of two steps that run, one ends, and the other is due when it was."""
    order = await recorded(made.engine.store)
    payment = steps.running(complete_by=NOW)
    stock = steps.running("stock", complete_by=NOW, agent="inventory")
    both = orders.processing(order, steps=[payment, stock])
    entry = HistoryEntry(at=NOW, actor="t", events=some("e"), change_id="c1")
    order = await made.engine.store.commit(transition(order, both, entry))
    one = orders.with_steps(order, steps.completed(stock))
    await made.engine.store.commit(transition(order, one, replace(entry, change_id="c2")))
    rows = await made.engine.store.work_items(
        bucket_of(order.order_id), *work_index.all_of(work_index.WorkItemKind.RUNNING), 1000
    )
    assert [row.data["Agents"] for row in rows if row.order_id == order.order_id] == ["payment"]


async def test_the_work_index_is_read_in_order_and_by_pages(made):
    """Start is included, end is not, the limit holds, and the rows are sorted by key."""
    bucket = "b99"
    at = [NOW + seconds(number) for number in range(5)]
    for number, time in enumerate(at):
        await made.engine.store.commit(submission(f"b99-{str(number) * 26}", ready_since=time))
    start = work_index.claim_lane(Priority.NORMAL, "payment")
    (*_, last) = every = await made.engine.store.work_items(bucket, start, start + LAST, 100)
    assert [row.order_id[4] for row in every] == ["0", "1", "2", "3", "4"]
    end = last.key
    rows = await made.engine.store.work_items(bucket, start, end, 100)
    assert rows == every[:-1]
    assert [row.key for row in await made.engine.store.work_items(bucket, start, end, 2)] == [
        row.key for row in rows[:2]
    ]
    assert await made.engine.store.work_items(bucket, rows[1].key, rows[3].key, 100) == rows[1:3]


@pytest.mark.proves("SCH-6")
async def test_a_note_is_kept_once_and_changes_no_state(made):
    """The same note again changes nothing, and neither does it touch the order's rows."""
    order = await recorded(made.engine.store)
    note = Note(
        note_id="late-1",
        order_id=order.order_id,
        version=1,
        entry=HistoryEntry(at=NOW, actor="t", events=some("noted", HOSTILE)),
        events=(
            OperatorEvent(
                event_id="e1", type="T", subject="orders/x", at=NOW, data={"a": [1, {"b": None}]}
            ),
        ),
    )
    await made.engine.store.note(note)
    await made.engine.store.note(note)
    assert await made.engine.store.load(order.order_id) == order
    assert [entry.event for entry in await made.engine.store.history(order.order_id)] == [
        "submitted",
        "noted",
    ]
    assert note.events[0] in await pending_events(made.engine.store, bucket_of(order.order_id))


@pytest.mark.proves("ALR-1")
async def test_the_outbox_keeps_an_event_until_it_is_confirmed(made):
    """Announced twice it stands there once, comes back as it was, and confirming it twice is no error."""
    data = {"orderId": None, "reason": HOSTILE}
    event = OperatorEvent(
        event_id="rejected:abc/1?#", type="T", subject="orders/unknown", at=NOW, data=data
    )
    bucket = "b98"
    await made.engine.store.announce(bucket, event)
    await made.engine.store.announce(bucket, event)
    (row,) = await outbox_rows(made.engine.store, bucket)
    assert outbox.content_of(row) == event
    await made.engine.store.confirm(bucket, [row.key])
    await made.engine.store.confirm(bucket, [row.key])
    assert await outbox_rows(made.engine.store, bucket) == []


@pytest.mark.proves("ALR-1", "ALR-2")
async def test_what_is_put_off_stands_in_the_outbox_once_and_what_was_sent_not_again(made):
    """Whoever comes second changes nothing more; what takes the place of several things stands there once."""
    bucket = "b97"
    await made.engine.store.announce(
        bucket, OperatorEvent(event_id="e", type="T", subject="orders/x", at=NOW, data={})
    )
    (first,) = await outbox_rows(made.engine.store, bucket)
    later = outbox.postponed(first, NOW + seconds(5), 1)
    for _ in range(2):
        await made.engine.store.postpone(bucket, first.key, later)
    assert await outbox_rows(made.engine.store, bucket) == [later]
    await made.engine.store.announce(bucket, outbox.content_of(first))
    await made.engine.store.postpone(bucket, first.key, later)
    assert await outbox_rows(made.engine.store, bucket) == [later]
    await made.engine.store.confirm(bucket, [later.key])
    await made.engine.store.postpone(bucket, later.key, first)
    assert await outbox_rows(made.engine.store, bucket) == []


async def overwrite(store, bucket, key, **columns):
    """Let a row hold what no version of the app, or only a newer one, writes."""
    if isinstance(store, MemoryStateStore):
        store.rows[bucket][key] = (99, {**entity(bucket, key, {}), **columns})
    else:
        await store.table.submit(bucket, [Put(key, columns)])


async def three_in(store, bucket):
    """Three orders that wait one after the other, each with an event for operators; the keys of all their rows."""
    ids = [f"{bucket}-{str(number) * 26}" for number in range(3)]
    for order_id in ids:
        event = OperatorEvent(
            event_id=order_id, type="T", subject=f"orders/{order_id}", at=NOW, data={}
        )
        await store.commit(submission(order_id))
        await store.announce(bucket, event)
    return ids


UNREADABLE = {"newer": {"SchemaVersion": 99}, "no version": {"SchemaVersion": "x"}, "empty": {}}


@pytest.mark.proves("FLT-6", "FLT-12")
@pytest.mark.parametrize("wrong", UNREADABLE)
async def test_a_row_that_cannot_be_read_concerns_its_order_alone(made, wrong):
    """Whoever reads it beside others gets the others as they are, and of this one whose it is, and that it is wrong."""
    bucket = f"b{80 + list(UNREADABLE).index(wrong)}"
    one, bad, other = await three_in(made.engine.store, bucket)
    pending, unsent = (
        work_index.all_of(work_index.WorkItemKind.PENDING),
        await outbox_rows(made.engine.store, bucket),
    )
    rows = await made.engine.store.work_items(bucket, *pending, 10)
    for key in (rows[1].key, unsent[1].key, f"{bad}|state"):
        await overwrite(made.engine.store, bucket, key, **UNREADABLE[wrong])
    seen = await made.engine.store.work_items(bucket, *pending, 10)
    assert [row.order_id for row in seen] == [one, bad, other]
    assert (seen[0], seen[2]) == (rows[0], rows[2])
    assert not seen[1].data
    assert bool(seen[1].fault) is (wrong != "empty")
    left = await outbox_rows(made.engine.store, bucket)
    assert [row.key for row in left] == [row.key for row in unsent]
    assert (left[0], left[2]) == (unsent[0], unsent[2])
    assert not left[1].data
    kept = {
        archived.order_id: (archived.record is None, bool(archived.fault))
        for archived in await all_kept(made.operations.archive, bucket)
    }
    assert kept == {one: (False, False), bad: (True, True), other: (False, False)}
    with pytest.raises(UnreadableRowError):
        await made.engine.store.load(bad)


async def all_kept(archive, bucket):
    """All orders of a bucket, page by page."""
    page = await archive.oldest(bucket, None, "")
    orders = [*page.orders]
    while page.continuation:
        page = await archive.oldest(bucket, None, page.continuation)
        orders += page.orders
    return orders


@pytest.mark.proves("SUB-2", "SCH-2")
async def test_an_order_without_steps_cannot_be_read(made):
    """It would pass for one that needs no more, and would be called processed."""
    order = await recorded(made.engine.store)
    without = orders.having(order, steps=())
    entry = HistoryEntry(at=NOW, actor="t", events=some("lost"), change_id="lost")
    await made.engine.store.commit(transition(order, without, entry))
    with pytest.raises(UnreadableRowError, match=Code.NO_STEPS):
        await made.engine.store.load(order.order_id)


@pytest.mark.proves("FLT-6")
@pytest.mark.parametrize("missing", ["order", "state"])
async def test_an_order_of_which_a_row_is_missing_cannot_be_read_and_is_kept(made, missing):
    """It is no unknown order, and none that nobody needs: what is left of it is all there is to mend it by."""
    order = await recorded(made.engine.store)
    rows, bucket = (
        {f"{order.order_id}|{kind}" for kind in ("order", "state")},
        bucket_of(order.order_id),
    )
    gone = f"{order.order_id}|{missing}"
    await made.engine.store.table.submit(bucket, [Delete(gone)])
    with pytest.raises(UnreadableRowError, match=Code.ROW_MISSING):
        await made.engine.store.load(order.order_id)
    (kept,) = [
        archived
        for archived in await all_kept(made.operations.archive, bucket)
        if archived.order_id == order.order_id
    ]
    assert (kept.record, kept.fault) == (
        None,
        Code.ROW_MISSING,
    )
    await made.engine.store.table.submit(
        bucket, [Delete(key) for key in rows - {gone}]
    )  # nobody else would


@pytest.mark.proves("FLT-6", "SCH-2")
async def test_an_order_that_conflicts_for_ever_takes_no_other_of_its_group_commit_along(
    on_azurite,
):
    """The history row of its next version is there: who commits with it, at the same time, is committed."""
    store = on_azurite.engine.store
    ids = await three_in(store, "b84")
    await overwrite(store, "b84", history_key(ids[1], 2), Event="left over")
    claims = [claim(await store.load(order_id), f"claim-{order_id}") for order_id in ids]
    for _ in range(2):
        outcomes = await asyncio.gather(*map(store.commit, claims), return_exceptions=True)
        assert isinstance(outcomes[1], ConflictError)
    assert [(await store.load(order_id)).version for order_id in ids] == [2, 1, 2]


@pytest.mark.parametrize("text", [HOSTILE, "Edm.DateTime"], ids=["hostile", "type"])
async def test_hostile_text_comes_back_unchanged(made, text):
    """Whatever people write into names, reasons and notes is text, and so is the name of a type."""
    change = submission(to=orders.in_error, reason=text, payload={text: text})
    await made.engine.store.commit(change)
    order = await made.engine.store.load(change.after.order_id)
    assert (order.submitted.payload, order.cause) == ({text: text}, change.after.cause)
    assert order.cause.facts["detail"] == text


async def test_a_time_without_a_zone_is_refused(made):
    """A naive datetime means something else on another machine."""
    naive = datetime(2026, 1, 31)  # noqa: DTZ001 - that is the point
    change = submission(to=orders.processing)
    running = change.after.with_steps(steps.running(complete_by=naive))
    change = replace(change, after=running)
    with pytest.raises(ValueError, match="zone"):
        await made.engine.store.commit(change)


@pytest.mark.proves("FLT-7")
async def test_an_answer_that_was_lost_is_not_taken_for_a_lost_race(on_azurite, transport):
    """Azurite commits, the answer is lost on the way: the order was claimed once, and its request is sent."""
    order = await recorded(on_azurite.engine.store)
    unit_of_work = UnitOfWork(on_azurite.engine.store, in_memory_bus := Sent(), utc_now, new_id)
    transport.lose_answers = 1
    await unit_of_work.run(order.order_id, scheduler.claim)
    assert transport.lose_answers == 0
    assert (await on_azurite.engine.store.load(order.order_id)).step("payment").counts.attempts == 1
    assert len(in_memory_bus.messages) == 1


class Sent:
    """A bus that notes what was sent."""

    def __init__(self):
        self.messages = []

    async def send(self, messages):
        self.messages.extend(messages)


async def test_orders_of_one_bucket_are_committed_together(on_azurite, transport):
    """Many concurrent commits in a bucket take far fewer transactions, and one that conflicts fails alone."""
    ids = [f"b97-{number:026d}" for number in range(40)]
    transport.requests.clear()
    await asyncio.gather(
        *(on_azurite.engine.store.commit(submission(order_id)) for order_id in ids)
    )
    assert len(transport.requests) <= 6
    fresh = [f"b97-{number:026d}" for number in range(100, 110)]
    outcomes = await asyncio.gather(
        *(
            on_azurite.engine.store.commit(submission(order_id))
            for order_id in [*fresh[:5], ids[0], *fresh[5:]]
        ),
        return_exceptions=True,
    )
    assert [isinstance(outcome, ConflictError) for outcome in outcomes] == [False] * 5 + [True] + [
        False
    ] * 5


async def test_many_conflicts_in_a_group_do_not_hold_up_the_others(on_azurite, transport):
    """Half of a group conflicts: all others are written, in not many more requests than there are orders."""
    taken = [f"b96-{number:026d}" for number in range(10)]
    await asyncio.gather(
        *(on_azurite.engine.store.commit(submission(order_id)) for order_id in taken)
    )
    fresh = [f"b96-{number:026d}" for number in range(100, 110)]
    mixed = [order_id for pair in zip(taken, fresh, strict=True) for order_id in pair]
    transport.requests.clear()
    outcomes = await asyncio.gather(
        *(on_azurite.engine.store.commit(submission(order_id)) for order_id in mixed),
        return_exceptions=True,
    )
    assert [not isinstance(outcome, Exception) for outcome in outcomes] == [
        order_id in fresh for order_id in mixed
    ]
    assert len(transport.requests) <= len(mixed) + 6


@pytest.fixture(params=[True, False], ids=["named", "unnamed"])
def error_names_the_operation(request, transport):
    """Errors that name the refused operation of a transaction, and errors that do not."""
    transport.names_operations = request.param
    yield
    transport.names_operations = True


async def at_once(*submitted):
    """Submit all while a first write of the same partition is under way, so that they share the next transaction."""
    return await asyncio.gather(*submitted, return_exceptions=True)


@pytest.mark.proves("SUB-2")
@pytest.mark.parametrize("place", [0, 2, 4], ids=["first", "middle", "last"])
@pytest.mark.usefixtures("error_names_the_operation")
async def test_an_order_that_is_refused_takes_no_other_of_its_group_along(on_azurite, place):
    """Whichever of them it is, and whether or not the error says so: it alone is refused, the others are recorded."""
    prefix = f"b95-{new_id()[4:-4]}"
    taken, *fresh = [f"{prefix}{number:04d}" for number in range(6)]
    await on_azurite.engine.store.commit(submission(taken))
    group = [*fresh[:place], taken, *fresh[place:]]
    outcomes = await at_once(
        *(on_azurite.engine.store.commit(submission(order_id)) for order_id in group)
    )
    assert [isinstance(outcome, ConflictError) for outcome in outcomes] == [
        outcome == taken for outcome in group
    ]
    for order_id in fresh:
        assert await on_azurite.engine.store.load(order_id), order_id


@pytest.mark.proves("ALR-1")
@pytest.mark.usefixtures("error_names_the_operation")
async def test_what_is_there_already_keeps_nothing_new_from_being_written(on_azurite):
    """Beside a note, an event, a confirmation or an alert that comes again, each new one is kept."""
    store, alerts = on_azurite.engine.store, on_azurite.operations.alert_log
    order = await recorded(store)
    bucket, event_ids = bucket_of(order.order_id), [new_id() for _ in range(4)]
    events = [
        OperatorEvent(event_id=event_id, type="T", subject="orders/x", at=NOW, data={})
        for event_id in event_ids
    ]
    entry = HistoryEntry(at=NOW, actor="t", events=some("noted"))
    notes = [
        Note(note_id=note_id, order_id=order.order_id, version=1, entry=entry)
        for note_id in event_ids
    ]
    await store.announce(bucket, events[0])
    await store.note(notes[0])
    await alerts.record(events[0])
    assert not any(
        await at_once(*(store.announce(bucket, event) for event in (*events[1:3], *events)))
    )
    assert not any(await at_once(*(store.note(note) for note in (notes[1], notes[0], *notes[2:]))))
    assert not any(
        await at_once(*(alerts.record(event) for event in (events[1], events[0], *events[2:])))
    )
    keys = {
        row.data["EventId"]: row.key
        for row in await outbox_rows(store, bucket)
        if not outbox.is_notice(row)
    }
    assert keys.keys() >= set(event_ids)
    assert len(await store.history(order.order_id)) == 1 + len(notes)
    kept = [alert.event.event_id for alert in await alerts.newest(1000)]
    assert [kept.count(event_id) for event_id in event_ids] == [1] * 4
    await store.confirm(bucket, [keys[event_ids[0]]])
    await store.confirm(bucket, [keys[event_id] for event_id in event_ids])
    assert not {event.event_id for event in await pending_events(store, bucket)} & set(event_ids)
    await alerts.remove_before(NOW + seconds(1), 1000)


@pytest.mark.proves("SUB-2")
async def test_an_order_that_no_table_can_hold_takes_no_other_of_its_group_along(on_azurite):
    """What goes wrong before anything is sent is its own matter, too."""
    table = on_azurite.engine.store.table
    rows = [Insert(new_id(), {"Value": value}) for value in (1, 2, 2**40, 3)]
    outcomes = await at_once(*(table.submit("b95", [row]) for row in rows))
    assert [isinstance(outcome, Exception) for outcome in outcomes] == [False, False, True, False]
    for row, held in zip(rows, (True, True, False, True), strict=True):
        assert bool(await table.get("b95", row.key)) is held


@pytest.mark.proves("SUP-3")
@pytest.mark.soak
async def test_an_order_with_five_hundred_transitions_still_fits(made):
    """Claimed and recovered again and again: no row or transaction grows with the number of transitions."""
    order, now = await made.engine.store.commit(submission()), NOW
    patient = orders.with_steps(order, steps.with_rules(order.step("payment"), threshold=1000))
    order = await made.engine.store.commit(
        transition(order, patient, HistoryEntry(at=now, actor="t", events=some("patient")))
    )
    while order.version < 500:
        order = await made.engine.store.commit(scheduler.claim(order, now))
        now = order.derived.complete_by + seconds(2)
        order = await made.engine.store.commit(supervisor.recover(order, now))
        now = next_try(order, now)
    assert await made.engine.store.load(order.order_id) == order
    history = await made.engine.store.history(order.order_id)
    assert len(history) == order.version
    assert [entry.event for entry in history[-2:]] == ["claimed", "recovered"]
