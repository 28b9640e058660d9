"""How an order changes: what a process remembers of it saves reads, and can do no harm when it is out of date."""

import asyncio
import json
import tracemalloc
from contextlib import suppress
from dataclasses import replace
from unittest.mock import patch

import pytest
from apps import app
from builders import NOW, ORDER_ID, PAYLOAD, answer, new_order, next_try, scheduler, some, supervisor, timed_out
from memory import in_memory

from core.changes import Change, HistoryEntry, Note
from core.errors import ConflictError, RefusedError, UnavailableError
from core.orders import ProcessState
from operators import rules as operator_rules
from operators.requests import OperatorRequest
from operators.retention import erase
from stores.transitions import MOST_CHARACTERS, Remembered, Transitions, characters_of

GRACE = OperatorRequest(operator="grace", note="asked for it")


class CountingLoads:
    """A store that counts how often it is read."""

    def __init__(self, store):
        self._store = store
        self.loads = 0

    async def load(self, order_id):
        self.loads += 1
        await asyncio.sleep(0)
        return await self._store.load(order_id)

    def __getattr__(self, name):
        return getattr(self._store, name)


class Processes:
    """Two processes on one store, in which an order was submitted to the first."""

    def __init__(self):
        self.now = NOW
        self.parts = in_memory(clock=lambda: self.now)
        self.kept = app(self.parts).store
        self.store = CountingLoads(self.kept)
        self.one, self.other = self.process(), self.process()

    def process(self):
        return Transitions(self.store, self.parts.bus, self.parts.clock, self.parts.new_id)

    async def submitted(self):
        entry = HistoryEntry(at=NOW, actor="t", happened=some("submitted"))
        await self.one.carry_out(Change(before=None, after=new_order(), entry=entry))
        return self

    async def order(self):
        return await self.kept.load(ORDER_ID)

    async def events(self):
        return [entry.event for entry in await self.kept.history(ORDER_ID)]


@pytest.fixture
async def processes():
    return await Processes().submitted()


def completes(order, now):
    return scheduler.receive(order, answer(), now)


async def test_one_process_reads_no_order_that_it_wrote(processes):
    """From the submission to the end; and then it forgets the order."""
    await processes.one.apply(ORDER_ID, scheduler.claim)
    assert processes.one.remembered.look(ORDER_ID) == await processes.order()
    await processes.one.apply(ORDER_ID, completes)
    assert (await processes.order()).state.process_state is ProcessState.PROCESSED
    assert processes.store.loads == 0
    assert processes.one.remembered.look(ORDER_ID) is None


async def test_a_process_reads_an_order_once_that_another_wrote(processes):
    """Then it knows it."""
    await processes.other.apply(ORDER_ID, scheduler.claim)
    await processes.other.apply(ORDER_ID, completes)
    assert processes.store.loads == 1


async def test_where_each_function_has_a_process_every_transition_but_the_first_reads_the_order(processes):
    """One takes the wake-up and claims, another one gets the reply."""
    await processes.process().apply(ORDER_ID, scheduler.claim)
    await processes.process().apply(ORDER_ID, completes)
    assert (await processes.order()).state.process_state is ProcessState.PROCESSED
    assert processes.store.loads == 2


@pytest.mark.proves("SCH-2", "FLT-6")
async def test_what_is_remembered_and_out_of_date_costs_a_read_and_nothing_else(processes):
    """Each process believes the order to be pending: one claims it, the other finds it claimed."""
    await processes.other.apply(ORDER_ID, lambda order, now: None)
    await processes.other.apply(ORDER_ID, scheduler.claim)
    before, sent = processes.store.loads, len(processes.parts.bus.sent)
    assert await processes.one.apply(ORDER_ID, scheduler.claim) is None
    assert processes.store.loads - before == 1
    assert await processes.events() == ["submitted", "claimed"]
    assert len(processes.parts.bus.sent) == sent == 1, "what was not written is not sent"


@pytest.mark.proves("SCH-2", "SCH-6")
async def test_nothing_to_do_is_never_concluded_from_what_is_remembered(processes):
    """Nor that a reply is to be refused, nor that an operator is: the order may have moved on."""
    await processes.one.apply(ORDER_ID, scheduler.claim)
    processes.now = timed_out(await processes.order())
    await processes.other.apply(ORDER_ID, supervisor.recover)
    assert isinstance(await processes.one.apply(ORDER_ID, scheduler.claim), Change)

    again = answer(attempt=3)
    processes.now = timed_out(await processes.order())
    await processes.other.apply(ORDER_ID, supervisor.recover)
    processes.now = next_try(await processes.order(), processes.now)
    await processes.other.apply(ORDER_ID, scheduler.claim)
    taken = await processes.one.apply(ORDER_ID, lambda order, now: scheduler.receive(order, again, now))
    assert not isinstance(taken, Note)
    assert (await processes.order()).state.process_state is ProcessState.PROCESSED


