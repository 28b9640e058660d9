"""What a scheduler instance claims, and when: with others beside it, and with agents that have only so much room."""

from dataclasses import replace
from datetime import timedelta
from unittest.mock import patch

import pytest
from builders import NOW, answer, answer_to, new_order, scheduler

from adapters.memory import in_memory
from core.changes import Change, HistoryEntry
from core.errors import UnavailableError
from core.keys import bucket_of, buckets
from core.measures import Measure
from core.messages import AgentRequest, WakeUp, decode
from core.orders import Priority, ProcessState
from core.transitions import Transitions
from core.workflow import StepDefinition, Workflow, Workflows
from scheduler.backlog import Waiting
from scheduler.places import LOOK_INTERVAL, Places
from scheduler.service import WAKE_UP_TIME, SchedulerService
from scheduler.window import FIRST


class Schedulers:
    """Two instances on one store."""

    def __init__(self):
        self.now = NOW
        self.parts = in_memory(clock=lambda: self.now)
        self.workflows = scheduler.workflows
        self.one, self.other = self.instance("one"), self.instance("other")

    def instance(self, name, most=100):
        parts = self.parts
        return SchedulerService(
            transitions=Transitions(parts.store, parts.bus, parts.clock, parts.new_id),
            store=parts.store,
            clock=parts.clock,
            rules=replace(scheduler, instance=name, workflows=self.workflows),
            places=Places(offers={"payment": ("payment",)}, clock=parts.clock, most=most),
            measures=parts.measures,
            buckets=8,
        )

    async def record(self, count, bucket="b03"):
        """Record orders that were announced a while ago."""
        orders = [new_order().with_state(order_id=f"{bucket}-{number:026d}") for number in range(count)]
        orders = [replace(order, order=replace(order.order, order_id=order.state.order_id)) for order in orders]
        entry = HistoryEntry(at=NOW, actor="t", event="submitted")
        for order in orders:
            await self.parts.store.commit(Change(before=None, after=order, entry=entry))
        self.now += WAKE_UP_TIME
        return [order.order_id for order in orders]

    def requests(self):
        """The requests to the agent so far."""
        sent = [message for message in self.parts.bus.sent if message.queue == "payment-requests"]
        return [decode(AgentRequest, message.body) for message in sent]

    async def state(self, order_id):
        return (await self.parts.store.load(order_id)).state.process_state


@pytest.fixture
def schedulers():
    return Schedulers()


async def away(*_):
    raise UnavailableError


@pytest.mark.proves("WRK-3")
async def test_a_poll_goes_on_while_orders_wait_for_room(schedulers):
    """Replies may all reach another instance, and wake-ups come no more: somebody has to claim the rest."""
    await schedulers.record(FIRST + 5)
    assert await schedulers.one.go_on()
    first = schedulers.requests()
    assert len(first) == FIRST
    for request in first:
        await schedulers.other.receive(answer_to(request), "payment")
    assert len(schedulers.requests()) == FIRST
    schedulers.now += LOOK_INTERVAL
    await schedulers.one.go_on()
    assert len(schedulers.requests()) == FIRST + 5
    assert not await schedulers.one.go_on()


@pytest.mark.proves("WRK-3")
async def test_instances_side_by_side_begin_with_different_buckets(schedulers):
    """Else all of them would compete for the orders of one partition while the others wait."""
    for bucket in buckets(8):
        await schedulers.record(3, bucket)
    for name in ("one", "other", "third"):
        await schedulers.instance(name, most=1).poll()
    begun_with = [bucket_of(request.order_id) for request in schedulers.requests()]
    assert len(begun_with) == len(set(begun_with)) == 3


@pytest.mark.proves("WRK-3", "SCH-1")
async def test_an_instance_looks_into_every_bucket(schedulers):
    """Wherever it begins: it may be the only one."""
    for bucket in buckets(8):
        await schedulers.record(1, bucket)
    assert await schedulers.one.poll() == 8
    assert {bucket_of(request.order_id) for request in schedulers.requests()} == set(buckets(8))


TO_WHOM = Workflow(
    name="payment-only",
    version=1,
    steps=(
        StepDefinition(
            name="payment", capability="payment", does="pay", request=lambda order, _: {"to": order.customer_name}
        ),
    ),
)


