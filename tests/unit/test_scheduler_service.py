"""What a scheduler instance claims, and when: with others beside it, and with agents that have only so much room."""

from dataclasses import replace
from datetime import timedelta
from unittest.mock import patch

import pytest
from builders import NOW, answer, answer_to, seconds
from scheduling import Scheduling, only, step

from core.changes import HistoryEntry, transition
from core.errors import ConflictError, UnavailableError
from core.keys import bucket_of, buckets
from core.messages import WakeUp
from core.orders import Priority, ProcessState
from core.workflow import Workflow
from scheduler.admission import EQUALLY_LONG, FIRST, LOOK_INTERVAL, PASSED_OVER
from scheduler.rules import LONGEST_UPGRADE
from scheduler.service import WAKE_UP_TIME
from stores.claim_lanes import PAGE, first_of_each_claim_lane
from stores.tables import entity


@pytest.fixture
def world():
    return Scheduling()


async def recorded(world, count, bucket="b03", **state):
    """Orders that were announced a while ago."""
    ids = [await world.record(bucket=bucket, **state) for _ in range(count)]
    world.now += WAKE_UP_TIME
    return ids


async def away(*_):
    raise UnavailableError


@pytest.mark.proves("WRK-3")
async def test_a_poll_goes_on_while_orders_wait_for_room(world):
    """Replies may all reach another instance, and wake-ups come no more: somebody has to claim the rest."""
    one, other = world.instance("one"), world.instance("other")
    await recorded(world, FIRST + 5)
    assert await one.poll()
    first = world.requests()
    assert len(first) == FIRST
    for request in first:
        await other.receive(answer_to(request), "payment")
    assert world.requests() == []
    world.now += LOOK_INTERVAL
    await one.poll()
    assert len(world.requests()) == 5
    assert not await one.poll()


@pytest.mark.proves("WRK-3")
async def test_instances_side_by_side_begin_with_different_buckets(world):
    """Else all of them would compete for the orders of one partition while the others wait."""
    for bucket in buckets(8):
        for _ in range(3):
            await world.record(bucket=bucket)
    world.now += WAKE_UP_TIME
    world.most = 1
    for name in ("one", "other", "third"):
        await world.instance(name).poll()
        world.most += 1
    begun_with = [bucket_of(request.order_id) for request in world.requests()]
    assert len(begun_with) == len(set(begun_with)) == 3


@pytest.mark.proves("WRK-3", "SCH-1")
async def test_an_instance_looks_into_every_bucket(world):
    """Wherever it begins: it may be the only one."""
    for bucket in buckets(8):
        await recorded(world, 1, bucket)
    assert await world.instance().poll()
    assert {bucket_of(request.order_id) for request in world.requests()} == set(buckets(8))


TO_WHOM = replace(step("payment"), request=lambda order, _: {"to": order.payload["customer"]["name"]})


@pytest.mark.proves("SCH-4")
async def test_what_a_service_gets_does_not_depend_on_who_claims():
    """Be it who recorded the order, from its own wake-up, or another instance, that has to read it."""
    world = Scheduling(Workflow(name="to-whom", version=1, steps=(TO_WHOM,)))
    one, other = world.instance("one"), world.instance("other")
    for instance in (one, other):
        recorded = await world.load(await world.record("to-whom"))
        await one.transitions.carry_out(transition(recorded, recorded, HistoryEntry(at=NOW, actor="t", event="e")))
        await instance.wake(WakeUp(order_id=recorded.order_id))
    assert [request.content for request in world.requests()] == [{"to": "Ada"}] * 2


@pytest.mark.proves("WRK-2")
async def test_an_instance_that_starts_claims_no_more_than_the_others_have_left(world):
    """It looks before it claims, whether a wake-up comes first or a poll; what it cannot claim waits."""
    ids = await recorded(world, 2 * FIRST)
    await world.instance("one").poll()
    assert len(world.requests()) == FIRST
    for name in ("other", "third"):
        starts = world.instance(name)
        for order_id in ids:
            await starts.wake(WakeUp(order_id=order_id))
        await starts.poll()
    assert world.requests() == []


