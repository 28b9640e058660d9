"""What a scheduler instance claims, and when, beside others and while agents have little room."""

from dataclasses import replace
from datetime import timedelta
from functools import partial
from unittest.mock import patch

import pytest

from bootstrap.engine import REQUESTS_PER_CALL
from engine.decisions.transitions import HistoryEntry, NotClaimed
from engine.declarations.workflow import WorkflowDefinition
from engine.domain.attempts import NotAttemptedReason
from engine.domain.causes import Code
from engine.domain.errors import ConflictError
from engine.domain.keys import bucket_of, buckets
from engine.domain.messages import OrderReady, decode
from engine.domain.orders import InError, Processed, Processing
from engine.domain.states import UnderWay
from engine.domain.statuses import NotClaimable, Outcome
from engine.domain.submitted_order import Priority
from engine.storage.agent_health import PROBE_REQUESTS
from engine.storage.bucket_reader import PAGE
from engine.storage.tables import entity
from scheduler.admission.admission import FAILED_CLAIM_PAUSE, REFRESH_INTERVAL
from scheduler.admission.policy import Capacity
from scheduler.rules import SchedulerRules
from scheduler.service import WAKE_UP_TIME
from scheduler.triggers import ONCE_MORE
from tests.support.away import away
from tests.support.builders import (
    CONTENT,
    LONGEST_UPGRADE,
    NOW,
    TIMEOUT,
    answer,
    answer_to,
    order_ready,
    orders,
    seconds,
    some,
    steps,
    transition,
)
from tests.support.scheduling import FIRST, Scheduling, only, step

HOUR = timedelta(hours=1)


@pytest.fixture
def world():
    return Scheduling()


async def recorded(world, count, bucket="b03", **state):
    """Orders that were announced a while ago."""
    ids = [await world.record(bucket=bucket, **state) for _ in range(count)]
    world.now += WAKE_UP_TIME
    return ids


async def in_line(world, count, **state):
    """Orders of which each has waited for longer than the next; they were announced a while ago."""
    spans = range(count, 0, -1)
    return [await world.record(since=world.now - span * seconds(20), **state) for span in spans]


def with_slots(world, count, name="one"):
    """An instance that lets so many requests be open at each agent."""
    instance = world.instance(name)
    instance.admission.capacity = dict.fromkeys(
        world.offers, Capacity(most=count, first=count, allowance=TIMEOUT)
    )
    return instance


async def announce(world, instance, *order_ids):
    """Let the instance hear of the orders, as whoever recorded them says it."""
    for order_id in order_ids:
        await instance.on_order_ready(
            decode(OrderReady, order_ready(await world.load(order_id)).body)
        )


def announced(world):
    """From just now on: its wake-up is under way."""
    return {"updated_at": world.now}


async def full(world):
    """An instance that has room for one order, and the request by which that is taken."""
    one = with_slots(world, 1)
    await announce(world, one, await world.record())
    (request,) = world.requests()
    return one, request


def claimed(world, agent="payment"):
    """The orders of the requests to this agent, which are taken out of its queue."""
    return [request.order_id for request in world.requests(agent)]


@pytest.mark.proves("WRK-3")
async def test_who_hears_of_replies_claims_those_that_waited_for_their_slots(world):
    """Though all were claimed by another instance, and no wake-up comes any more."""
    one, other = world.instance("one"), world.instance("other")
    await recorded(world, FIRST + 2)
    await one.poll()
    first = world.requests()
    assert len(first) == FIRST
    for request in first:
        await other.receive(answer_to(request), "payment")
    assert len(world.requests()) == 2


@pytest.mark.proves("WRK-3", "SCH-1")
async def test_an_instance_looks_into_every_bucket(world):
    """Wherever it begins: it may be the only one."""
    for bucket in buckets(8):
        await recorded(world, 1, bucket)
    await world.keep_busy()
    await world.instance().poll()
    assert {bucket_of(request.order_id) for request in world.requests()} == set(buckets(8))


