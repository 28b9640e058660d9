"""What becomes of an order whose requests did not go out: it waits, and no failure is counted (FLT-8)."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from unittest.mock import patch

import pytest
from builders import NOW, ORDER_ID, answer, answer_to, claimed, new_order, scheduler, seconds, supervisor, timed_out
from memory_world import World

from core.changes import Change, HistoryEntry
from core.compensation import turn_back
from core.errors import NotSentError, QueueRefusedError, UnavailableError
from core.messages import AgentRequest, decode, request_id
from core.orders import Direction, OnFailure, Outcome, ProcessState, StepState
from core.unsent import PAUSE, put_back
from scheduler.service import WAKE_UP_TIME
from stores.transitions import REACH_PAUSE, Reach

FIRST = request_id(ORDER_ID, "payment", 1, "do")
SOON = NOW + seconds(1)


def back(order, *unsent, now=SOON, certain=True):
    return put_back(order, unsent or (FIRST,), "scheduler/s1", now, certain=certain)


@pytest.mark.proves("FLT-8", "SCH-3")
def test_a_step_whose_request_did_not_go_out_waits_again_and_nothing_is_counted():
    """It keeps its attempt, so that a request that arrives after all is told from the next one."""
    order = claimed()
    change = back(order)
    (step,) = change.after.steps
    assert (step.state, step.attempts, step.failure_count, step.complete_by) == (StepState.NOT_STARTED, 1, 0, None)
    assert (step.in_doubt, step.not_before) == (False, SOON + PAUSE)
    state = change.after.state
    assert (state.process_state, state.locked_by, state.complete_by) == (ProcessState.PENDING, None, None)
    assert (state.failure_count, state.not_before) == (0, SOON + PAUSE)
    assert (change.entry.event, change.entry.actor) == ("put-back", "scheduler/s1")
    assert change.entry.detail == "payment attempt 1 was not sent: Service Bus is away"
    assert change.messages == change.events == ()
    assert scheduler.claim(change.after, SOON) is None
    again = scheduler.claim(change.after, SOON + PAUSE)
    assert again.messages[0].message_id == request_id(ORDER_ID, "payment", 2, "do")


@pytest.mark.proves("FLT-8", "UND-2")
def test_a_step_whose_request_may_have_gone_out_waits_once_its_time_is_up():
    """Until then there may be a reply; nothing is counted, and it is in doubt whether it was done."""
    order = claimed()
    time_is_up = order.steps[0].complete_by
    assert back(order, certain=False) is None
    change = back(order, certain=False, now=time_is_up)
    (step,) = change.after.steps
    assert (step.state, step.failure_count, step.in_doubt) == (StepState.NOT_STARTED, 0, True)
    assert (change.after.state.failure_count, step.not_before) == (0, time_is_up + PAUSE)
    assert change.entry.detail == "payment attempt 1 may not have been sent: Service Bus is away"


@pytest.mark.proves("FLT-8", "SCH-6")
def test_either_a_reply_counts_or_the_step_is_put_back():
    """Whatever comes first, the other changes nothing."""
    order = claimed()
    late = scheduler.receive(back(order).after, answer(), SOON)
    assert "the step is NotStarted" in late.entry.detail
    assert back(scheduler.receive(order, answer(), SOON).after) is None


@pytest.mark.proves("FLT-8", "SUP-4")
def test_either_a_failure_is_counted_or_the_step_is_put_back():
    """Though its time is up meanwhile: whoever is first, the other finds another attempt, or none."""
    order = claimed()
    late = timed_out(order)
    assert supervisor.recover(back(order, now=late).after, late) is None
    recovered = supervisor.recover(order, late).after
    assert back(recovered, now=late) is None
    assert back(claimed(recovered, late), now=late) is None


def two(**first):
    """An order of two steps side by side, both running unless the test says otherwise of the first."""
    order = claimed()
    (step,) = order.steps
    return replace(order, steps=(replace(step, **first), replace(step, name="stock", capability="inventory")))


@pytest.mark.proves("FLT-8", "SCH-10")
def test_what_runs_beside_it_runs_on():
    """Its reply counts while the order waits."""
    change = back(two())
    assert [step.state for step in change.after.steps] == [StepState.NOT_STARTED, StepState.RUNNING]
    assert change.after.state.process_state is ProcessState.PENDING


@pytest.mark.proves("FLT-8", "SCH-12")
def test_after_a_failure_nothing_waits_to_be_tried():
    """What runs beside it answers first; if nothing runs, the order ends."""
    failed = {"state": StepState.FAILED, "complete_by": None, "reason": "no", "on_failure": OnFailure.ERROR}
    stock = request_id(ORDER_ID, "stock", 1, "do")
    order = two(**failed)
    assert back(order, stock).after.state.outcome is Outcome.FAILED
    third = replace(order.steps[1], name="ship", complete_by=NOW + seconds(4))
    change = back(replace(order, steps=(*order.steps, third)), stock)
    assert (change.after.state.process_state, change.after.state.complete_by) == (
        ProcessState.PROCESSING,
        third.complete_by,
    )
    assert change.entry.event == "not-sent"


@pytest.mark.proves("FLT-8", "SUP-3")
def test_an_order_that_was_given_back_meanwhile_waits_no_longer_for_it():
    """Another of its steps timed out, and may be claimed at once."""
    stock = request_id(ORDER_ID, "stock", 1, "do")
    order = two(state=StepState.NOT_STARTED, complete_by=None)
    change = back(order.with_state(process_state=ProcessState.PENDING, locked_by=None, not_before=NOW), stock)
    assert (change.after.state.not_before, change.entry.event) == (NOW, "waits")


@pytest.mark.proves("FLT-8", "UND-2", "UND-4")
def test_in_an_order_that_is_turned_back_it_waits_to_be_undone():
    """Be it the step, as it was to be done, or its undo."""
    order = turn_back(replace(claimed(), steps=(replace(claimed().steps[0], undoable=True),)))
    (step,) = back(order).after.steps
    assert (step.state, step.runs) == (StepState.UNDOING, False)
    tried = replace(order.steps[0], state=StepState.UNDOING, failure_count=2)
    undoing = order.with_steps(tried).with_state(direction=Direction.UNDO)
    (step,) = back(undoing, request_id(ORDER_ID, "payment", 1, "undo")).after.steps
    assert (step.state, step.runs, step.failure_count) == (StepState.UNDOING, False, 2)
    assert back(undoing) is None


OUTAGE = timedelta(minutes=5)


class Orders(World):
    """Many orders, the poll, the sweep, and an agent that answers at once; the bus may be away."""

    async def record(self, first, last):
        orders = [new_order().with_state(order_id=f"b03-{number:026d}") for number in range(first, last)]
        orders = [replace(order, order=replace(order.order, order_id=order.state.order_id)) for order in orders]
        for order in orders:
            entry = HistoryEntry(at=self.now, actor="t", event="submitted")
            await self.store.commit(Change(before=None, after=order, entry=entry))
        return [order.order_id for order in orders]

    async def pass_by(self, time):
        """Let the time pass, a second at a time."""
        end = self.now + time
        while self.now < end:
            self.now += seconds(1)
            await self.scheduler.poll()
            await self.supervisor.sweep()
            await self.answer_all()

    async def answer_all(self):
        if self.parts.bus.away:
            return
        sent = [message for message in self.parts.bus.sent if message.queue == "payment-requests"]
        self.parts.bus.sent.clear()
        for message in sent:
            await self.scheduler.receive(answer_to(decode(AgentRequest, message.body)), "payment")

    async def failures(self, orders):
        """How often each order failed; none is in `Error`."""
        states = [(await self.store.load(order_id)).state for order_id in orders]
        assert ProcessState.ERROR not in {state.process_state for state in states}
        return [state.failure_count for state in states]


def in_doubt(world):
    """Let what is sent while the bus is away be told as what may have arrived, once it is dead."""
    bus = world.parts.bus

    async def send(messages):
        if bus.away:
            world.now += max(message.time_to_live or timedelta() for message in messages)
            raise UnavailableError
        bus.sent.extend(messages)

    bus.send = send


@pytest.mark.proves("FLT-8", "SUP-3")
@pytest.mark.parametrize("certain", [True, False], ids=["certainly unsent", "in doubt"])
async def test_an_outage_of_the_bus_is_not_charged_to_the_orders(certain):
    """Five minutes, sixty times what a step has: one failure at most of what was under way, no other, and no `Error`.

    Nor does one fail of which it is in doubt whether its request arrived; then nothing more is claimed.
    """
    world = Orders()
    under_way = await world.record(0, 5)
    world.now += WAKE_UP_TIME
    await world.scheduler.poll()
    waiting = await world.record(5, 35)
    if not certain:
        in_doubt(world)
    world.parts.bus.away = True
    await world.pass_by(OUTAGE)
    assert await world.failures(under_way) == [1] * 5
    assert await world.failures(waiting) == [0] * 30
    world.parts.bus.away = False
    world.parts.bus.sent.clear()
    await world.pass_by(timedelta(seconds=10))
    orders = [await world.store.load(order_id) for order_id in [*under_way, *waiting]]
    assert {order.state.process_state for order in orders} == {ProcessState.PROCESSED}
    assert max(order.steps[0].attempts for order in orders) <= 3


async def away(*_):
    raise UnavailableError


async def not_sent(messages):
    raise NotSentError


@pytest.mark.proves("FLT-8")
async def test_a_request_that_went_nowhere_is_no_failure_of_who_claimed():
    """Even if the step cannot be put back either: it times out."""
    world = World()
    order = await world.submitted()
    change, commit = scheduler.claim(order, NOW), world.store.commit

    async def only_the_claim(each):
        return await (commit(each) if each.entry.event == "claimed" else away())

    with patch.object(world.parts.bus, "send", not_sent), patch.object(world.store, "commit", only_the_claim):
        assert await world.transitions.carry_out(change)
    assert (await world.order()).running()


@pytest.mark.proves("FLT-8")
async def test_a_queue_that_refuses_is_not_taken_for_an_outage():
    """The others take their messages: orders are claimed on."""
    world = World()
    order = await world.submitted()

    async def refuses(messages):
        raise QueueRefusedError

    with patch.object(world.parts.bus, "send", refuses), patch.object(world.parts.bus, "probe", away):
        await world.transitions.carry_out(scheduler.claim(order, NOW))
        assert await world.transitions.reach.is_there()


@pytest.mark.proves("FLT-8")
async def test_of_all_who_want_to_know_whether_the_bus_is_back_one_asks_in_a_while():
    """Each question takes until the bus gives up."""
    now, asked = NOW, []

    class AwayBus:
        async def probe(self, queues):
            asked.append(queues)
            await asyncio.sleep(0)
            raise UnavailableError

    reach = Reach(AwayBus(), lambda: now)
    reach.lost()
    assert not await reach.is_there()
    assert asked == []
    now += REACH_PAUSE
    assert await asyncio.gather(*(reach.is_there() for _ in range(5))) == [False] * 5
    assert len(asked) == 1