@pytest.mark.proves("WRK-2", "WRK-3", "SUB-6", "SCH-11")
async def test_a_woken_order_that_finds_no_room_goes_on_with_the_next_reply(world):
    """It is remembered where it was heard of; no poll has to find it."""
    world.most = 1
    one = world.instance("one")
    first, second = [await world.record() for _ in range(2)]
    for order_id in (first, second):
        await one.wake(WakeUp(order_id=order_id))
    (request,) = world.requests()
    await one.receive(answer_to(request), "payment")
    assert [request.order_id for request in world.requests()] == [second]


# What must not be in anybody's way


@pytest.mark.proves("SCH-11", "SCH-1")
async def test_a_poll_finds_an_urgent_order_however_many_others_it_knows(world):
    """Its wake-up went to another instance, and hundreds wait for room here: it is the next to be claimed."""
    world.most = 1
    one = world.instance("one")
    for bucket in buckets(8):
        await recorded(world, PAGE, bucket)
    await one.poll()
    urgent = await world.record(priority=Priority.HIGH)
    (running,) = world.requests()
    await world.instance("other").receive(answer_to(running), "payment")
    world.now += LOOK_INTERVAL
    await one.poll()
    assert [request.order_id for request in world.requests()] == [urgent]


@pytest.mark.proves("AGT-8", "SCH-1")
async def test_a_poll_finds_who_needs_another_agent_however_many_wait_for_a_circuit(world):
    """While payment is away, what inventory can do is claimed with the first poll."""
    one = world.instance("one")
    await recorded(world, 3 * PAGE)
    await world.tell("payment", open_until=world.now + seconds(3600))
    await one.poll()
    ships = await world.record("inventory")
    world.now += LOOK_INTERVAL
    await one.poll()
    assert [request.order_id for request in world.requests("inventory")] == [ships]


@pytest.mark.proves("FLT-12", "SCH-1")
@pytest.mark.parametrize("wrong", [{"workflow": "unheard-of"}, {"workflow_version": 99}], ids=str)
async def test_orders_that_this_app_cannot_claim_hide_nobody(world, wrong):
    """More of them than a page, and an order of a version that is known behind them."""
    await recorded(world, 3 * PAGE, **wrong)
    known = await world.record()
    world.now += WAKE_UP_TIME
    await world.instance().poll()
    assert [request.order_id for request in world.requests()] == [known]


@pytest.mark.proves("FLT-12", "SCH-1")
async def test_a_poll_gives_up_an_order_that_nobody_has_known_for_long(world):
    """No newer host has come that knows its workflow, and none will."""
    (order_id,) = await recorded(world, 1, workflow="unheard-of")
    await world.instance("one").poll()
    assert await world.pending([order_id]) == [order_id]
    world.now += LONGEST_UPGRADE
    await world.instance("one").poll()
    assert (await world.load(order_id)).state.process_state is ProcessState.ERROR


@pytest.mark.proves("WRK-3", "SCH-11")
async def test_who_has_waited_longest_goes_first_whatever_its_bucket():
    """Sixteen buckets, each with more than are claimed at a time, and in each one order that came before."""
    world = Scheduling(most=16, buckets=16)
    first = [await world.record(bucket=bucket, since=world.now - 2 * EQUALLY_LONG) for bucket in buckets(16)]
    for bucket in buckets(16):
        await recorded(world, PAGE, bucket)
    await world.instance("one").poll()
    assert {request.order_id for request in world.requests()} == set(first)


@pytest.mark.proves("WRK-2")
async def test_a_slot_is_free_once_its_step_was_answered_elsewhere_though_the_order_runs_on():
    """It runs at a slow agent for long: who needs the other one does not wait for that."""
    world = Scheduling(
        Workflow(name="long", version=1, steps=(step("payment"), step("stock", "payment", capability="inventory"))),
        most=4,
    )
    one, other = world.instance("one"), world.instance("other")
    await recorded(world, 4, workflow="long")
    await one.poll()
    for request in world.requests():
        await other.receive(answer_to(request), "payment")
    assert len(world.requests("inventory")) == 4
    short = await world.record()
    world.now += LOOK_INTERVAL
    await one.poll()
    assert [request.order_id for request in world.requests()] == [short]


