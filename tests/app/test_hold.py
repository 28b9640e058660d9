"""Holding an order and releasing it, and raising its priority."""

import pytest

from engine.decisions.transitions import NotClaimed
from engine.domain.causes import Code
from engine.domain.events import Action, ActionTaken, Requeued
from engine.domain.history import EVENT_INFO
from engine.domain.messages import OrderReady, decode
from engine.domain.orders import Hold, InError, Pending, Processed, Processing
from engine.domain.states import (
    Completed,
    CoolingDown,
    LateEffectsPossible,
    Running,
    Scheduled,
    Undoing,
    Undone,
    UndoPending,
    Waiting,
)
from engine.domain.statuses import Direction, NotClaimable, OrderStatus, Outcome
from engine.domain.submitted_order import Priority
from engine.domain.work_index import WorkItemKind
from engine.storage.order_rows import state_record
from operations.api.requests import OperatorRequest
from tests.support.acting import alerts_of, cancel, expedite, hold, is_refused, release
from tests.support.builders import (
    NOW,
    TIMEOUT,
    TOLERANCE,
    answer,
    claimed,
    index_rows,
    orders,
    scheduler,
    seconds,
    steps,
    supervisor,
    timed_out,
)

GRACE = OperatorRequest(operator="grace", note="a wrong price")
LATER_BY = seconds(60)
LATER = NOW + LATER_BY


def kinds(order):
    """What the order owes."""
    return sorted(key.partition("|")[0] for key in index_rows(order))


def held(order=None, now=NOW):
    return hold(order or orders.new(), GRACE, now).after


@pytest.mark.proves("OPR-7")
def test_nothing_of_an_order_starts_while_it_is_held():
    """It is owed a release, and no claim; columns say who holds it, why and since when."""
    order = held()
    assert scheduler.claim(order, LATER) == NotClaimed(why=NotClaimable.HELD)
    assert kinds(order) == [WorkItemKind.HELD]
    assert order.hold == Hold(by="grace", note="a wrong price", since=NOW)
    assert (order.state, order.status) == (Pending(), OrderStatus.HELD)


@pytest.mark.proves("OPR-7")
def test_what_runs_while_an_order_is_held_keeps_its_time_and_is_answered():
    """The next step waits for the release."""
    running = claimed(orders.new(steps=[steps.new(), next_step()]))
    order = held(running, NOW + seconds(1))
    assert order.state == Processing("s1")
    assert order.steps[0].state == running.steps[0].state == Running(NOW + TIMEOUT)
    assert kinds(order) == [WorkItemKind.HELD, WorkItemKind.RUNNING]
    answered = scheduler.receive(order, answer(), NOW + seconds(2))
    assert [step.state for step in answered.after.steps] == [Completed(), Waiting()]
    assert answered.after.state == Pending()
    assert answered.messages == ()
    assert kinds(answered.after) == [WorkItemKind.HELD]


@pytest.mark.proves("OPR-7", "SCH-5")
def test_an_order_that_ends_is_held_no_more():
    """Its last step ran; columns say of it what they say of any that ended then."""
    ended = scheduler.receive(held(claimed()), answer(), NOW + seconds(2)).after
    assert (ended.state, ended.hold) == (Processed(), None)
    assert ended.updated_at == NOW + seconds(2)


def next_step():
    return steps.new("after", after=("payment",))


@pytest.mark.proves("OPR-7", "SUP-3")
def test_a_recovery_while_an_order_is_held_starts_nothing_and_counts_once():
    """What timed out is counted as ever; after that there is nothing that could time out again."""
    order = held(claimed(), NOW + seconds(1))
    now = timed_out(order)
    recovered = supervisor.recover(order, now)
    assert (recovered.after.failures, recovered.messages) == (1, ())
    assert kinds(recovered.after) == [WorkItemKind.HELD]
    assert supervisor.recover(recovered.after, now + seconds(3600)) is None
    assert scheduler.claim(recovered.after, now + seconds(3600)) == NotClaimed(
        why=NotClaimable.HELD
    )


@pytest.mark.proves("OPR-7")
def test_an_order_that_is_released_goes_on_and_waits_anew():
    """It is announced, and the time while it was held is no delay."""
    change = release(held(), GRACE, LATER)
    (message,) = change.messages
    assert decode(OrderReady, message.body).steps == ("payment",)
    assert (change.after.derived.ready_since, change.after.hold) == (LATER, None)
    assert scheduler.claim(change.after, LATER).after.state == Processing("s1")


@pytest.mark.proves("OPR-7")
def test_a_date_that_an_order_waits_for_outlasts_a_hold():
    """It is neither forgotten nor brought forward."""
    date = LATER + seconds(3600)
    order = held(orders.pending(steps=[steps.scheduled(at=date)]))
    assert order.steps[0].state == Scheduled(date)
    released = release(order, GRACE, LATER)
    assert (released.after.derived.not_before, released.messages) == (date, ())


@pytest.mark.proves("OPR-7", "UND-1")
def test_an_order_that_is_turned_back_while_it_is_held_is_undone_after_its_release():
    """It does not end as undone because nothing of it may start."""
    done = scheduler.receive(held(claimed(), NOW), answer(), NOW + seconds(1)).after
    assert (done.state, done.hold) == (Processed(), None)

    two = orders.new(steps=[steps.new(), next_step()])
    half = scheduler.receive(held(claimed(two), NOW), answer(), NOW + seconds(1)).after
    back = cancel(half, GRACE, NOW + seconds(2)).after
    assert scheduler.claim(back, LATER) == NotClaimed(why=NotClaimable.HELD)
    assert (back.steps[0].state, back.state) == (UndoPending(), Pending())
    assert kinds(back) == [WorkItemKind.HELD]