@pytest.mark.proves("SCH-4")
async def test_what_a_service_gets_does_not_depend_on_who_claims():
    """The request is the same, whether the claimer recorded the order or has to read it."""
    asks = replace(step("payment"), request=lambda order, _: {"to": order.payload["customer"]})
    world = Scheduling(WorkflowDefinition(name="to-whom", version=1, steps=(asks,)))
    one, other = world.instance("one"), world.instance("other")
    for instance in (one, other):
        recorded = await world.load(await world.record("to-whom"))
        await one.unit_of_work.commit(
            transition(recorded, recorded, HistoryEntry(at=NOW, actor="t", events=some("e")))
        )
        await announce(world, instance, recorded.order_id)
    assert [request.content for request in world.requests()] == [{"to": CONTENT["customer"]}] * 2


@pytest.mark.proves("WRK-2")
async def test_an_instance_that_starts_claims_no_more_than_the_others_have_left(world):
    """It looks before it claims, whether a wake-up or a poll comes first; the rest waits."""
    ids = await recorded(world, 2 * FIRST)
    await world.instance("one").poll()
    assert len(world.requests()) == FIRST
    for name in ("other", "third"):
        starts = world.instance(name)
        await announce(world, starts, *ids)
        await starts.poll()
    assert world.requests() == []


@pytest.mark.proves("WRK-2", "WRK-3", "SUB-6", "SCH-11")
async def test_a_woken_order_that_finds_no_capacity_continues_with_the_next_reply(world):
    """It is remembered where it was heard of; no poll has to find it."""
    one, request = await full(world)
    second = await world.record(**announced(world))
    await announce(world, one, second)
    await one.receive(answer_to(request), "payment")
    assert claimed(world) == [second]


@pytest.mark.proves("SUB-6", "WRK-3")
async def test_a_woken_order_finds_capacity_that_its_process_does_not_know(world):
    """Who hears of an order looks once more: another process may have had a reply since."""
    one, request = await full(world)
    replies = with_slots(world, 1, "replies")
    await replies.receive(answer_to(request), "payment")
    second = await world.record(**announced(world))
    await announce(world, one, second)
    assert claimed(world) == [second]


@pytest.mark.proves("SUB-6", "WRK-3")
async def test_woken_orders_that_no_reply_may_lead_to_are_woken_once_more(world):
    """One wake-up speaks for all that were left when the last reply came to a process elsewhere."""
    one, request = await full(world)
    replies = with_slots(world, 1, "replies")
    await replies.poll()
    left = [await world.load(await world.record(**announced(world))) for _ in range(2)]
    first, second = (decode(OrderReady, order_ready(order).body) for order in left)
    assert [await one.on_order_ready(first), await one.on_order_ready(second)] == [True, False]
    await replies.receive(answer_to(request), "payment")
    assert world.requests() == []
    world.now += ONCE_MORE
    assert not await one.on_order_ready(first.model_copy(update={"again": True}))
    assert claimed(world) == [first.order_id]


@pytest.mark.proves("SUB-6", "WRK-3")
async def test_a_wake_up_comes_no_third_time(world):
    """Whoever hears of replies knows of its order by then."""
    one, _ = await full(world)
    left = order_ready(await world.load(await world.record(**announced(world))))
    assert not await one.on_order_ready(
        decode(OrderReady, left.body).model_copy(update={"again": True})
    )


# What must not be in anybody's way


@pytest.mark.proves("SCH-11", "SCH-1")
async def test_a_poll_finds_an_urgent_order_however_many_others_it_knows(world):
    """It is claimed next, though its wake-up went to another instance and hundreds wait here."""
    one, other = with_slots(world, 1), with_slots(world, 0, "other")
    for bucket in buckets(8):
        await recorded(world, PAGE, bucket)
    await one.poll()
    urgent = await world.record(priority=Priority.HIGH)
    (running,) = world.requests()
    await other.receive(answer_to(running), "payment")
    world.now += REFRESH_INTERVAL
    await one.poll()
    assert claimed(world) == [urgent]


@pytest.mark.proves("AGT-8", "SCH-1")
async def test_a_poll_finds_who_needs_another_agent_however_many_wait_for_a_circuit(world):
    """While payment is away, what inventory can do is claimed with the first poll."""
    one = world.instance("one")
    await recorded(world, 3 * PAGE)
    await world.tell("payment", open_until=world.now + seconds(3600))
    await one.poll()
    ships = await world.record("inventory")
    world.now += REFRESH_INTERVAL
    await one.poll()
    assert claimed(world, "inventory") == [ships]