@pytest.mark.proves("WRK-2")
async def test_a_slot_is_free_once_a_step_is_answered_beside_which_another_runs():
    """What the agenda says of a running order is said anew when one of its steps has ended."""
    both = Workflow(name="both", version=1, steps=(step("payment"), step("stock", capability="inventory")))
    world = Scheduling(both, most=4)
    one, other = world.instance("one"), world.instance("other")
    await recorded(world, 4, workflow="both")
    await one.poll()
    for request in world.requests("inventory"):
        await other.receive(answer_to(request), "inventory")
    stocks = await world.record("inventory")
    pays = await world.record("payment")
    world.now += LOOK_INTERVAL
    await one.poll()
    assert [request.order_id for request in world.requests("inventory")] == [stocks]
    assert await world.pending([pays]) == [pays]


@pytest.mark.proves("WRK-2", "SCH-5")
async def test_the_next_step_of_an_order_has_the_slot_of_the_one_before():
    """At the same agent: it need not be put back, and wait behind all others."""
    twice = Workflow(name="twice", version=1, steps=(step("payment"), step("capture", "payment", capability="payment")))
    world = Scheduling(twice, most=1)
    one = world.instance("one")
    await recorded(world, 2, workflow="twice")
    await one.poll()
    (request,) = world.requests()
    await one.receive(answer_to(request), "payment")
    (following,) = world.requests()
    assert (following.order_id, following.step) == (request.order_id, "capture")


def is_not_there(world, order_id):
    rows = world.store.table.partitions[bucket_of(order_id)]
    del rows[f"{order_id}|state"]


def cannot_be_read(world, order_id):
    load = world.store.load

    async def load_others(wanted):
        return await load(wanted) if wanted != order_id else {}["its row is garbage"]

    world.store.load = load_others


def conflicts_for_ever(world, order_id):
    commit = world.store.commit

    async def commit_others(change):
        if change.after.order_id == order_id:
            raise ConflictError
        return await commit(change)

    world.store.commit = commit_others


def has_a_broken_agenda_row(world, order_id):
    rows = world.store.table.partitions[bucket_of(order_id)]
    (key,) = (key for key in rows if key.startswith("!pending") and key.endswith(order_id))
    rows[key] = (1, entity(bucket_of(order_id), key, {}))


BROKEN = (is_not_there, cannot_be_read, conflicts_for_ever, has_a_broken_agenda_row)


@pytest.mark.proves("SCH-1", "SCH-2", "FLT-6")
@pytest.mark.parametrize("breaks", BROKEN)
@pytest.mark.parametrize("awoken", [True, False], ids=["wake-up", "poll"])
async def test_an_order_that_cannot_be_claimed_costs_only_itself(world, caplog, breaks, awoken):
    """The round goes on, the log names it, and then it is left alone for a while."""
    broken, *others = await recorded(world, 5)
    breaks(world, broken)
    one = world.instance("one")
    if awoken:
        for order_id in (broken, *others):
            await one.wake(WakeUp(order_id=order_id))
    await one.poll()
    assert {request.order_id for request in world.requests()} >= set(others)
    awoken_well = awoken and breaks is has_a_broken_agenda_row
    said = [line for line in caplog.records if getattr(line, "order_id", "") == broken]
    assert bool(said) is not awoken_well
    before = len(caplog.records)
    world.now += PASSED_OVER / 2
    await one.poll()
    assert breaks is is_not_there or len(caplog.records) == before


# Circuits

OPEN_FOR = timedelta(seconds=30)


