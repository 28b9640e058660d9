"""What follows when a complete-by time passes."""

from dataclasses import replace

import pytest
from builders import (
    NOW,
    ORDER_ID,
    TOLERANCE,
    answer,
    claimed,
    failed_for_good,
    new_order,
    scheduler,
    seconds,
    supervisor,
    timed_out,
)

from core.agenda import Kind, obligations
from core.keys import sortable
from core.messages import WakeUp
from core.orders import OnFailure, ProcessState, StepState
from operators.requests import OperatorRequest
from operators.rules import resubmit


@pytest.mark.proves("SUP-3")
def test_an_expired_order_is_counted_and_given_back():
    """FailureCount grows by one, LockedBy is null, CompleteBy is new, and the scheduler is asked for just that step."""
    order = claimed()
    change = supervisor.recover(order, timed_out(order))
    state, step = change.after.state, change.after.step("payment")
    assert (state.process_state, state.locked_by, state.failure_count) == (ProcessState.PENDING, None, 1)
    assert state.complete_by > order.state.complete_by
    assert (step.state, step.failure_count, step.attempts) == (StepState.NOT_STARTED, 1, 1)
    (message,) = change.messages
    wake_up = WakeUp.model_validate_json(message.body)
    assert (wake_up.order_id, wake_up.steps) == (ORDER_ID, ("payment",))


@pytest.mark.proves("SUP-2", "FLT-9")
def test_an_order_is_left_alone_until_its_time_and_the_tolerance_have_passed():
    """Until complete-by plus tolerance a reply may still come: the scheduler's and the supervisor's times meet."""
    order = claimed()
    assert supervisor.recover(order, order.state.complete_by + TOLERANCE) is None
    assert supervisor.recover(new_order(), NOW) is None


@pytest.mark.proves("SUP-4")
def test_no_moment_suits_both_a_reply_and_a_recovery():
    """At any instant either a reply is still valid or the supervisor may act, never both and never neither."""
    order = claimed()
    for moment in (order.state.complete_by, order.state.complete_by + TOLERANCE, timed_out(order)):
        counted = hasattr(scheduler.receive(order, answer(), moment), "after")
        assert counted != (supervisor.recover(order, moment) is not None)


@pytest.mark.proves("SUP-3", "ALR-1")
def test_the_order_is_given_up_once_the_count_reaches_the_threshold():
    """With a threshold of 3 the third time-out makes the order Error, with one alert that says so."""
    order, _ = failed_for_good()
    state = order.state
    assert (state.process_state, state.failure_count, state.locked_by) == (ProcessState.ERROR, 3, None)
    assert order.step("payment").state is StepState.FAILED
    assert "timed out 3 times" in state.reason


@pytest.mark.proves("ALR-1")
def test_each_time_that_an_order_fails_has_an_alert_of_its_own():
    """Resubmitted, it fails again; the alert says how often it was tried."""
    step = replace(new_order().steps[0], threshold=1)
    order, events = new_order().with_steps(step), []
    for now in (NOW, NOW + seconds(3600)):
        running = claimed(order, now)
        change = supervisor.recover(running, timed_out(running))
        events += change.events
        order = resubmit(change.after, OperatorRequest(operator="grace", note="again"), now).after
    assert [event.data["failureCount"] for event in events] == [1, 1]
    assert len({event.event_id for event in events}) == 2


@pytest.mark.proves("SUP-3")
def test_attempts_only_ever_grow():
    """Every new claim is a new attempt, so that a reply to a former one is told apart."""
    order, _ = failed_for_good()
    assert order.step("payment").attempts == 3


@pytest.mark.proves("SUP-3")
def test_a_step_rests_a_bounded_number_of_times():
    """At the threshold it waits for long, with a fresh count and no wake-up; after the last rest it is given up."""
    step = replace(
        new_order().steps[0], on_failure=OnFailure.COOLDOWN, cooldown=seconds(60), max_cooldowns=1, threshold=1
    )
    order = claimed(new_order().with_steps(step))
    now = timed_out(order)
    cooldowns = supervisor.recover(order, now)
    assert cooldowns.messages == ()
    assert "cooldown 1 of 1" in cooldowns.entry.detail
    assert cooldowns.after.state.not_before == now + seconds(60)
    assert (cooldowns.after.step("payment").failure_count, cooldowns.after.step("payment").cooldowns) == (0, 1)
    assert scheduler.claim(cooldowns.after, now + seconds(59)) is None
    again = claimed(cooldowns.after, now + seconds(60))
    assert again.step("payment").not_before is None
    assert supervisor.recover(again, timed_out(again)).after.state.process_state is ProcessState.ERROR


