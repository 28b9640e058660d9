"""What is left when something old is removed, and the process dies before the end."""

import math
from dataclasses import replace

import pytest

from engine.decisions.transitions import HistoryEntry, Note, OperatorEvent, Transition
from engine.domain.errors import UnavailableError
from engine.domain.keys import bucket_of
from engine.storage.alert_log import AlertLog
from engine.storage.archive import Archive
from engine.storage.orders import OrderStore
from engine.storage.submission_keys import Binding, SubmissionKeys
from engine.storage.tables import entity, stored_form
from testkit.memory import MemoryTable, of_columns
from tests.support.builders import NOW, ORDER_ID, orders, seconds, some

LATER = NOW + seconds(1)
BUCKET = bucket_of(ORDER_ID)


class CutShort(MemoryTable):
    """A table that takes so many more writes, and then none."""

    def __init__(self):
        super().__init__(lambda row: entity("memory", "", stored_form(row)))
        self.writes, self.most = 0, math.inf

    async def submit(self, partition, operations):
        if self.writes >= self.most:
            raise UnavailableError
        self.writes += 1
        return await super().submit(partition, operations)

    def dies_after(self, writes):
        self.writes, self.most = 0, writes

    @property
    def rows_left(self):
        return [key for rows in self.partitions.values() for key in rows]


async def with_keys(table):
    keys = SubmissionKeys(table, lambda: NOW)
    for number in range(3):
        await keys.claim(f"key {number}", Binding(order_id=ORDER_ID))
    return lambda: keys.remove_before(LATER)


async def with_alerts(table):
    alerts = AlertLog(table)
    for number in range(3):
        await alerts.record(
            OperatorEvent(event_id=f"a:{number}", type="T", subject="orders/x", at=NOW, data={})
        )
    return lambda: alerts.remove_before(LATER, 100)


async def with_an_order(table):
    store = OrderStore(table, [BUCKET])
    archive = Archive(store, of_columns())
    entry = HistoryEntry(at=NOW, actor="t", events=some("noted"))
    ended = orders.processed()
    await store.commit(Transition(before=None, after=ended, entry=entry))
    for number in range(3):
        await store.note(Note(note_id=f"n{number}", order_id=ORDER_ID, version=1, entry=entry))

    async def remove():
        for order in (await archive.oldest(BUCKET, None, "")).orders:
            await archive.remove(order)

    return remove


REMOVALS = {"keys of customers": with_keys, "alerts": with_alerts, "an order": with_an_order}


async def cut_short(filled):
    """Yield the table and what removes it all, after a removal that died after 0, 1, … writes."""
    table = CutShort()
    remove = await filled(table)
    table.dies_after(math.inf)
    await remove()
    assert table.writes > 3
    for writes in range(table.writes):
        table = CutShort()
        remove = await filled(table)
        table.dies_after(writes)
        try:
            await remove()
        except* UnavailableError:
            table.dies_after(math.inf)
        yield table, remove


@pytest.mark.parametrize("what", REMOVALS)
async def test_what_a_removal_that_was_cut_short_left_goes_with_the_next_one(what):
    """Wherever it was cut: by which rows the old ones are found, those go last."""
    async for table, remove in cut_short(REMOVALS[what]):
        assert table.rows_left
        await remove()
        assert table.rows_left == []


async def test_an_order_is_there_with_its_whole_history_or_is_gone():
    """However far its removal has come: nobody ever sees an order, and not what became of it."""
    async for table, _ in cut_short(with_an_order):
        store = OrderStore(table, [BUCKET])
        order, history = await store.load(ORDER_ID), await store.history(ORDER_ID)
        assert order is None or len(history) == 4


async def test_an_order_that_has_changed_meanwhile_is_not_removed():
    """Nor is its history: of what was to be removed, a row is there no more."""
    table = CutShort()
    await with_an_order(table)
    archive = Archive(OrderStore(table, [BUCKET]), of_columns())
    (order,) = (await archive.oldest(BUCKET, None, "")).orders
    before = table.rows_left
    await archive.remove(replace(order, keys=[*order.keys, f"{ORDER_ID}|gone"]))
    assert table.rows_left == before