@pytest.mark.proves("SCH-4")
async def test_what_a_service_gets_does_not_depend_on_who_claims(schedulers):
    """Be it who recorded the order, from its own wake-up, or another instance, that has to read it."""
    schedulers.workflows = Workflows(TO_WHOM)
    one, other = schedulers.instance("one"), schedulers.instance("other")
    for number in range(2):
        order = new_order().with_state(order_id=f"b03-{number:026d}")
        order = replace(order, order=replace(order.order, order_id=order.state.order_id))
        entry, wake_up = HistoryEntry(at=NOW, actor="t", event="submitted"), WakeUp(order_id=order.order_id).to_bus()
        await one.transitions.carry_out(Change(before=None, after=order, entry=entry, messages=(wake_up,)))
    for instance, sent in zip((one, other), list(schedulers.parts.bus.sent), strict=True):
        await instance.wake(decode(WakeUp, sent.body))
    assert [request.order for request in schedulers.requests()] == [{"to": "Ada"}] * 2


@pytest.mark.proves("SCH-2", "FLT-6")
async def test_an_order_that_cannot_be_claimed_is_in_nobody_s_way(schedulers):
    """Its row is garbage, say: those that wait beside it, and the rounds of the poll, go on."""
    broken, *others = await schedulers.record(3)
    load = schedulers.parts.store.load

    async def garbage(order_id):
        if order_id == broken:
            raise KeyError("State")
        return await load(order_id)

    with patch.object(schedulers.parts.store, "load", garbage):
        await schedulers.one.go_on()
    assert [request.order_id for request in schedulers.requests()] == others
    assert not schedulers.one.places.held(broken)


@pytest.mark.proves("SCH-11", "WRK-3")
async def test_an_order_that_is_announced_while_no_agent_has_room_is_not_forgotten(schedulers):
    """Though the instance knew nothing of it: once it was read, it waits among those with the same need."""
    first, second = await schedulers.record(2)
    only_one = schedulers.instance("third", most=1)
    for order_id in (first, second):
        await only_one.wake(WakeUp(order_id=order_id))
    assert (list(only_one.backlog.needs()), len(only_one.backlog)) == (["payment"], 1)
    await only_one.receive(answer_to(schedulers.requests()[0]), "payment")
    assert [request.order_id for request in schedulers.requests()] == [first, second]


OPEN_FOR = timedelta(seconds=30)


@pytest.mark.proves("AGT-8")
async def test_after_a_reply_that_tells_of_an_open_circuit_nothing_more_is_sent(schedulers):
    """No other order has to find it out for itself; when the time is over, both go on."""
    first, second = await schedulers.record(2)
    await schedulers.one.wake(WakeUp(order_id=first))
    open_for = {"reason": "open", "retry_after": OPEN_FOR.total_seconds(), "circuit_open": True}
    await schedulers.one.receive(answer_to(schedulers.requests()[0], "notTried", **open_for), "payment")
    await schedulers.one.wake(WakeUp(order_id=second))
    await schedulers.one.go_on()
    assert len(schedulers.requests()) == 1
    schedulers.now += OPEN_FOR
    await schedulers.one.go_on()
    assert {request.order_id for request in schedulers.requests()[1:]} == {first, second}


@pytest.mark.proves("SCH-6")
async def test_a_reply_over_the_queue_of_another_agent_closes_no_agent(schedulers):
    """It is recorded, and says nothing of the agent that was asked: others are sent on."""
    first, second = await schedulers.record(2)
    await schedulers.one.wake(WakeUp(order_id=first))
    open_for = {"reason": "open", "retry_after": OPEN_FOR.total_seconds(), "circuit_open": True}
    await schedulers.one.receive(answer_to(schedulers.requests()[0], "notTried", **open_for), "shipping")
    assert await schedulers.state(first) is ProcessState.PROCESSING
    await schedulers.one.wake(WakeUp(order_id=second))
    assert {request.order_id for request in schedulers.requests()} == {first, second}


@pytest.mark.proves("AGT-8")
async def test_every_scheduler_hears_of_an_open_circuit(schedulers):
    """From what the agent publishes, without a request and a reply of its own."""
    (order_id,) = await schedulers.record(1)
    until = schedulers.now + OPEN_FOR
    measure = Measure(agent="payment", instance="a1", at=schedulers.now, waited=0.0, running=0, open_until=until)
    await schedulers.parts.measures.publish(measure)
    for instance in (schedulers.one, schedulers.other):
        await instance.wake(WakeUp(order_id=order_id))
        await instance.go_on()
    assert schedulers.requests() == []
    assert await schedulers.state(order_id) is ProcessState.PENDING
    schedulers.now = until
    await schedulers.other.go_on()
    assert [request.order_id for request in schedulers.requests()] == [order_id]


UNKNOWN = "b03-01JCX4T9Q8ZK7M2N5P6R3S1V0W"


