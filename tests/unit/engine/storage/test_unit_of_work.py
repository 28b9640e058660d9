"""How an order changes: each decision is on what was read, and written only if it still holds."""

import asyncio
from contextlib import suppress
from unittest.mock import patch

import pytest

from engine.decisions.transitions import HistoryEntry, NotClaimed, Transition
from engine.domain.errors import ConflictError, UnavailableError
from engine.domain.statuses import NotClaimable, ProcessState
from engine.storage.unit_of_work import UnitOfWork
from operations.api.requests import OperatorRequest
from operations.api.retention import erase
from testkit.memory import in_memory
from tests.support.acting import resubmit
from tests.support.apps import app
from tests.support.builders import (
    NOW,
    ORDER_ID,
    PAYLOAD,
    answer,
    orders,
    scheduler,
    some,
    supervisor,
    timed_out,
)

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
        self.kept = app(self.parts).engine.store
        self.store = CountingLoads(self.kept)
        self.one, self.other = self.process(), self.process()

    def process(self):
        return UnitOfWork(self.store, self.parts.bus, self.parts.clock, self.parts.new_id)

    async def submitted(self):
        entry = HistoryEntry(at=NOW, actor="t", events=some("submitted"))
        await self.one.commit(Transition(before=None, after=orders.new(), entry=entry))
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


async def test_every_transition_but_the_first_reads_the_order_once(processes):
    """One process takes the wake-up and claims, another one gets the reply."""
    await processes.process().run(ORDER_ID, scheduler.claim)
    await processes.process().run(ORDER_ID, completes)
    assert (await processes.order()).process_state is ProcessState.PROCESSED
    assert processes.store.loads == 2


async def test_a_process_does_not_read_what_it_has_written(processes):
    """It took the submission and gets the reply too: each write is on its own last one."""
    await processes.one.run(ORDER_ID, scheduler.claim, from_memory=True)
    await processes.one.run(ORDER_ID, completes, from_memory=True)
    assert (await processes.order()).process_state is ProcessState.PROCESSED
    assert processes.store.loads == 0


async def test_a_change_of_what_is_remembered_gives_way_to_another_writer(processes):
    """The ETag tells: it is decided anew on what is stored."""
    await processes.other.run(ORDER_ID, scheduler.claim)
    assert await processes.one.run(ORDER_ID, scheduler.claim, from_memory=True) == NotClaimed(
        why=NotClaimable.RUNS
    )
    await processes.one.run(ORDER_ID, completes, from_memory=True)
    assert await processes.events() == ["submitted", "claimed", "processed"]


async def test_that_there_is_nothing_to_do_is_decided_on_what_is_stored(processes):
    """Another process has given the order back meanwhile: no write would have told."""
    await processes.one.run(ORDER_ID, scheduler.claim, from_memory=True)
    given_back = timed_out(await processes.order())
    await processes.other.run(ORDER_ID, lambda order, _: supervisor.recover(order, given_back))
    processes.now = given_back
    assert isinstance(
        await processes.one.run(ORDER_ID, scheduler.claim, from_memory=True), Transition
    )


async def test_that_a_change_is_refused_is_decided_on_what_is_stored(processes):
    """An order that is remembered as pending may have failed meanwhile."""
    await processes.other.run(ORDER_ID, scheduler.claim)
    refused = answer(outcome="failed", detail="card declined")
    await processes.other.run(ORDER_ID, lambda order, now: scheduler.receive(order, refused, now))
    decision = await processes.one.run(
        ORDER_ID, lambda order, now: resubmit(order, GRACE, now), from_memory=True
    )
    assert isinstance(decision, Transition)


async def test_what_is_stored_is_decided_on_unless_memory_will_do(processes):
    """What is done beside the decision may have to be about the order as it is."""
    await processes.one.run(ORDER_ID, scheduler.claim)
    assert processes.store.loads == 1


@pytest.mark.proves("SCH-2", "FLT-6")
async def test_a_claim_that_was_not_written_sends_nothing(processes):
    """Somebody else was first: the claim is decided on anew, and finds nothing to start."""
    commit, sent = processes.kept.commit, len(processes.parts.bus.sent)

    async def is_second(change):
        processes.kept.commit = commit
        await processes.other.run(ORDER_ID, scheduler.claim)
        raise ConflictError

    processes.kept.commit = is_second
    assert await processes.one.run(ORDER_ID, scheduler.claim) == NotClaimed(why=NotClaimable.RUNS)
    assert await processes.events() == ["submitted", "claimed"]
    assert len(processes.parts.bus.sent) == sent + 1


async def test_two_tasks_of_one_process_decide_on_the_same_order_at_once(processes):
    """One of them writes, the other reads what it wrote."""
    decisions = await asyncio.gather(
        *(processes.one.run(ORDER_ID, scheduler.claim, from_memory=True) for _ in range(2))
    )
    assert [isinstance(decision, Transition) for decision in decisions] == [True, False]
    assert processes.store.loads == 1


async def test_what_was_erased_does_not_come_back(processes):
    """What is decided later is written without the customer."""
    await processes.other.run(ORDER_ID, lambda order, now: erase(order, GRACE, PAYLOAD, now))
    await processes.one.run(ORDER_ID, scheduler.claim)
    assert "Ada" not in str(processes.kept.table.partitions)
    assert await processes.events() == ["submitted", "erased", "claimed"]


@pytest.mark.proves("FLT-7")
@pytest.mark.parametrize("error", [ConflictError, UnavailableError])
@pytest.mark.parametrize("written", [True, False])
@pytest.mark.parametrize("process", ["one", "other"])
async def test_an_order_whose_write_was_not_answered_is_read_again(
    processes, process, error, written
):
    """Its ETag is not known; the history tells whether it was written."""
    process, commit = getattr(processes, process), processes.kept.commit

    async def unanswered(change):
        processes.kept.commit = commit
        if written:
            await commit(change)
        raise error

    processes.kept.commit = unanswered
    with suppress(UnavailableError):
        await process.run(ORDER_ID, scheduler.claim)
    await process.run(ORDER_ID, scheduler.claim)
    await process.run(ORDER_ID, completes)
    assert await processes.events() == ["submitted", "claimed", "processed"]


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
        await processes.one.run(ORDER_ID, scheduler.claim)
    assert (await processes.order()).process_state is ProcessState.PROCESSING