@pytest.mark.proves("AGT-8")
async def test_after_a_reply_that_tells_of_an_open_circuit_nothing_more_is_sent(world):
    """No other order has to find it out for itself; when the time is over, both go on."""
    one = world.instance("one")
    first, second = await recorded(world, 2)
    await one.wake(WakeUp(order_id=first))
    open_for = {"reason": "open", "retry_after": OPEN_FOR.total_seconds(), "circuit_open": True}
    await one.receive(answer_to(world.requests()[0], "notTried", **open_for), "payment")
    await one.wake(WakeUp(order_id=second))
    await one.poll()
    assert world.requests() == []
    world.now += OPEN_FOR
    await one.poll()
    assert {request.order_id for request in world.requests()} == {first, second}


@pytest.mark.proves("SCH-6")
async def test_a_reply_over_the_queue_of_another_agent_closes_no_agent(world):
    """It is recorded, and says nothing of either agent: others are sent on to both."""
    one = world.instance("one")
    first, second = await recorded(world, 2)
    elsewhere = await world.record("shipping")
    await one.wake(WakeUp(order_id=first))
    open_for = {"reason": "open", "retry_after": OPEN_FOR.total_seconds(), "circuit_open": True}
    await one.receive(answer_to(world.requests()[0], "notTried", **open_for), "shipping")
    assert (await world.load(first)).state.process_state is ProcessState.PROCESSING
    for order_id in (second, elsewhere):
        await one.wake(WakeUp(order_id=order_id))
    sent = {agent: [request.order_id for request in world.requests(agent)] for agent in ("payment", "shipping")}
    assert sent == {"payment": [second], "shipping": [elsewhere]}


@pytest.mark.proves("AGT-8")
async def test_every_scheduler_hears_of_an_open_circuit(world):
    """From what the agent publishes, without a request and a reply of its own."""
    (order_id,) = await recorded(world, 1)
    until = world.now + OPEN_FOR
    await world.tell("payment", open_until=until)
    instances = [world.instance("one"), world.instance("other")]
    for instance in instances:
        await instance.wake(WakeUp(order_id=order_id))
        await instance.poll()
    assert world.requests() == []
    assert await world.pending([order_id]) == [order_id]
    world.now = until
    await instances[1].poll()
    assert [request.order_id for request in world.requests()] == [order_id]


@pytest.mark.proves("AGT-8")
async def test_a_poll_does_not_go_on_while_the_agents_make_no_calls(world):
    """Orders wait for a circuit to close, which the next poll is in time for."""
    await recorded(world, 3)
    await world.tell("payment", open_until=world.now + OPEN_FOR)
    one = world.instance("one")
    assert not await one.poll()
    await recorded(world, 1, workflow="inventory")
    assert await one.poll()


# Messages about what is not there, and what fails beside them

UNKNOWN = "b03-01JCX4T9Q8ZK7M2N5P6R3S1V0W"


@pytest.mark.proves("SCH-6", "FLT-6")
async def test_a_reply_for_an_unknown_order_is_logged_and_changes_nothing(world, caplog):
    """It may be of an order that was removed; it must not come back, nor end as poison."""
    one = world.instance("one")
    (order_id,) = await recorded(world, 1)
    await one.wake(WakeUp(order_id=order_id))
    rows, sent = dict(world.store.table.partitions), list(world.parts.bus.sent)
    await one.receive(answer(order_id=UNKNOWN), "payment")
    assert (world.store.table.partitions, world.parts.bus.sent) == (rows, sent)
    (line,) = [each for each in caplog.records if each.message == "scheduler.reply_for_unknown_order"]
    assert line.order_id == UNKNOWN


@pytest.mark.proves("FLT-6", "SCH-2")
async def test_a_wake_up_for_an_unknown_order_holds_up_no_other(world, caplog):
    """It is logged, and takes no slot for longer than the next look."""
    world.most = 1
    one = world.instance("one")
    (order_id,) = await recorded(world, 1)
    await one.wake(WakeUp(order_id=UNKNOWN))
    await one.wake(WakeUp(order_id=order_id))
    assert [request.order_id for request in world.requests()] == [order_id]
    (line,) = [each for each in caplog.records if each.message == "scheduler.wake_up_for_unknown_order"]
    assert line.order_id == UNKNOWN


