"""The pause before an attempt is repeated that has counted as no failure (SCH-16)."""

from datetime import timedelta
from itertools import pairwise
from unittest.mock import patch

import pytest

import testkit.services
from engine.azure.code import NO_CAPACITY, RETRY_AFTER
from engine.domain import work_index
from engine.domain.attempts import NotAttemptedReason
from engine.domain.backoff import LONGEST, SHORTEST, interval_after
from engine.domain.effects import InDoubt
from engine.domain.errors import DeferredError, NotAttemptedError
from engine.domain.keys import sortable
from engine.domain.messages import SCHEDULER_REQUESTS
from engine.domain.orders import Pending, Processing
from engine.domain.states import BackingOff, Deferred, Running, Undoing, UndoPending, Waiting
from engine.features.external_events.decide import ExternalEvent, recorded
from operations.api.requests import OperatorRequest
from shop.business import SHOP
from testkit import WorkflowTestEnvironment
from tests.support.acting import cancel, expedite, resubmit
from tests.support.agency import Agency
from tests.support.builders import (
    NOW,
    ORDER_ID,
    answer,
    answer_to,
    begun_by,
    claimed,
    index_rows,
    next_try,
    orders,
    scheduler,
    seconds,
    steps,
    supervisor,
    timed_out,
)
from tests.support.judging import Case, step
from tests.support.outbox import pending_events
from tests.support.scheduling import Scheduling, only

GRACE = OperatorRequest(operator="grace", note="n")
BEFORE = NOW - timedelta(hours=1)


def not_tried(order, now, retry_after=0, name="payment", outcome="notAttempted", **more):
    """The change by which the scheduler learns that a running step was not tried."""
    running = order.step(name)
    action = "undo" if isinstance(running.state, Undoing) else "do"
    facts = {
        "attempt": running.counts.attempts,
        "action": action,
        "retry_after": retry_after,
        **more,
    }
    return scheduler.receive(order, answer(name, outcome, **facts), now)


def turned_away(times, order=None, now=NOW):
    """An order that waits after so many attempts that were answered at once, and when."""
    order = order or orders.new()
    for _ in range(times):
        now = next_try(order, now)
        order = not_tried(claimed(order, now), now).after
    return order, now


def pauses_until(order, until):
    """Whether the order waits until then for a pause, and for no chosen time."""
    return work_index.is_pause(order, order.ready, until)


# How long


def test_the_time_between_two_attempts_grows_up_to_a_limit():
    """However often an attempt has counted as no failure."""
    found = [interval_after(count) for count in range(1, 30)]
    assert found[0] == SHORTEST > timedelta()
    assert all(later in (2 * one, LONGEST) for one, later in pairwise(found))
    assert found[-1] == interval_after(10**9) == LONGEST


@pytest.mark.proves("SCH-16", "AGT-8")
def test_what_is_not_tried_for_ever_is_requested_ever_less_often():
    """An agent that answers at once makes no loop without a pause (engine 2)."""
    order, now, starts = orders.new(), NOW, []
    while now < NOW + timedelta(hours=1):
        now = next_try(order, now)
        starts.append(now)
        order = not_tried(claimed(order, now), now).after
    between = [later - one for one, later in pairwise(starts)]
    assert between == [interval_after(count) for count in range(1, len(starts))]
    assert len(starts) < 25
    assert order.step("payment").counts.failures == 0


@pytest.mark.proves("SCH-16", "AGT-8")
@pytest.mark.parametrize(
    ("retry_after", "reason", "pause"),
    [
        (0, NotAttemptedReason.BUSY, SHORTEST),
        (30, NotAttemptedReason.BUSY, seconds(30)),
        (30, NotAttemptedReason.CIRCUIT_OPEN, SHORTEST),
    ],
    ids=["no pause", "a pause", "the circuit of one instance"],
)
def test_the_pause_that_an_agent_names_is_kept(retry_after, reason, pause):
    """Whatever reply it came with (engine 2); a circuit's time stands in the instance's health."""
    change = not_tried(claimed(), NOW, retry_after, reason=reason)
    assert change.after.state == Pending()
    assert change.after.step("payment").state == BackingOff(NOW + pause)
    assert change.after.derived.not_before == NOW + pause


@pytest.mark.proves("SCH-16")
def test_a_longer_pause_of_its_own_is_not_shortened_by_an_agent():
    """The longer of the two counts."""
    order, now = turned_away(8)
    at = next_try(order, now)
    again = not_tried(claimed(order, at), at, retry_after=1).after
    assert again.derived.not_before == at + interval_after(9) > at + seconds(1)