@pytest.mark.proves("OPR-7", "SCH-12")
def test_an_undo_that_is_answered_while_the_order_is_held_does_not_end_it_before_all_is_undone():
    """Another step still waits to be undone."""
    both = [steps.undoing(complete_by=LATER), steps.undo_pending("other")]
    order = orders.processing(orders.undoing(steps=both))
    answered = scheduler.receive(
        held(order), answer(action="undo", attempt=2), NOW + seconds(1)
    ).after
    assert answered.state == Pending()
    assert [step.state for step in answered.steps] == [Undone(), UndoPending()]
    assert kinds(answered) == [WorkItemKind.HELD]


@pytest.mark.proves("OPR-7")
def test_an_order_stays_held_when_it_fails_and_is_not_when_it_is_over():
    """Whoever resubmits it does not set it going by that."""
    failed = scheduler.receive(
        held(claimed(), NOW), answer(outcome="failed", detail="no"), NOW + seconds(1)
    )
    assert failed.after.state == InError(Outcome.FAILED)
    assert kinds(failed.after) == [WorkItemKind.ERROR, WorkItemKind.HELD]
    assert alerts_of(failed)[0].data["actions"][-1] == "release"


@pytest.mark.proves("OPR-1", "OPR-7")
@pytest.mark.parametrize("reply", [answer(), answer(outcome="notAttempted", detail="no place")])
def test_the_history_says_that_a_held_order_waits_for_its_release(reply):
    """Every agent has room, and nothing has failed (engine 28)."""
    order = held(claimed(orders.new(steps=[steps.new(), next_step()])))
    change = scheduler.receive(order, reply, NOW + seconds(1))
    assert change.entry.events[-1] == Requeued(held_by="grace")
    assert not EVENT_INFO[change.entry.event].is_failure
    assert change.after.state == Pending()


@pytest.mark.proves("OPR-6", "OPR-7", "OPR-8")
@pytest.mark.parametrize(
    ("act", "order", "action"),
    [
        (hold, orders.new(), Action.HOLD),
        (release, held(), Action.RELEASE),
        (expedite, orders.new(), Action.EXPEDITE),
    ],
)
def test_the_history_says_who_did_it_and_why(act, order, action):
    entry = act(order, GRACE, LATER).entry
    assert (entry.at, entry.actor) == (LATER, "operator/grace")
    assert entry.events == (ActionTaken(action=action, note="a wrong price"),)


@pytest.mark.proves("OPR-7")
def test_of_an_order_that_was_released_no_column_says_that_it_was_held():
    released = state_record(release(held(), GRACE, LATER).after).state
    assert (released.held_by, released.held_because, released.held_since) == (None, None, None)


@pytest.mark.proves("OPR-2")
def test_an_order_that_failed_before_waits_as_one_that_is_tried_again():
    """Unless something matters more."""
    again = orders.new(failures=1)
    assert again.status is OrderStatus.AGAIN
    assert held(again).status is OrderStatus.HELD
    assert orders.new().status is OrderStatus.PENDING


@pytest.mark.proves("OPR-7", "OPR-8")
@pytest.mark.parametrize(
    ("act", "order", "why"),
    [
        (hold, held(), Code.ON_HOLD_ALREADY),
        (hold, orders.processed(), Code.NOTHING_TO_HOLD),
        (release, orders.new(), Code.NOT_ON_HOLD),
        (expedite, orders.new(priority=Priority.HIGH), Code.EXPEDITED_ALREADY),
        (expedite, orders.processed(), Code.NOTHING_TO_EXPEDITE),
    ],
    ids=["held", "over", "not held", "high", "ended"],
)
def test_what_makes_no_sense_is_refused_with_the_reason(act, order, why):
    with is_refused(why):
        act(order, GRACE, NOW)


@pytest.mark.proves("OPR-8", "SCH-11")
def test_an_order_that_is_hurried_waits_before_those_of_normal_priority():
    """It keeps its place among those of high priority."""
    before, after = orders.new(), expedite(orders.new(), GRACE, NOW + TOLERANCE).after
    ((was,), (now,)) = (tuple(index_rows(order)) for order in (before, after))
    assert now < was
    assert after.derived.ready_since == before.derived.ready_since


def cooling_down():
    """An order whose undo has reached its threshold, and cools down."""
    rests = steps.new(threshold=1, max_cooldowns=2, cooldown=10 * LATER_BY)
    undo = orders.processing(orders.undoing(steps=[steps.undoing(rests)]))
    return supervisor.recover(undo, timed_out(undo)).after


@pytest.mark.proves("OPR-8", "UND-4")
def test_a_hurry_ends_the_cooldown_of_an_undo_too():
    """Also of an order that has high priority already (engine 23)."""
    order = cooling_down()
    assert isinstance(order.steps[0].wait, CoolingDown)
    assert order.steps[0].counts.cooldowns == 1
    for resting in (order, orders.having(order, priority=Priority.HIGH)):
        change = expedite(resting, GRACE, LATER)
        assert isinstance(change.after.steps[0].wait, Waiting)
        assert change.messages
        begun = scheduler.claim(change.after, LATER).after
        assert isinstance(begun.steps[0].state, Undoing)
        assert begun.direction is Direction.UNDO


@pytest.mark.proves("OPR-8", "UND-2")
def test_a_hurry_does_not_end_the_wait_until_no_call_can_take_effect():
    """It is no cooldown, although the step has cooled down before it was to be undone."""
    settled = LATER + 10 * LATER_BY
    rested = steps.with_counts(steps.with_key("payment", effects_final_at=settled), cooldowns=1)
    order = cancel(orders.pending(steps=[rested]), GRACE, LATER).after
    waits = UndoPending(LateEffectsPossible(settled))
    assert expedite(order, GRACE, LATER).after.steps[0].state == waits