@pytest.mark.proves("SCH-6", "FLT-7")
async def test_a_reply_is_recorded_though_the_next_order_cannot_be_claimed(world):
    """The store goes away in between: the reply does not come back, to be refused; and the other order stays known."""
    world.most = 1
    one = world.instance("one")
    done, waits = await recorded(world, 2)
    for order_id in (done, waits):
        await one.wake(WakeUp(order_id=order_id))
    apply = one.transitions.apply

    async def only_the_reply(order_id, *more):
        return await (apply(order_id, *more) if order_id == done else away())

    with patch.object(one.transitions, "apply", only_the_reply):
        await one.receive(answer_to(world.requests()[0]), "payment")
    assert (await world.load(done)).state.process_state is ProcessState.PROCESSED
    world.now += LOOK_INTERVAL
    await one.wake(WakeUp(order_id=UNKNOWN))
    assert [request.order_id for request in world.requests()] == [waits]


@pytest.mark.proves("SCH-6", "FLT-7")
async def test_a_reply_is_recorded_though_nobody_can_look_around(world):
    """What agents tell is away, and the reply needs none of it."""
    one = world.instance("one")
    (order_id,) = await recorded(world, 1)
    await one.poll()
    world.now += LOOK_INTERVAL
    with patch.object(world.agent_health, "since", away):
        await one.receive(answer_to(world.requests()[0]), "payment")
    assert (await world.load(order_id)).state.process_state is ProcessState.PROCESSED


@pytest.mark.proves("WRK-2", "SCH-2")
async def test_a_second_wake_up_does_not_take_a_second_slot(world):
    """Else an agent would seem to have less room than it has."""
    world.most = 2
    one = world.instance("one")
    first, second = await recorded(world, 2)
    for order_id in (first, first, second):
        await one.wake(WakeUp(order_id=order_id))
    assert [request.order_id for request in world.requests()] == [first, second]


@pytest.mark.proves("WRK-2", "SCH-6")
async def test_a_reply_that_is_refused_frees_no_slot(world):
    """Its step runs on."""
    world.most = 1
    one = world.instance("one")
    first, second = await recorded(world, 2)
    for order_id in (first, second):
        await one.wake(WakeUp(order_id=order_id))
    (request,) = world.requests()
    await one.receive(answer_to(request.model_copy(update={"attempt": 7})), "payment")
    await one.wake(WakeUp(order_id=second))
    assert world.requests() == []


# What an instance believes while something is being written


TWO = Workflow(name="two", version=1, steps=(step("payment"), step("inventory", "payment")))


def looked_around(world, instance):
    """Let the instance look, and see nothing, while it writes."""
    commit = world.store.commit

    async def slowly(change):
        world.now += LOOK_INTERVAL
        instance.admission.begin_look()
        instance.admission.saw([], [])
        return await commit(change)

    return patch.object(world.store, "commit", slowly)


@pytest.mark.proves("WRK-2")
async def test_what_is_written_while_one_looks_is_not_forgotten():
    """The look found the agent free, since the write was not done: be it a claim or a reply."""
    world = Scheduling(TWO, most=1)
    one = world.instance("one")
    first = await world.record("two")
    with looked_around(world, one):
        await one.wake(WakeUp(order_id=first))
    assert "payment" not in one.admission.room()
    (request,) = world.requests()
    with looked_around(world, one):
        await one.receive(answer_to(request), "payment")
    assert one.admission.room().keys() == {"payment", "shipping"}


@pytest.mark.proves("WRK-2", "SCH-1")
async def test_the_last_slot_is_enough_for_who_has_taken_it(world):
    """The order is read once, and claimed."""
    world.most, reads, load = 1, [], world.store.load
    (order_id,) = await recorded(world, 1)

    async def counted(order_id):
        reads.append(order_id)
        return await load(order_id)

    with patch.object(world.store, "load", counted):
        await world.instance("one").poll()
    assert reads == [request.order_id for request in world.requests()] == [order_id]


