"""A step that times out says what the service said last (SUP-3, ALR-1)."""

import acting as operator_rules
import pytest
from acting import told
from builders import (
    NOW,
    THRESHOLD,
    answer,
    begun_by,
    claimed,
    new_order,
    scheduler,
    seconds,
    supervisor,
    timed_out,
)

from core.life import Outcome, ProcessState, StepState
from operators.requests import OperatorRequest
from stores.agent_health import AgentHealth

GRACE = OperatorRequest(operator="grace", note="not needed any more")
DOWN = "503 down"


def tells(fault, since, **more):
    """An agent that has begun the attempt of then, and says after a second what went wrong."""
    fault_at = since + seconds(1) if fault else None
    return begun_by(since, "payment", fault=fault, fault_at=fault_at, **more)


def failing(*faults):
    """An order whose payment times out once for each fault that the agent told before."""
    order, now, heard = new_order(), NOW, []
    for fault in faults:
        order = claimed(order, now)
        heard = tells(fault, now) if fault else heard + begun_by(now, "payment")
        now = timed_out(order)
        change = supervisor.recover(order, now, heard)
        order = change.after
    return change


@pytest.mark.proves("SUP-3", "ALR-1", "OPR-1")
def test_a_step_that_is_given_up_says_what_its_agent_said_last():
    """The step, the order, the history and the alert."""
    change = failing(DOWN, DOWN, DOWN)
    why = f"payment timed out {THRESHOLD} times; last answer: {DOWN}"
    assert (change.after.state.outcome, change.after.state.reason) == (Outcome.FAILED, why)
    assert change.after.step("payment").reason == why
    assert told(change)[0].data["reason"] == why
    assert change.entry.detail == f"payment: {why}"


@pytest.mark.proves("SUP-3", "OPR-1")
def test_each_time_out_says_what_was_said_of_that_attempt():
    """Nothing of the attempt before: then the service may have been away, and now the agent."""
    assert (
        failing(DOWN).entry.detail
        == f"payment timed out, failure 1 of {THRESHOLD}; last answer: {DOWN}"
    )
    assert failing(DOWN).after.step("payment").reason == f"timed out; last answer: {DOWN}"
    assert failing(DOWN, None).entry.detail == f"payment timed out, failure 2 of {THRESHOLD}"
    assert failing(DOWN, None).after.step("payment").reason == "timed out"
    assert (
        failing("no answer: refused").entry.detail
        == "payment timed out, failure 1 of 3; no answer: refused"
    )


@pytest.mark.proves("SUP-3")
def test_of_several_instances_the_last_word_counts():
    """Of the agent that was asked, and of no other."""
    heard = [
        *tells("502 first", NOW),
        AgentHealth(
            agent="payment", instance="2", at=NOW, fault="503 last", fault_at=NOW + seconds(2)
        ),
        AgentHealth(agent="shipping", instance="1", at=NOW, fault="500", fault_at=NOW + seconds(3)),
    ]
    order = claimed()
    assert supervisor.recover(order, timed_out(order), heard).after.step("payment").reason == (
        "timed out; last answer: 503 last"
    )


@pytest.mark.proves("SUP-3")
def test_an_order_that_is_undone_says_no_more_what_went_wrong_before():
    """What was said of the attempt to do the step is no reason of its undo."""
    cancelled = operator_rules.cancel(claimed(), GRACE, NOW).after
    (step,) = supervisor.recover(cancelled, timed_out(cancelled), tells(DOWN, NOW)).after.steps
    assert (step.state, step.reason) == (StepState.UNDOING, None)


@pytest.mark.proves("SCH-5", "SUP-3")
def test_a_step_that_is_tried_again_and_done_says_no_more_what_went_wrong_before():
    """Not while it runs either: that is said of the attempt before."""
    again = claimed(failing(DOWN).after, NOW + seconds(7))
    assert again.step("payment").reason is None
    done = scheduler.receive(again, answer(attempt=2, result={}), NOW + seconds(8)).after
    assert (done.state.process_state, done.step("payment").reason) == (ProcessState.PROCESSED, None)
