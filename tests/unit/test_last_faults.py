"""A step that times out says what the service said last, so that nobody has to look for it in a log (SUP-3, ALR-1)."""

import pytest
from builders import (
    NOW,
    THRESHOLD,
    answer,
    claimed,
    new_order,
    other_scheduler,
    scheduler,
    seconds,
    supervisor,
    timed_out,
)

from core.changes import Note
from core.orders import Outcome, ProcessState, StepState
from core.texts import without_particulars
from operators import rules as operator_rules
from operators.requests import OperatorRequest

GRACE = OperatorRequest(operator="grace", note="not needed any more")
DOWN = "503 down"


def told(order, reason=DOWN, **more):
    """What becomes of the order when the agent says what went wrong last."""
    attempt = order.step("payment").attempts
    return scheduler.receive(order, answer(outcome="unfinished", reason=reason, attempt=attempt, **more), NOW)


def failing(*faults):
    """An order whose payment times out once for each fault, which the agent told before, if it is any."""
    order, now = new_order(), NOW
    for fault in faults:
        order = claimed(order, now)
        if fault:
            order = told(order, fault).after
        now = timed_out(order)
        change = supervisor.recover(order, now)
        order = change.after
    return change


@pytest.mark.proves("AGT-4", "SCH-6")
def test_what_an_agent_tells_of_its_last_call_changes_nothing_but_that_it_is_known():
    """The step runs on until its time is over, and may be answered; nobody is told, and no other step begins."""
    order = claimed()
    change = told(order)
    (before,), (after,) = order.steps, change.after.steps
    assert (after.reason, change.entry.event, change.entry.detail) == (DOWN, "unfinished", f"payment: {DOWN}")
    assert (after.state, after.complete_by, after.attempts) == (before.state, before.complete_by, before.attempts)
    state = change.after.state
    assert (state.process_state, state.locked_by, state.complete_by) == (
        ProcessState.PROCESSING,
        order.state.locked_by,
        order.state.complete_by,
    )
    assert (change.messages, change.events) == ((), ())
    done = scheduler.receive(change.after, answer(result={}), NOW).after
    assert (done.state.process_state, done.step("payment").reason) == (ProcessState.PROCESSED, None)


@pytest.mark.proves("SCH-6")
def test_it_is_heard_under_the_rules_of_any_reply_and_once():
    """Of the current attempt, in time, from the agent that was asked."""
    order = told(claimed()).after
    late = timed_out(order)
    reply = answer(outcome="unfinished", reason="500")
    assert isinstance(scheduler.receive(order, answer(outcome="unfinished", reason=DOWN), NOW), Note)
    assert isinstance(scheduler.receive(order, reply, late), Note)
    assert isinstance(scheduler.receive(order, reply, NOW, agent="shipping"), Note)
    assert isinstance(scheduler.receive(order, answer(outcome="unfinished", reason="500", attempt=2), NOW), Note)


@pytest.mark.proves("SUP-3", "ALR-1", "OPR-1")
def test_a_step_that_is_given_up_says_what_its_agent_said_last():
    """The step, the order, the history and the alert."""
    change = failing(DOWN, DOWN, DOWN)
    why = f"payment timed out {THRESHOLD} times; last answer: {DOWN}"
    assert (change.after.state.outcome, change.after.state.reason) == (Outcome.FAILED, why)
    assert change.after.step("payment").reason == why
    assert change.events[0].data["reason"] == why
    assert change.entry.detail == f"payment: {why}"


@pytest.mark.proves("SUP-3", "OPR-1")
def test_each_time_out_says_what_was_said_of_that_attempt():
    """Nothing of the attempt before: then the service may have been away, and now the agent."""
    assert failing(DOWN).entry.detail == f"payment timed out, failure 1 of {THRESHOLD}; last answer: {DOWN}"
    assert failing(DOWN).after.step("payment").reason == f"timed out; last answer: {DOWN}"
    assert failing(DOWN, None).entry.detail == f"payment timed out, failure 2 of {THRESHOLD}"
    assert failing(DOWN, None).after.step("payment").reason == "timed out"
    assert failing("no answer: refused").entry.detail == "payment timed out, failure 1 of 3; no answer: refused"


@pytest.mark.proves("SUP-3")
def test_an_order_that_is_undone_says_no_more_what_went_wrong_before():
    """What was said of the attempt to do the step is no reason of its undo."""
    cancelled = operator_rules.cancel(told(claimed()).after, GRACE, NOW).after
    (step,) = supervisor.recover(cancelled, timed_out(cancelled)).after.steps
    assert (step.state, step.reason) == (StepState.UNDOING, None)


@pytest.mark.proves("SCH-6")
def test_another_scheduler_may_hear_of_it():
    """It does not take the order from the one that handles it."""
    change = other_scheduler.receive(claimed(), answer(outcome="unfinished", reason=DOWN), NOW + seconds(1))
    assert change.after.state.locked_by == "s1"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("503 down", "503 down"),
        ("order b03-01JCX4T9Q8ZK7M2N5P6R3S1V0W is unknown", "order … is unknown"),
        ("request 7f3a0c52-1f7e-4b43-9a51-0b1f0a4b8f11 failed", "request … failed"),
        ("failed at 2026-01-31T08:15:00.123Z", "failed at …"),
        ("since 08:15:00 (4711000 ms)", "since … (… ms)"),
        ("trace 4bf92f3577b34da6a3ce929d0e0e4736.", "trace …."),
        ("Cannot connect to host 127.0.0.1:10000 ssl:default", "Cannot connect to host 127.0.0.1:10000 ssl:default"),
        ("no answer: pay-2.example.com:8443, HTTP/1.1", "no answer: pay-2.example.com:8443, HTTP/1.1"),
    ],
)
def test_causes_can_be_grouped_by_what_services_say(said, shown):
    """Without what is different each time: ids and times."""
    assert without_particulars(said) == shown


@pytest.mark.proves("ALR-1")
def test_what_a_service_says_is_short_and_plain():
    """Whatever it is: it goes to lists, terminals and logs."""
    reason = told(claimed(), "down\n\x1b[31m\u202e" + "x" * 900).after.step("payment").reason
    assert reason.startswith("down  [31m xxx")
    assert reason.isprintable()
    assert len(reason) == 200
    assert told(claimed(), " \n").after.step("payment").reason == "the agent gave no reason"