@pytest.mark.proves("WRK-2")
async def test_one_sees_all_that_is_open_in_a_bucket():
    """However many agents there are, each with all that it may have."""
    needs = ("payment", "inventory", "shipping", "fourth")
    world = Scheduling(only("fourth"), offers={need: (need,) for need in needs}, buckets=1)
    for need in needs:
        await recorded(world, FIRST, "b00", workflow=need)
    await world.instance("one").poll()
    assert [len(world.requests(need)) for need in needs] == [FIRST] * 4
    await recorded(world, 1, "b00", workflow="fourth")
    other = world.instance("other")
    await other.poll()
    assert other.admission.room() == {}


# What is known of who waits


def announced(world):
    """From just now on: its wake-up is under way."""
    return {"updated_at": world.now}


@pytest.mark.proves("SUB-6", "SCH-1")
async def test_a_poll_forgets_nobody_whose_wake_up_came(world):
    """It found no room; who polls soon after need not wait until polls take care of it."""
    world.most = 1
    one = world.instance("one")
    first, second = [await world.record(**announced(world)) for _ in range(2)]
    for order_id in (first, second):
        await one.wake(WakeUp(order_id=order_id))
    world.now += LOOK_INTERVAL
    await one.poll()
    await one.receive(answer_to(world.requests()[0]), "payment")
    assert [request.order_id for request in world.requests()] == [second]


@pytest.mark.proves("SCH-1")
async def test_a_poll_does_not_go_on_for_who_has_to_wait_for_a_time(world):
    """Though a wake-up named it: its step rests for hours."""
    one = world.instance("one")
    order_id = await world.record(since=world.now + timedelta(hours=6))
    one.admission.hear(one._woken(order_id, await world.load(order_id)))
    assert not await one.poll()


@pytest.mark.proves("SUB-6", "SCH-2")
async def test_who_is_held_by_another_is_no_candidate():
    """One of its steps waits for room, which whoever holds it finds."""
    both = Workflow(name="both", version=1, steps=(step("payment"), step("inventory")))
    world = Scheduling(both, most=1)
    one, other = world.instance("one"), world.instance("other")
    (full,) = await recorded(world, 1, workflow="inventory")
    (held,) = await recorded(world, 1, workflow="both")
    for order_id in (full, held):
        await one.wake(WakeUp(order_id=order_id))
    await other.wake(WakeUp(order_id=held))
    assert (await world.load(held)).state.process_state is ProcessState.PROCESSING
    assert not other.admission.knows(held)


@pytest.mark.proves("SCH-11", "SUB-6")
async def test_an_urgent_order_that_was_recorded_here_goes_before_all_that_wait(world):
    """Nothing has to be read to know that it is urgent, and whom it needs."""
    world.most = 1
    one = world.instance("one")
    await recorded(world, 2)
    await one.poll()
    recorded_here = await world.load(await world.record(priority=Priority.HIGH))
    entry = HistoryEntry(at=world.now, actor="t", event="e")
    await one.transitions.carry_out(transition(recorded_here, recorded_here, entry))
    with patch.object(world.store, "load", away):
        await one.wake(WakeUp(order_id=recorded_here.order_id))
    await one.receive(answer_to(world.requests()[0]), "payment")
    assert [request.order_id for request in world.requests()] == [recorded_here.order_id]


@pytest.mark.proves("SCH-1")
async def test_a_lane_of_which_nobody_may_be_claimed_yet_is_read_no_further(world):
    """A thousand orders that rest are not read with each poll."""
    for _ in range(6):
        await world.record(bucket="b00", since=world.now + seconds(60))
    agenda, reads = world.store.agenda, []

    async def counted(*query):
        reads.append(query)
        return await agenda(*query)

    with patch("stores.claim_lanes.PAGE", 2), patch.object(world.store, "agenda", counted):
        assert await first_of_each_claim_lane(world.store, "b00", world.now, lambda row: None) == []
    assert len(reads) == 2