@pytest.mark.proves("SCH-16")
def test_an_attempt_that_took_longer_than_its_pause_is_repeated_at_once():
    """The time counts from the beginning of one attempt to that of the next."""
    at = NOW + SHORTEST
    change = not_tried(claimed(), at)
    assert change.after.step("payment").counts.attempts == 2
    put_back = scheduler.receive(
        claimed(), answer(outcome="notAttempted", detail="busy"), at, {}
    ).after
    assert put_back.step("payment").state == Waiting()


@pytest.mark.proves("SCH-16", "SUP-3")
def test_what_nobody_begins_is_requested_ever_less_often():
    """A step of one second, whose requests an agent drops as expired (engine 2)."""
    order, now, starts = orders.new(steps=[steps.new(timeout=seconds(1))]), NOW, []
    for _ in range(12):
        now = next_try(order, now)
        starts.append(now)
        order = claimed(order, now)
        now = timed_out(order)
        order = supervisor.recover(order, now, []).after
    between = [later - one for one, later in pairwise(starts)]
    assert all(time >= interval_after(count) for count, time in enumerate(between, 1))
    assert between[-1] == interval_after(11)
    assert isinstance(order.step("payment").effect, InDoubt)


@pytest.mark.proves("SCH-16", "AGT-11")
def test_what_is_accepted_for_ever_is_requested_less_and_less_often():
    """However short the pause is that the service names."""
    order, now = orders.new(), NOW
    for count in range(1, 10):
        now = next_try(order, now)
        order = not_tried(claimed(order, now), now, 1, outcome="deferred", in_doubt=True).after
        assert order.derived.not_before == now + max(seconds(1), interval_after(count))


async def test_an_agent_waits_ever_longer_for_what_is_accepted():
    """Within one attempt, too."""
    agency = Agency(*(DeferredError("queued", retry_after=timedelta()) for _ in range(8)))
    await agency.agent.handle(
        agency.request.model_copy(update={"complete_by": NOW + timedelta(minutes=5)})
    )
    assert agency.pauses[0] == 1
    assert agency.pauses == sorted(agency.pauses)
    assert agency.pauses[-1] > 5


# Until when it grows


@pytest.mark.proves("SCH-16")
def test_the_pause_is_short_again_after_anything_else():
    """A counted failure, the end of the step, an operator's action, or the undo."""
    order, now = turned_away(5)
    assert order.step("payment").counts.uncounted == 5
    running = claimed(order, next_try(order, now))
    at = timed_out(running)
    counted = supervisor.recover(running, at, begun_by(at, "payment")).after
    late = {"attempt": 6, "complete_by": running.derived.complete_by}
    failed = scheduler.receive(running, answer(outcome="failed", detail="no", **late), now).after
    ends = {
        "counted": counted,
        "completed": scheduler.receive(running, answer(result={}, **late), now).after,
        "failed": failed,
        "resubmitted": resubmit(failed, GRACE, at).after,
        "answered": recorded(order, ExternalEvent(step="payment", result={}), "outside", now).after,
        "cancelled": cancel(order, GRACE, now).after,
    }
    uncounted = {how: ended.step("payment").counts.uncounted for how, ended in ends.items()}
    assert uncounted == dict.fromkeys(ends, 0)


@pytest.mark.proves("SCH-16", "UND-4")
def test_an_undo_pauses_too():
    """By the same rule, with a count of its own."""
    case = Case(step("pay"), step("ship", "pay")).claim().done("pay")
    case.took(cancel(case.order, GRACE, case.now)).refused("ship")
    case.reply("ship", "notAttempted", retry_after=30)
    _, ship = case.order.steps
    until = case.now + seconds(30)
    assert ship.state == UndoPending(BackingOff(until))
    assert ship.counts.uncounted == 1
    assert case.order.derived.not_before == until


# Its place, its age, and who finds it


@pytest.mark.proves("SCH-16", "SCH-11", "SUP-7")
def test_an_order_that_pauses_keeps_its_place_and_its_age():
    """It lies among those that may be claimed, and its row says until when it may not be."""
    order, _ = turned_away(3, orders.new(ready_since=BEFORE))
    until = order.derived.not_before
    assert (order.derived.ready_since, pauses_until(order, until)) == (BEFORE, True)
    ((key, row),) = index_rows(order).items()
    assert key == f"!pending|1|payment|{sortable(BEFORE)}|{ORDER_ID}"
    assert work_index.pauses(row, until - seconds(0.001))
    assert not work_index.pauses(row, until)
    assert not work_index.was_announced(row)