@pytest.mark.proves("OPR-4")
async def test_nobody_is_refused_for_what_is_remembered(processes):
    """What makes no sense in the state that is remembered may make sense by now."""
    refused = await processes.order()

    def only_if_claimed(order, now):
        if order == refused:
            raise RefusedError
        return operator_rules.cancel(order, GRACE, now)

    await processes.other.apply(ORDER_ID, scheduler.claim)
    assert isinstance(await processes.one.apply(ORDER_ID, only_if_claimed), Change)


async def test_two_tasks_of_one_process_decide_on_the_same_order_at_once(processes):
    """One of them writes, the other reads what it wrote."""
    decisions = await asyncio.gather(*(processes.one.apply(ORDER_ID, scheduler.claim) for _ in range(2)))
    assert [isinstance(each, Change) for each in decisions] == [True, False]
    assert processes.store.loads == 1


async def test_what_was_erased_does_not_come_back(processes):
    """Another process remembers the customer; what it decides is written without."""
    await processes.other.apply(ORDER_ID, lambda order, now: erase(order, GRACE, PAYLOAD, now))
    await processes.one.apply(ORDER_ID, scheduler.claim)
    assert "Ada" not in str(processes.kept.table.partitions)
    assert await processes.events() == ["submitted", "erased", "claimed"]


@pytest.mark.proves("FLT-7")
@pytest.mark.parametrize("error", [ConflictError, UnavailableError])
@pytest.mark.parametrize("written", [True, False])
@pytest.mark.parametrize("process", ["one", "other"])
async def test_an_order_whose_write_was_not_answered_is_read_again(processes, process, error, written):
    """Its ETags are not known: what was remembered is forgotten, be it from a write or from a read."""
    process, commit = getattr(processes, process), processes.kept.commit

    async def unanswered(change):
        processes.kept.commit = commit
        if written:
            await commit(change)
        raise error

    processes.kept.commit = unanswered
    with suppress(UnavailableError):
        await process.apply(ORDER_ID, scheduler.claim)
    again = error is ConflictError and not written  # and was written then
    assert process.remembered.look(ORDER_ID) == (await processes.order() if again else None)
    await process.apply(ORDER_ID, scheduler.claim)
    await process.apply(ORDER_ID, completes)
    assert await processes.events() == ["submitted", "claimed", "processed"]


def large(name, characters=0, result=None):
    """An order with a payload, or a result, of so many characters more."""
    order = new_order().with_state(order_id=name)
    order = order.with_steps(replace(order.steps[0], result=result))
    return replace(order, order=replace(order.order, order_id=name, payload={"text": characters * "x"}))


def test_a_process_remembers_only_so_much_of_orders():
    """Of more, it forgets those that it wrote or read longest ago; one that is larger than all of that at once."""
    orders = [large(name) for name in "abc"]
    remembered = Remembered(2 * characters_of(orders[0]))
    for order in (orders[0], orders[1], orders[0], orders[2]):
        remembered.keep(order)
    assert [remembered.look(name) for name in "abc"] == [orders[0], None, orders[2]]
    for order in (large("d", 10_000), large("e", result={"text": 10_000 * "x"}), *orders[1:]):
        remembered.keep(order)
    assert [remembered.look(name) for name in "abcde"] == [None, orders[1], orders[2], None, None]


@pytest.mark.parametrize("items", [0, 10, 900])
def test_what_a_process_remembers_leaves_room_in_a_small_instance(items):
    """However large the orders are: Azure's smallest instance has 512 MB."""
    share = 100
    remembered, first, number = Remembered(MOST_CHARACTERS // share), large("0"), 0
    payload = json.dumps({"items": [{"sku": f"S-{number:05}", "quantity": number} for number in range(items)]})
    tracemalloc.start()
    remembered.keep(first)
    while remembered.look("0"):
        number += 1
        order = large(f"b00-{number:026}")
        remembered.keep(replace(order, order=replace(order.order, payload=json.loads(payload))))
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 10_000_000 < taken * share < 80_000_000


async def test_an_order_that_was_read_is_remembered_too(processes):
    """Though nothing was done about it."""
    await processes.other.apply(ORDER_ID, lambda *_: None)
    assert processes.other.remembered.look(ORDER_ID) == await processes.order()


@pytest.mark.proves("SCH-2", "FLT-7")
async def test_a_change_is_made_however_often_others_were_first(processes):
    """Each time on what they wrote; it is given up only where nobody can have been."""
    commit, refused = processes.kept.commit, []

    async def often_late(change):
        if len(refused) < 5:
            refused.append(change)
            raise ConflictError
        return await commit(change)

    with patch.object(processes.kept, "commit", often_late):
        await processes.one.apply(ORDER_ID, scheduler.claim)
    assert (await processes.order()).state.process_state is ProcessState.PROCESSING