@pytest.mark.proves("FLT-12", "SCH-1")
@pytest.mark.parametrize("wrong", [{"workflow": "unheard-of"}, {"workflow_version": 99}], ids=str)
async def test_orders_that_this_app_cannot_claim_hide_nobody(world, wrong):
    """More of them than a page, and an order of a version that is known behind them."""
    await recorded(world, 3 * PAGE, **wrong)
    (known,) = await recorded(world, 1)
    await world.instance().poll()
    assert claimed(world) == [known]


@pytest.mark.proves("FLT-12", "SCH-1")
async def test_a_poll_gives_up_an_order_that_nobody_has_known_for_long(world):
    """No newer host has come that knows its workflow, and none will."""
    (order_id,) = await recorded(world, 1, workflow="unheard-of")
    await world.instance("one").poll()
    assert await world.pending([order_id]) == [order_id]
    world.now += LONGEST_UPGRADE
    await world.instance("one").poll()
    assert (await world.load(order_id)).state == InError(Outcome.FAILED)


@pytest.mark.proves("WRK-3", "SCH-11")
async def test_who_has_waited_longest_goes_first_whatever_its_bucket():
    """Each of sixteen buckets has more than are claimed at a time, and one older order."""
    world = Scheduling(most=16 // REQUESTS_PER_CALL, buckets=16)
    await world.keep_busy()
    first = [
        await world.record(bucket=bucket, since=world.now - seconds(20)) for bucket in buckets(16)
    ]
    for bucket in buckets(16):
        await recorded(world, PAGE, bucket)
    await world.instance("one").poll()
    assert set(claimed(world)) == set(first)


@pytest.mark.proves("WRK-2")
async def test_a_slot_is_free_once_its_step_was_answered_elsewhere_though_the_order_runs_on():
    """It runs at a slow agent for long: who needs the other one does not wait for that."""
    steps = (step("payment"), step("stock", "payment", capability="inventory"))
    world = Scheduling(
        WorkflowDefinition(name="long", version=1, steps=steps), most=4 // REQUESTS_PER_CALL
    )
    await world.keep_busy()
    one, other = world.instance("one"), world.instance("other")
    await recorded(world, 4, workflow="long")
    await one.poll()
    for request in world.requests():
        await other.receive(answer_to(request), "payment")
    assert len(world.requests("inventory")) == 4
    short = await world.record()
    world.now += REFRESH_INTERVAL
    await one.poll()
    assert claimed(world) == [short]


@pytest.mark.proves("WRK-2")
async def test_a_slot_is_free_once_a_step_is_answered_beside_which_another_runs():
    """What the work index says of a running order is said anew when one of its steps has ended."""
    steps = (step("payment"), step("stock", capability="inventory"))
    world = Scheduling(
        WorkflowDefinition(name="both", version=1, steps=steps), most=4 // REQUESTS_PER_CALL
    )
    await world.keep_busy()
    one, other = world.instance("one"), world.instance("other")
    await recorded(world, 4, workflow="both")
    await one.poll()
    for request in world.requests("inventory"):
        await other.receive(answer_to(request), "inventory")
    stocks = await world.record("inventory")
    pays = await world.record("payment")
    world.now += REFRESH_INTERVAL
    await one.poll()
    assert claimed(world, "inventory") == [stocks]
    assert await world.pending([pays]) == [pays]


@pytest.mark.proves("WRK-2", "SCH-5")
async def test_the_next_step_of_an_order_has_the_slot_of_the_one_before():
    """At the same agent: it need not be put back, and wait behind all others."""
    steps = (step("payment"), step("capture", "payment", capability="payment"))
    world = Scheduling(WorkflowDefinition(name="twice", version=1, steps=steps))
    one = with_slots(world, 1)
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


def has_a_broken_index_row(world, order_id):
    rows = world.store.table.partitions[bucket_of(order_id)]
    (key,) = (key for key in rows if key.startswith("!pending") and key.endswith(order_id))
    rows[key] = (1, entity(bucket_of(order_id), key, {}))


BROKEN = (is_not_there, cannot_be_read, conflicts_for_ever, has_a_broken_index_row)


@pytest.mark.proves("SCH-1", "SCH-2", "FLT-6")
@pytest.mark.parametrize("breaks", BROKEN)
@pytest.mark.parametrize("awoken", [True, False], ids=["wake-up", "poll"])
async def test_an_order_that_cannot_be_claimed_costs_only_itself(world, caplog, breaks, awoken):
    """The round goes on, the log names it, and then it is left alone for a while."""
    broken, *others = await recorded(world, 5)
    await world.keep_busy()
    breaks(world, broken)
    one = world.instance("one")
    if awoken:
        for order_id in (broken, *others):
            await one.on_order_ready(OrderReady(order_id=order_id, needs="payment"))
    await one.poll()
    assert set(claimed(world)) >= set(others)
    assert [line for line in caplog.records if getattr(line, "order_id", "") == broken]
    before = len(caplog.records)
    world.now += FAILED_CLAIM_PAUSE / 2
    await one.poll()
    assert breaks is is_not_there or len(caplog.records) == before


# Circuits

OPEN_FOR = timedelta(seconds=30)
OPENED = {
    "reason": NotAttemptedReason.CIRCUIT_OPEN,
    "retry_after": OPEN_FOR.total_seconds(),
}


@pytest.mark.proves("AGT-8")
async def test_after_a_reply_that_tells_of_an_open_circuit_nothing_more_is_sent(world):
    """No other order has to find it out for itself; when the time is over, both go on."""
    one = world.instance("one")
    (first,) = await recorded(world, 1)
    await announce(world, one, first)
    await one.receive(answer_to(world.requests()[0], "notAttempted", **OPENED), "payment")
    (second,) = await recorded(world, 1)
    await announce(world, one, second)
    await one.poll()
    assert world.requests() == []
    world.now += OPEN_FOR
    await one.poll()
    assert set(claimed(world)) == {first, second}


@pytest.mark.proves("SCH-6")
async def test_a_reply_over_the_queue_of_another_agent_closes_no_agent(world):
    """It is recorded, and says nothing of either agent: others are sent on to both."""
    one = world.instance("one")
    (first,) = await recorded(world, 1)
    await announce(world, one, first)
    await one.receive(answer_to(world.requests()[0], "notAttempted", **OPENED), "shipping")
    assert (await world.load(first)).state == Processing("one")
    second, elsewhere = await world.record(), await world.record("shipping")
    await announce(world, one, second, elsewhere)
    assert (claimed(world), claimed(world, "shipping")) == ([second], [elsewhere])


@pytest.mark.proves("AGT-8")
async def test_every_scheduler_hears_of_an_open_circuit(world):
    """From what the agent publishes, without a request and a reply of its own."""
    (order_id,) = await recorded(world, 1)
    until = world.now + OPEN_FOR
    await world.tell("payment", open_until=until)
    instances = [world.instance("one"), world.instance("other")]
    for instance in instances:
        await announce(world, instance, order_id)
        await instance.poll()
    assert world.requests() == []
    assert await world.pending([order_id]) == [order_id]
    world.now = until
    await instances[1].poll()
    assert claimed(world) == [order_id]


@pytest.mark.proves("AGT-10", "WRK-1")
async def test_that_an_agent_was_silent_is_forgotten_once_it_has_spoken(world):
    """By whoever looks next; before, it stands."""
    one = world.instance("one")
    await world.tell("payment", "supervisor", unresponsive_since=world.now - seconds(60))
    await one.poll()
    assert [report.instance for report in await world.agent_health.since(NOW)] == ["supervisor"]
    await world.tell("payment")
    await one.poll()
    assert [report.instance for report in await world.agent_health.since(NOW)] == ["1"]


@pytest.mark.proves("AGT-10", "WRK-2", "SUP-10")
async def test_an_agent_that_is_silent_gets_a_few_requests_only(world):
    """After a pause, of all who look together; enough to find out whether it works again."""
    await recorded(world, 20)
    await world.tell("payment", "supervisor", unresponsive_since=world.now - seconds(60))
    instances = [world.instance(name) for name in ("one", "other")]
    for instance in instances:
        await instance.poll()
    assert world.requests() == []
    world.now += seconds(30)
    for instance in instances:
        await instance.poll()
    assert len(world.requests()) == PROBE_REQUESTS


@pytest.mark.proves("SUP-9")
async def test_orders_that_have_waited_too_long_for_a_silent_agent_are_given_up(world):
    """Each order that has waited for less waits on, without a change."""
    one = world.instance("one")
    old, new = await world.record(since=world.now - 2 * HOUR), await world.record()
    await world.tell("payment", "supervisor", unresponsive_since=world.now - 2 * HOUR)
    await one.poll()
    assert world.requests() == []
    assert (await world.load(old)).outcome is Outcome.FAILED
    assert (await world.load(old)).cause.code is Code.NO_AGENT_BEGAN
    assert len(await world.store.history(new)) == 1


@pytest.mark.proves("SUP-9", "SCH-1")
async def test_an_order_that_is_not_given_up_is_passed_over_for_a_moment(world):
    """Its own agent is silent for long, and the order was changed since it was seen to wait."""
    one = world.instance("one")
    order_id = await world.record(since=world.now - 2 * HOUR)
    await world.tell("payment", "supervisor", unresponsive_since=world.now - 2 * HOUR)
    with patch.object(SchedulerRules, "claim", return_value=NotClaimed(NotClaimable.NO_CAPACITY)):
        await one.poll()
    assert one.admission.claim_queue.is_skipped(order_id, "payment")


# Messages about what is not there, and what fails beside them

UNKNOWN = "b03-01JCX4T9Q8ZK7M2N5P6R3S1V0W"


def logged(caplog, message):
    """The orders that the lines with this message name."""
    return [line.order_id for line in caplog.records if line.message == message]


@pytest.mark.proves("SCH-6", "FLT-6")
async def test_a_reply_for_an_unknown_order_is_logged_and_changes_nothing(world, caplog):
    """It may be of an order that was removed; it must not come back, nor end as poison."""
    one = world.instance("one")
    (order_id,) = await recorded(world, 1)
    await announce(world, one, order_id)
    rows, sent = dict(world.store.table.partitions), list(world.parts.bus.sent)
    await one.receive(answer(order_id=UNKNOWN), "payment")
    assert (world.store.table.partitions, world.parts.bus.sent) == (rows, sent)
    assert logged(caplog, "scheduler.reply_for_unknown_order") == [UNKNOWN]


@pytest.mark.proves("FLT-6", "SCH-2")
async def test_a_wake_up_for_an_unknown_order_holds_up_no_other(world, caplog):
    """It is logged, and takes no slot."""
    one = with_slots(world, 1)
    await one.on_order_ready(OrderReady(order_id=UNKNOWN, needs="payment"))
    order_id = await world.record()
    await announce(world, one, order_id)
    assert claimed(world) == [order_id]
    assert logged(caplog, "scheduler.order_ready_for_unknown_order") == [UNKNOWN]


@pytest.mark.proves("SCH-6", "FLT-7")
async def test_a_reply_is_recorded_though_the_next_order_cannot_be_claimed(world):
    """The store goes away in between: the reply is settled, and the other order stays known."""
    one = with_slots(world, 1)
    done, waits = await in_line(world, 2)
    await announce(world, one, done, waits)
    run = one.unit_of_work.run

    async def only_the_reply(order_id, *more, **options):
        return await (run(order_id, *more, **options) if order_id == done else away())

    with patch.object(one.unit_of_work, "run", only_the_reply):
        await one.receive(answer_to(world.requests()[0]), "payment")
    assert (await world.load(done)).state == Processed()
    world.now += REFRESH_INTERVAL
    await one.on_order_ready(OrderReady(order_id=UNKNOWN))
    assert claimed(world) == [waits]


@pytest.mark.proves("SCH-6", "FLT-7")
async def test_a_reply_is_recorded_though_nobody_can_look_around(world):
    """What agents tell is away, and the reply needs none of it."""
    one = world.instance("one")
    (order_id,) = await recorded(world, 1)
    await one.poll()
    world.now += REFRESH_INTERVAL
    with patch.object(world.agent_health, "since", away):
        await one.receive(answer_to(world.requests()[0]), "payment")
    assert (await world.load(order_id)).state == Processed()


@pytest.mark.proves("WRK-2", "SCH-2")
async def test_a_second_wake_up_does_not_take_a_second_slot(world):
    """Else an agent would seem to have less room than it has."""
    one = with_slots(world, 2)
    first, second = [await world.record(**announced(world)) for _ in range(2)]
    await announce(world, one, first, first, second)
    assert claimed(world) == [first, second]


@pytest.mark.proves("WRK-2", "SCH-6")
async def test_a_reply_that_is_refused_frees_no_slot(world):
    """Its step runs on."""
    one = with_slots(world, 1)
    first, second = await recorded(world, 2)
    await announce(world, one, first, second)
    (request,) = world.requests()
    await one.receive(answer_to(request.model_copy(update={"attempt": 7})), "payment")
    await announce(world, one, second)
    assert world.requests() == []


# What an instance believes while something is being written


TWO = WorkflowDefinition(
    name="two", version=1, steps=(step("payment"), step("inventory", "payment"))
)


def looked_around(world, instance):
    """Let the instance look, and see nothing, while it writes."""
    commit = world.store.commit

    async def slowly(change):
        world.now += REFRESH_INTERVAL
        instance.admission.begin_refresh()
        instance.admission.refresh([], [], [])
        return await commit(change)

    return patch.object(world.store, "commit", slowly)


@pytest.mark.proves("WRK-2")
async def test_what_is_written_while_one_looks_is_not_forgotten():
    """The look found the agent free, since the write was not done: be it a claim or a reply."""
    world = Scheduling(TWO)
    one = with_slots(world, 1)
    first = await world.record("two")
    with looked_around(world, one):
        await announce(world, one, first)
    assert "payment" not in one.admission.capacity_for()
    (request,) = world.requests()
    with looked_around(world, one):
        await one.receive(answer_to(request), "payment")
    assert one.admission.capacity_for().keys() == {"payment", "shipping"}


@pytest.mark.proves("WRK-2", "SCH-1")
async def test_the_last_slot_is_enough_for_who_has_taken_it(world):
    """The order is read once, and claimed."""
    reads, load = [], world.store.load
    (order_id,) = await recorded(world, 1)

    async def counted(order_id):
        reads.append(order_id)
        return await load(order_id)

    with patch.object(world.store, "load", counted):
        await with_slots(world, 1).poll()
    assert reads == claimed(world) == [order_id]


@pytest.mark.proves("WRK-2")
async def test_one_sees_all_that_is_open_in_a_bucket():
    """However many agents there are, each with all that it may have."""
    needs = ("payment", "inventory", "shipping", "fourth")
    world = Scheduling(only("fourth"), offers={need: (need,) for need in needs}, most=20, buckets=1)
    await world.keep_busy()
    opened = 20 * REQUESTS_PER_CALL
    for need in needs:
        await recorded(world, opened, "b00", workflow=need)
    await world.instance("one").poll()
    assert [len(world.requests(need)) for need in needs] == [opened] * 4
    assert sum([opened] * 4) > PAGE
    await recorded(world, 1, "b00", workflow="fourth")
    other = world.instance("other")
    await other.poll()
    assert other.admission.capacity_for() == {}


# What is known of who waits


@pytest.mark.proves("SUB-6", "SCH-1")
async def test_a_poll_forgets_nobody_whose_wake_up_came(world):
    """It found no room; who polls soon after need not wait until polls take care of it."""
    one = with_slots(world, 1)
    first, second = await in_line(world, 2, **announced(world))
    await announce(world, one, first, second)
    world.now += REFRESH_INTERVAL
    await one.poll()
    await one.receive(answer_to(world.requests()[0]), "payment")
    assert claimed(world) == [second]


@pytest.mark.proves("SCH-1")
async def test_a_wake_up_hurries_nobody_who_has_to_wait_for_a_time(world):
    """Its step cools down for hours: nothing is written, and nobody is asked."""
    one = world.instance("one")
    until = world.now + timedelta(hours=6)
    order_id = await world.record(since=until, not_before=until)
    before = await world.load(order_id)
    await announce(world, one, order_id)
    await one.poll()
    assert await world.load(order_id) == before
    assert world.requests() == []


BOTH = WorkflowDefinition(name="both", version=1, steps=(step("inventory"), step("payment")))


@pytest.mark.proves("SCH-10", "WRK-2")
async def test_a_step_that_found_no_capacity_is_begun_by_any_instance_that_finds_some():
    """Though another instance handles the order, of which another step runs."""
    world = Scheduling(BOTH)
    one, other = with_slots(world, 1), with_slots(world, 1, "other")
    await recorded(world, 1)
    await one.poll()
    both = await world.record("both")
    await announce(world, one, both)
    assert claimed(world, "inventory") == [both]
    assert isinstance((await world.load(both)).state, Processing)
    (runs,) = world.requests()
    await other.receive(answer_to(runs), "payment")
    assert claimed(world) == [both]
    order = await world.load(both)
    assert [step.name for step in order.in_state(UnderWay)] == ["inventory", "payment"]
    assert order.derived.locked_by == "other"


@pytest.mark.proves("SCH-2", "WRK-2")
@pytest.mark.parametrize("workflow", ["payment", "both"])
async def test_a_claim_that_starts_nothing_writes_nothing(workflow):
    """There is no room, however often the order is announced; its other step may run."""
    world = Scheduling(BOTH)
    one = with_slots(world, 1)
    await recorded(world, 1)
    await one.poll()
    order_id = await world.record(workflow)
    await announce(world, one, order_id)
    before = await world.load(order_id)
    for _ in range(3):
        world.now += REFRESH_INTERVAL
        await announce(world, one, order_id)
        await one.poll()
    assert await world.load(order_id) == before
    assert [step.name for step in before.in_state(UnderWay)] == (
        ["inventory"] if workflow == "both" else []
    )


@pytest.mark.proves("SCH-11", "SUB-6")
async def test_an_urgent_order_that_was_announced_goes_first(world):
    """Nothing of it has to be read to know that it is urgent, and whom it needs."""
    one = with_slots(world, 1)
    _, second, _ = await in_line(world, 3)
    await one.poll()
    urgent = await world.record(priority=Priority.HIGH, **announced(world))
    with patch.object(world.store, "load", away):
        await one.on_order_ready(
            OrderReady(order_id=urgent, needs="payment", priority=Priority.HIGH, since=world.now)
        )
    await one.receive(answer_to(world.requests()[0]), "payment")
    (running,) = world.requests()
    assert running.order_id == urgent
    await one.receive(answer_to(running), "payment")
    assert claimed(world) == [second]


@pytest.mark.proves("FLT-7", "SCH-1")
async def test_a_hiccup_of_the_store_puts_no_order_aside(world):
    """There is nothing wrong with it: the next look finds it, while others were claimed at once."""
    one = world.instance("one")
    first, second = await recorded(world, 2)
    load = world.store.load

    async def hiccups(order_id):
        return await (away() if order_id == first else load(order_id))

    with patch.object(world.store, "load", hiccups):
        await one.poll()
    assert claimed(world) == [second]
    world.now += REFRESH_INTERVAL
    await one.poll()
    assert claimed(world) == [first]


@pytest.mark.proves("FLT-7", "WRK-2")
async def test_a_bucket_that_is_away_lends_nobody_its_slots():
    """Its orders run on, though no look sees them: until it is back, what was seen last counts."""
    world = Scheduling()
    one = with_slots(world, 2)
    runs = [await world.record(bucket=bucket) for bucket in ("b01", "b02")]
    world.now += WAKE_UP_TIME
    await one.poll()
    assert set(claimed(world)) == set(runs)
    await recorded(world, 1, "b03")
    work_items = world.store.work_items

    async def of_others(bucket, *query):
        return await (away() if bucket == "b01" else work_items(bucket, *query))

    with patch.object(world.store, "work_items", of_others):
        for _ in range(3):
            world.now += REFRESH_INTERVAL
            await one.poll()
    assert world.requests() == []


@pytest.mark.proves("SCH-1", "AGT-10")
async def test_an_order_that_needs_what_no_agent_offers_is_not_tried_at_every_look(world):
    """Its step was changed in place, so that its order keeps a capability that is gone."""
    gone = steps.new("payment", capability="gone")
    order_id = await world.record(to=partial(orders.pending, steps=[gone]))
    loaded, load = [], world.store.load

    async def counted(loaded_id):
        loaded.append(loaded_id)
        return await load(loaded_id)

    world.store.load = counted
    instance = world.instance()
    for _ in range(4):
        await instance.poll()
        world.now += seconds(1)
    assert loaded == [order_id]