@pytest.mark.proves("SCH-16", "SUP-7")
def test_a_time_that_a_service_names_for_its_answer_is_no_pause():
    """That is a chosen time (AGT-11), as a cooldown is; a hurry ends neither it nor a pause."""
    order, now = turned_away(1)
    accepts = not_tried(
        claimed(order, next_try(order, now)), NOW + seconds(2), 60, outcome="deferred"
    )
    until = accepts.after.derived.not_before
    assert accepts.after.step("payment").state == Deferred(until)
    assert not pauses_until(accepts.after, until)
    assert accepts.after.derived.ready_since == until
    assert accepts.messages == ()
    rested = orders.with_steps(order, steps.with_counts(order.step("payment"), cooldowns=1))
    assert expedite(rested, GRACE, NOW).after.derived.not_before == order.derived.not_before


@pytest.mark.proves("SCH-16", "SUP-7")
def test_an_order_whose_next_step_waits_for_a_chosen_time_does_not_pause():
    """Though another one pauses, for longer."""
    order, _ = turned_away(3)
    until = order.derived.not_before
    for at, is_pausing in ((until - seconds(0.1), False), (until + seconds(0.1), True)):
        chosen = steps.scheduled("chosen", at=at)
        beside = orders.having(order, steps=[*order.steps, chosen])
        assert pauses_until(beside, beside.derived.not_before) is is_pausing


@pytest.mark.proves("SCH-16")
def test_a_scheduler_is_woken_at_the_end_of_the_pause():
    """A poll would come later. Each message has an id of its own."""
    change = not_tried(claimed(), NOW, 30)
    (message,) = change.messages
    assert (message.queue, message.not_before) == (SCHEDULER_REQUESTS, NOW + seconds(30))
    assert message.message_id != f"{ORDER_ID}:ready"


@pytest.mark.proves("SCH-16", "SCH-10")
def test_a_step_pauses_beside_one_that_runs():
    """Whoever is woken at its end starts it beside the other."""
    case = Case(step("a"), step("b")).claim().reply("a", "notAttempted", retry_after=3)
    assert case.order.state == Processing("s1")
    assert [message.not_before for message in case.changes[-1].messages] == [case.now + seconds(3)]
    case.claim(case.now + seconds(3))
    assert [running.name for running in case.order.in_state(Running)] == ["a", "b"]


@pytest.mark.proves("SCH-16", "SCH-11")
async def test_an_order_that_pauses_hides_no_other_and_is_found_at_the_end():
    """It is older, and at the head of its lane; until then nobody loads it."""
    world = Scheduling(only("payment", seconds(60)))
    one = world.instance("one")
    paused = await world.record()
    world.now += seconds(5)
    await one.poll()
    (request,) = world.requests()
    await one.receive(answer_to(request, "notAttempted", detail="busy", retry_after=9), "payment")
    others = [await world.record() for _ in range(3)]
    world.now += seconds(5)
    with patch.object(world.store, "load", wraps=world.store.load) as load:
        await one.poll()
    assert paused not in [call.args[0] for call in load.call_args_list]
    assert {sent.order_id for sent in world.requests()} == {*others}
    world.now += seconds(4)
    await one.poll()
    assert [sent.order_id for sent in world.requests()] == [paused]


@pytest.mark.proves("SCH-16", "SUP-7")
async def test_an_order_that_is_never_tried_raises_an_alert():
    """Its pauses are a delay: no chosen time."""
    world = Scheduling(only("payment", seconds(60)))
    app = world.app(pending_alert_seconds=900)
    await world.record()
    for _ in range(20):
        world.now += timedelta(minutes=1)
        await app.engine.scheduler.poll()
        for request in world.requests():
            await app.engine.scheduler.receive(
                answer_to(request, "notAttempted", detail="no"), "payment"
            )
    await app.operations.stall_detector.check()
    assert len(await pending_events(world.store, *world.store.buckets)) == 1


@pytest.mark.proves("SCH-16", "AGT-2")
def test_an_agent_without_a_free_place_makes_no_loop():
    """Functions whose time is up keep all places (engine 2); the order goes on when one is free."""
    calls = []

    async def call(self, request, timeout_seconds):
        calls.append(request)
        if len(calls) > 500:
            raise SystemExit("a loop without a pause")
        if self_is_full:
            raise NotAttemptedError(NotAttemptedReason.BUSY, NO_CAPACITY, RETRY_AFTER)
        return await whole(self, request, timeout_seconds)

    whole, self_is_full = testkit.services._ServiceInMemory.call, True
    with patch.object(testkit.services._ServiceInMemory, "call", call):
        environment = WorkflowTestEnvironment(SHOP, buckets=1)
        order = environment.submit(SHOP.sample.payload, SHOP.sample.workflow)
        assert len(calls) <= len(order.steps)
        environment.advance(hours=1)
        assert order.state == "Pending"
        assert len(order.history) < 150
        self_is_full = False
        environment.advance(minutes=6)
    assert order.state == "Processed"