@pytest.mark.proves("SCH-6", "FLT-6")
async def test_a_reply_for_an_unknown_order_is_logged_and_changes_nothing(schedulers, caplog):
    """It may be of an order that was removed; it must not come back, nor end as poison."""
    (order_id,) = await schedulers.record(1)
    await schedulers.one.wake(WakeUp(order_id=order_id))
    rows, sent = dict(schedulers.parts.store.rows), list(schedulers.parts.bus.sent)
    await schedulers.one.receive(answer(order_id=UNKNOWN), "payment")
    assert (schedulers.parts.store.rows, schedulers.parts.bus.sent) == (rows, sent)
    (line,) = [each for each in caplog.records if each.message == "scheduler.reply_for_unknown_order"]
    assert line.order_id == UNKNOWN


@pytest.mark.proves("FLT-6", "SCH-2")
async def test_a_wake_up_for_an_unknown_order_holds_up_no_other(schedulers, caplog):
    """It is logged; whoever waits beside it is claimed in the same turn."""
    (order_id,) = await schedulers.record(1)
    schedulers.one.backlog.put(Waiting(order_id=order_id, priority=Priority.NORMAL, needs="payment"))
    await schedulers.one.wake(WakeUp(order_id=UNKNOWN))
    assert [request.order_id for request in schedulers.requests()] == [order_id]
    (line,) = [each for each in caplog.records if each.message == "scheduler.wake_up_for_unknown_order"]
    assert line.order_id == UNKNOWN
    assert (schedulers.one.being_claimed, len(schedulers.one.backlog)) == (set(), 0)


@pytest.mark.proves("AGT-8")
async def test_a_poll_does_not_go_on_while_the_agents_make_no_calls(schedulers):
    """Orders wait for a circuit to close, which the next poll is in time for."""
    await schedulers.record(3)
    schedulers.one.places.avoid("payment", schedulers.now + timedelta(seconds=30))
    for number in range(200):
        schedulers.one.backlog.put(Waiting(order_id=f"x{number}", priority=Priority.NORMAL, needs="payment"))
    assert not await schedulers.one.go_on()


@pytest.mark.proves("SCH-6", "FLT-7")
async def test_a_reply_is_recorded_though_the_next_order_cannot_be_claimed(schedulers):
    """The store goes away in between: the reply does not come back, to be refused; and the other order stays known."""
    done, waits = await schedulers.record(2)
    schedulers.one.places.most = 1
    await schedulers.one.wake(WakeUp(order_id=done))
    order = await schedulers.parts.store.load(done)
    schedulers.one.backlog.put(Waiting(order_id=waits, priority=Priority.NORMAL, needs="payment"))
    transitions = schedulers.one.transitions
    apply = transitions.apply

    async def only_the_reply(order_id, *more):
        return await (apply(order_id, *more) if order_id == done else away())

    with patch.object(transitions, "apply", only_the_reply):
        await schedulers.one.receive(answer_to(schedulers.requests()[0]), "payment")
    assert order.state.process_state is ProcessState.PROCESSING
    assert await schedulers.state(done) is ProcessState.PROCESSED
    await schedulers.one.go_on()
    assert await schedulers.state(waits) is ProcessState.PROCESSING


@pytest.mark.proves("WRK-2", "SCH-2")
async def test_a_second_wake_up_does_not_take_the_place_of_an_order_that_runs(schedulers):
    """Else more requests would be open than the agent has room for."""
    (order_id,) = await schedulers.record(1)
    await schedulers.one.wake(WakeUp(order_id=order_id))
    await schedulers.one.wake(WakeUp(order_id=order_id))
    assert schedulers.one.places.held(order_id) == {"payment"}


@pytest.mark.proves("WRK-2")
async def test_orders_that_are_being_claimed_keep_their_places(schedulers):
    """A look at who runs comes before their claims are written: they have not gone on elsewhere."""
    (order_id,) = await schedulers.record(1)
    schedulers.one.backlog.put(Waiting(order_id=order_id, priority=Priority.NORMAL, needs="payment"))
    ((waiting, held),) = schedulers.one._fitting()
    schedulers.now += LOOK_INTERVAL
    await schedulers.one._look_around()
    assert schedulers.one.places.held(order_id) == {"payment"}
    await schedulers.one._claim(waiting, held)
    schedulers.now += LOOK_INTERVAL
    await schedulers.one._look_around()
    assert schedulers.one.places.held(order_id) == {"payment"}
    assert schedulers.one.being_claimed == set()


@pytest.mark.proves("WRK-2")
async def test_places_are_kept_while_more_orders_run_than_a_look_shows(schedulers):
    """Those that were begun last would seem to have gone on."""
    ids = await schedulers.record(3)
    for order_id in ids:
        await schedulers.one.wake(WakeUp(order_id=order_id))
    schedulers.now += LOOK_INTERVAL
    with patch("scheduler.service.MOST_PER_QUERY", 2):
        await schedulers.one._look_around()
    assert [schedulers.one.places.held(order_id) for order_id in ids] == [{"payment"}] * 3
