"""Holding an order and releasing it, and raising its priority."""

import pytest
from acting import cancel, hold, hurry, release, told
from builders import (
    NOW,
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

from core.changes import NotClaimed
from core.errors import RefusedError
from core.life import Direction, Outcome, ProcessState, Situation, StepState, WhyNot
from core.messages import WakeUp, decode
from core.orders import Priority
from engine.domain.events import Action, ActionTaken, Requeued
from engine.domain.history import EVENT_INFO
from engine.domain.work_index import WorkItemKind
from operators.requests import ActRequest

GRACE = ActRequest(operator="grace", note="a wrong price")
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
    assert scheduler.claim(order, LATER) == NotClaimed(why=WhyNot.HELD)
    assert kinds(order) == [WorkItemKind.HELD]
    state = order.state
    assert (state.held_by, state.held_because, state.held_since) == ("grace", "a wrong price", NOW)
    assert (state.process_state, state.situation) == (ProcessState.PENDING, Situation.HELD)


@pytest.mark.proves("OPR-7")
def test_what_runs_while_an_order_is_held_keeps_its_time_and_is_answered():
    """The next step waits for the release."""
    running = claimed(orders.new(steps=[steps.new(), next_step()]))
    order = held(running, NOW + seconds(1))
    assert order.state.process_state is ProcessState.PROCESSING
    assert order.running()[0].complete_by == running.running()[0].complete_by
    assert kinds(order) == [WorkItemKind.HELD, WorkItemKind.RUNNING]
    answered = scheduler.receive(order, answer(), NOW + seconds(2))
    assert [step.state for step in answered.after.steps] == [
        StepState.COMPLETED,
        StepState.NOT_STARTED,
    ]
    assert answered.after.state.process_state is ProcessState.PENDING
    assert answered.messages == ()
    assert kinds(answered.after) == [WorkItemKind.HELD]


@pytest.mark.proves("OPR-7", "SCH-5")
def test_an_order_that_ends_is_held_no_more():
    """Its last step ran; columns say of it what they say of any that ended then."""
    ended = scheduler.receive(held(claimed()), answer(), NOW + seconds(2)).after.state
    assert ended.process_state is ProcessState.PROCESSED
    assert (ended.held_by, ended.held_because, ended.held_since) == (None, None, None)
    assert ended.updated_at == NOW + seconds(2)


def next_step():
    return steps.new("after", after=("payment",))


@pytest.mark.proves("OPR-7", "SUP-3")
def test_a_recovery_while_an_order_is_held_starts_nothing_and_counts_once():
    """What timed out is counted as ever; after that there is nothing that could time out again."""
    order = held(claimed(), NOW + seconds(1))
    now = timed_out(order)
    recovered = supervisor.recover(order, now)
    assert (recovered.after.state.failure_count, recovered.messages) == (1, ())
    assert kinds(recovered.after) == [WorkItemKind.HELD]
    assert supervisor.recover(recovered.after, now + seconds(3600)) is None
    assert scheduler.claim(recovered.after, now + seconds(3600)) == NotClaimed(why=WhyNot.HELD)


@pytest.mark.proves("OPR-7")
def test_an_order_that_is_released_goes_on_and_waits_anew():
    """It is announced, and the time while it was held is no delay."""
    change = release(held(), GRACE, LATER)
    (message,) = change.messages
    assert decode(WakeUp, message.body).steps == ("payment",)
    assert (change.after.state.waits_since, change.after.state.held_by) == (LATER, None)
    assert scheduler.claim(change.after, LATER).after.state.process_state is ProcessState.PROCESSING


@pytest.mark.proves("OPR-7")
def test_a_date_that_an_order_waits_for_outlasts_a_hold():
    """It is neither forgotten nor brought forward."""
    date = LATER + seconds(3600)
    order = held(orders.pending(steps=[steps.scheduled(at=date)]))
    assert order.steps[0].not_before == date
    released = release(order, GRACE, LATER)
    assert (released.after.state.not_before, released.messages) == (date, ())


@pytest.mark.proves("OPR-7", "UND-1")
def test_an_order_that_is_turned_back_while_it_is_held_is_undone_after_its_release():
    """It does not end as undone because nothing of it may start."""
    done = scheduler.receive(held(claimed(), NOW), answer(), NOW + seconds(1)).after
    assert (done.state.process_state, done.state.held_by) == (ProcessState.PROCESSED, None)

    two = orders.new(steps=[steps.new(), next_step()])
    half = scheduler.receive(held(claimed(two), NOW), answer(), NOW + seconds(1)).after
    back = cancel(half, GRACE, NOW + seconds(2)).after
    assert scheduler.claim(back, LATER) == NotClaimed(why=WhyNot.HELD)
    assert (back.steps[0].state, back.state.outcome) == (StepState.UNDOING, None)
    assert kinds(back) == [WorkItemKind.HELD]


@pytest.mark.proves("OPR-7", "SCH-12")
def test_an_undo_that_is_answered_while_the_order_is_held_does_not_end_it_before_all_is_undone():
    """Another step still waits to be undone."""
    both = [steps.undoing(complete_by=LATER), steps.undo_pending("other")]
    order = orders.processing(orders.undoing(steps=both))
    answered = scheduler.receive(
        held(order), answer(action="undo", attempt=2), NOW + seconds(1)
    ).after
    assert (answered.state.process_state, answered.state.outcome) == (ProcessState.PENDING, None)
    assert [step.state for step in answered.steps] == [StepState.UNDONE, StepState.UNDOING]
    assert kinds(answered) == [WorkItemKind.HELD]


@pytest.mark.proves("OPR-7")
def test_an_order_stays_held_when_it_fails_and_is_not_when_it_is_over():
    """Whoever resubmits it does not set it going by that."""
    failed = scheduler.receive(
        held(claimed(), NOW), answer(outcome="failed", reason="no"), NOW + seconds(1)
    )
    assert failed.after.state.outcome is Outcome.FAILED
    assert kinds(failed.after) == [WorkItemKind.ERROR, WorkItemKind.HELD]
    assert told(failed)[0].data["actions"][-1] == "release"


@pytest.mark.proves("OPR-1", "OPR-7")
@pytest.mark.parametrize("reply", [answer(), answer(outcome="notTried", reason="no place")])
def test_the_history_says_that_a_held_order_waits_for_its_release(reply):
    """Every agent has room, and nothing has failed (engine 28)."""
    order = held(claimed(orders.new(steps=[steps.new(), next_step()])))
    change = scheduler.receive(order, reply, NOW + seconds(1))
    assert change.entry.events[-1] == Requeued(held_by="grace")
    assert not EVENT_INFO[change.entry.event].is_failure
    assert change.after.state.process_state is ProcessState.PENDING


@pytest.mark.proves("OPR-6", "OPR-7", "OPR-8")
@pytest.mark.parametrize(
    ("act", "order", "action"),
    [
        (hold, orders.new(), Action.HOLD),
        (release, held(), Action.RELEASE),
        (hurry, orders.new(), Action.EXPEDITE),
    ],
)
def test_the_history_says_who_did_it_and_why(act, order, action):
    entry = act(order, GRACE, LATER).entry
    assert (entry.at, entry.actor) == (LATER, "operator/grace")
    assert entry.events == (ActionTaken(action=action, note="a wrong price"),)


@pytest.mark.proves("OPR-7")
def test_of_an_order_that_was_released_no_column_says_that_it_was_held():
    state = release(held(), GRACE, LATER).after.state
    assert (state.held_by, state.held_because, state.held_since) == (None, None, None)


@pytest.mark.proves("OPR-2")
def test_an_order_that_failed_before_waits_as_one_that_is_tried_again():
    """Unless something matters more."""
    again = orders.new(failures=1)
    assert again.state.situation is Situation.AGAIN
    assert held(again).state.situation is Situation.HELD
    assert orders.new().state.situation is Situation.PENDING


@pytest.mark.proves("OPR-7", "OPR-8")
@pytest.mark.parametrize(
    ("act", "order", "why"),
    [
        (hold, held(), "grace holds the order already"),
        (hold, orders.processed(), "nothing of it starts"),
        (release, orders.new(), "^nobody holds the order$"),
        (hurry, orders.new(priority=Priority.HIGH), "^the order has high priority already$"),
        (hurry, orders.processed(), "waits for no claim"),
    ],
    ids=["held", "over", "not held", "high", "ended"],
)
def test_what_makes_no_sense_is_refused_with_the_reason(act, order, why):
    with pytest.raises(RefusedError, match=why):
        act(order, GRACE, NOW)


@pytest.mark.proves("OPR-8", "SCH-11")
def test_an_order_that_is_hurried_waits_before_those_of_normal_priority():
    """It keeps its place among those of high priority."""
    before, after = orders.new(), hurry(orders.new(), GRACE, NOW + TOLERANCE).after
    ((was,), (now,)) = (tuple(index_rows(order)) for order in (before, after))
    assert now < was
    assert after.state.waits_since == before.state.waits_since


def cooling_down():
    """An order whose undo has reached its threshold, and cools down."""
    rests = steps.new(threshold=1, max_cooldowns=2, cooldown=10 * LATER_BY)
    undo = orders.processing(orders.undoing(steps=[steps.undoing(rests)]))
    return supervisor.recover(undo, timed_out(undo)).after


@pytest.mark.proves("OPR-8", "UND-4")
def test_a_hurry_ends_the_cooldown_of_an_undo_too():
    """Also of an order that has high priority already (engine 23)."""
    order = cooling_down()
    assert order.steps[0].cooldowns == 1
    for resting in (order, orders.having(order, priority=Priority.HIGH)):
        change = hurry(resting, GRACE, LATER)
        assert change.after.steps[0].not_before is None
        assert change.messages
        begun = scheduler.claim(change.after, LATER).after
        assert begun.steps[0].runs
        assert begun.state.direction is Direction.UNDO


@pytest.mark.proves("OPR-8", "UND-2")
def test_a_hurry_does_not_end_the_wait_until_no_call_can_take_effect():
    """It is no cooldown, although the step has cooled down before it was to be undone."""
    settled = LATER + 10 * LATER_BY
    rested = steps.with_counts(steps.with_key("payment", effects_final_at=settled), cooldowns=1)
    order = cancel(orders.pending(steps=[rested]), GRACE, LATER).after
    assert hurry(order, GRACE, LATER).after.steps[0].not_before == settled