@pytest.mark.proves("SUP-3")
def test_one_step_rests_while_another_is_tried_again():
    """The order goes on with the other; the one that rests begins when its time has come."""
    first = replace(
        new_order().steps[0], on_failure=OnFailure.COOLDOWN, cooldown=seconds(60), max_cooldowns=1, threshold=1
    )
    other = replace(first, name="other", max_cooldowns=0, threshold=3)
    pending = replace(new_order(), steps=(first, other))
    running = pending.with_state(process_state=ProcessState.PROCESSING, locked_by="s1").with_steps(
        *(replace(step, state=StepState.RUNNING, attempts=1, complete_by=NOW + seconds(5)) for step in (first, other))
    )
    change = supervisor.recover(running, NOW + seconds(7))
    assert change.after.state.not_before == NOW + seconds(7)
    assert change.messages
    assert change.after.step("payment").not_before == NOW + seconds(67)


def two_steps(*changes):
    """An order of two steps that run at the same time, each with these changes."""
    step = replace(claimed().steps[0], cooldown=seconds(60))
    steps = (replace(step, name=f"s{number}", **each) for number, each in enumerate(changes))
    return replace(claimed(), steps=tuple(steps))


@pytest.mark.proves("SUP-3")
def test_steps_that_expire_together_are_one_failure_of_the_order():
    """Each counts its own; the order was tried, and failed, once."""
    after = supervisor.recover(two_steps({}, {}), NOW + seconds(7)).after
    assert after.state.failure_count == 1
    assert [step.failure_count for step in after.steps] == [1, 1]


@pytest.mark.proves("SUP-3")
def test_an_order_that_is_given_back_is_due_when_the_longest_of_its_tries_is():
    """From when on it may be claimed, and so long as the step takes that may take longest."""
    after = supervisor.recover(two_steps({}, {"timeout": seconds(60)}), NOW + seconds(7)).after
    assert after.state.complete_by == NOW + seconds(67)
    cooldowns = {"on_failure": OnFailure.COOLDOWN, "max_cooldowns": 1, "threshold": 1}
    after = supervisor.recover(two_steps(cooldowns, cooldowns), NOW + seconds(7)).after
    assert after.state.complete_by == NOW + seconds(7) + seconds(60) + seconds(5)


@pytest.mark.proves("SUP-3", "SCH-12")
def test_an_order_that_has_failed_is_due_when_what_still_runs_is():
    """It is not given back: the scheduler that has it ends it with the last answer."""
    change = supervisor.recover(two_steps({"threshold": 1}, {"complete_by": NOW + seconds(60)}), NOW + seconds(7))
    state = change.after.state
    assert (change.entry.event, state.process_state, state.locked_by) == ("step-failed", ProcessState.PROCESSING, "s1")
    assert state.complete_by == NOW + seconds(60)


@pytest.mark.proves("SUP-3", "SCH-12")
def test_an_order_that_fails_while_nobody_has_it_is_ended_by_who_claims_it():
    """It was given back for one step when another failed for good; it is no second handling that ends here."""
    waits = {"state": StepState.NOT_STARTED, "complete_by": None}
    order = two_steps(waits, {"threshold": 1}).with_state(process_state=ProcessState.PENDING, locked_by=None)
    change = supervisor.recover(order, NOW + seconds(7))
    assert (change.entry.event, change.after.state.process_state) == ("expired", ProcessState.PENDING)
    assert change.messages


@pytest.mark.proves("SUP-2", "SUP-3")
def test_what_still_runs_of_an_order_that_was_given_back_is_watched_like_any_other():
    """Nobody has the order; the agenda says when that step is due."""
    after = supervisor.recover(two_steps({}, {"complete_by": NOW + seconds(60)}), NOW + seconds(7)).after
    assert after.state.process_state is ProcessState.PENDING
    due = f"{Kind.RUNNING}|{sortable(NOW + seconds(60))}|{ORDER_ID}"
    assert due in obligations(after)


@pytest.mark.proves("SUP-3")
def test_a_step_that_has_to_rest_does_not_put_off_an_order_that_may_be_claimed():
    """The order was given back for another of its steps; whoever claims it begins that one."""
    waits = {"state": StepState.NOT_STARTED, "complete_by": None}
    cooldowns = {"on_failure": OnFailure.COOLDOWN, "max_cooldowns": 1, "threshold": 1}
    order = two_steps(waits, cooldowns).with_state(process_state=ProcessState.PENDING, locked_by=None, not_before=NOW)
    after = supervisor.recover(order, NOW + seconds(7)).after
    assert after.step("s1").not_before == NOW + seconds(67)
    assert after.state.not_before == NOW
