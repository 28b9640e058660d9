"""A step that times out says what the service said last (SUP-3, ALR-1)."""

import pytest

from engine.domain.causes import Cause, Code
from engine.domain.messages import request_id_of
from engine.domain.states import Completed, Running, UndoPending
from engine.domain.statuses import Outcome, ProcessState
from engine.domain.submitted_order import OnFailure
from engine.storage.agent_health import AttemptFault
from engine.words.causes import words_of
from engine.words.history import in_words
from operations.api.requests import OperatorRequest
from tests.support import acting as operator_rules
from tests.support.acting import alerts_of
from tests.support.builders import (
    NOW,
    ORDER_ID,
    THRESHOLD,
    answer,
    begun_by,
    claimed,
    orders,
    scheduler,
    seconds,
    steps,
    supervisor,
    timed_out,
)

GRACE = OperatorRequest(operator="grace", note="not needed any more")
DOWN = "503 down"


def tells(fault, request, by_gateway=False, **more):
    """An agent that has begun whatever it was asked for, and says what went wrong with a request."""
    faults = (AttemptFault(text=fault, by_gateway=by_gateway, requests=(request,)),)
    return begun_by(NOW, "payment", faults=faults, **more)


def request_of(order):
    """The id of the request of the payment's attempt that is under way."""
    return request_id_of(order.order_id, order.step("payment"))


def failing(*faults):
    """An order whose payment times out once for each fault that the agent told before."""
    order, now, health = orders.new(), NOW, []
    for fault in faults:
        order = claimed(order, order.derived.not_before or now)
        health = tells(fault, request_of(order)) if fault else health + begun_by(now, "payment")
        now = timed_out(order)
        change = supervisor.recover(order, now, health)
        order = change.after
    return change


@pytest.mark.proves("SUP-3", "ALR-1", "OPR-1")
def test_a_step_that_is_given_up_names_the_last_report_of_its_agent():
    """The step, the order, the history and the alert."""
    change = failing(DOWN, DOWN, DOWN)
    facts = {"step": "payment", "failures": THRESHOLD, "fault": DOWN}
    why = Cause(Code.THRESHOLD_REACHED, facts)
    assert (change.after.outcome, change.after.cause) == (Outcome.FAILED, why)
    assert change.after.step("payment").cause == why
    assert alerts_of(change)[0].data["reason"] == why.as_json()
    assert in_words(change.entry.events) == f"payment: {words_of(why)}"


def late(fault=""):
    """Why an attempt came to nothing of which this was reported."""
    return Cause(Code.TIMED_OUT, {"fault": fault})


@pytest.mark.proves("SUP-3", "OPR-1")
def test_every_time_out_has_the_reports_of_that_attempt():
    """Nothing of the attempt before: then the service may have been away, and now the agent."""
    assert (
        in_words(failing(DOWN).entry.events)
        == f"payment timed out, failure 1 of {THRESHOLD}; last answer: {DOWN}"
    )
    assert failing(DOWN).after.step("payment").cause == late(DOWN)
    assert (
        in_words(failing(DOWN, None).entry.events) == f"payment timed out, failure 2 of {THRESHOLD}"
    )
    assert failing(DOWN, None).after.step("payment").cause == late()
    assert (
        in_words(failing("no answer: refused").entry.events)
        == "payment timed out, failure 1 of 3; no answer: refused"
    )


OTHERS = f"{ORDER_ID[:-1]}X:payment:1:do", f"{ORDER_ID}:shipping:1:do", f"{ORDER_ID}:payment:2:do"


@pytest.mark.proves("SUP-3")
@pytest.mark.parametrize("by_gateway", [True, False], ids=["at the gateway", "the service's word"])
def test_the_fault_of_another_request_decides_nothing(by_gateway):
    """Not that of another order, another step or another attempt; nor is it the reason (engine 13, host 7)."""
    order = claimed()
    payment = steps.with_rules(order.step("payment"), threshold=1, on_failure=OnFailure.UNDO)
    order = orders.with_steps(order, payment)
    others = (AttemptFault(text="500 others", by_gateway=not by_gateway, requests=OTHERS),)
    own = tells(DOWN, request_of(order), by_gateway)
    around = begun_by(NOW + seconds(3), "payment", faults=others)
    for health in (own + around, around + own):
        change = supervisor.recover(order, timed_out(order), health)
        is_left = change.after.process_state is ProcessState.PENDING  # to be undone
        assert is_left is not by_gateway
        assert change.entry.events[0].fault == DOWN
    unknown = supervisor.recover(order, timed_out(order), around)
    assert unknown.entry.events[0].fault == ""


@pytest.mark.proves("SUP-3")
def test_if_a_gateway_answered_one_of_two_instances_an_operator_decides():
    """Both had the request: its undo would rest on one word of the service."""
    order = claimed()
    health = [*tells("502", request_of(order), by_gateway=True), *tells("503", request_of(order))]
    for reports in (health, health[::-1]):
        after = supervisor.recover(order, timed_out(order), reports).after
        assert after.step("payment").cause == late("502")


@pytest.mark.proves("SUP-3")
def test_an_order_that_is_undone_says_no_more_what_went_wrong_before():
    """What was said of the attempt to do the step is no reason of its undo."""
    cancelled = operator_rules.cancel(claimed(), GRACE, NOW).after
    (step,) = supervisor.recover(
        cancelled, timed_out(cancelled), tells(DOWN, request_of(cancelled))
    ).after.steps
    assert (type(step.state), step.cause) == (UndoPending, None)


@pytest.mark.proves("SCH-5", "SUP-3")
def test_a_step_that_is_tried_again_and_done_says_no_more_what_went_wrong_before():
    """Not while it runs either: that is said of the attempt before."""
    again = claimed(failing(DOWN).after, NOW + seconds(7))
    assert (type(again.step("payment").state), again.step("payment").cause) == (Running, None)
    done = scheduler.receive(again, answer(attempt=2, result={}), NOW + seconds(8)).after
    assert (done.process_state, done.step("payment").state) == (ProcessState.PROCESSED, Completed())
