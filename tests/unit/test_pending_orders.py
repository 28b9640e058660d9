"""From when on a pending order may be claimed: as soon as something of it can go on, whatever else has to wait."""

from dataclasses import replace
from datetime import timedelta

import pytest
from builders import COOLDOWN, NOW, ORDER_ID, THRESHOLD, TIMEOUT, answer, new_order, scheduler, seconds, supervisor

from core.messages import AgentRequest, WakeUp, decode
from core.orders import Direction, OnFailure, Outcome, ProcessState
from core.workflow import StepDefinition, Workflow, Workflows
from operators import rules as operator_rules
from operators.requests import OperatorRequest

HOURS = timedelta(hours=6)
SOON = NOW + seconds(8)
GRACE = OperatorRequest(operator="grace", note="not needed any more")


def step(name, *after, **more):
    """A step that can be undone, at an agent that is always there."""
    rules = {"capability": "payment", "operation": "do", "compensation": "undo", "request": lambda order, results: {}}
    return StepDefinition(name=name, after=after, **rules | more)


RESTS = step("rests", on_failure=OnFailure.COOLDOWN, threshold=1, cooldown=HOURS, timeout=seconds(5))


def order_of(*steps):
    """A new order of these steps, and the scheduler that knows them."""
    workflow = Workflow(name="w", version=1, steps=steps)
    order = new_order().with_state(workflow="w", workflow_version=1)
    order = replace(order, steps=workflow.initial_steps(timeout=TIMEOUT, threshold=THRESHOLD, cooldown=COOLDOWN))
    return order, replace(scheduler, workflows=Workflows(workflow))


def resting(*others):
    """An order of which the first step rests for hours, while the others run for a minute, if their turn has come."""
    order, rules = order_of(RESTS, *(replace(other, timeout=seconds(60)) for other in others))
    return supervisor.recover(rules.claim(order, NOW).after, NOW + seconds(7)).after, rules


def woken(change):
    """The orders that the messages of a change announce to the schedulers."""
    return [decode(WakeUp, each.body).order_id for each in change.messages if each.queue == "scheduler-requests"]


def started(change):
    """The steps that a change asks agents for, and what is asked."""
    requests = [decode(AgentRequest, each.body) for each in change.messages if each.queue == "payment-requests"]
    return [(request.step, request.action) for request in requests]


@pytest.mark.proves("SCH-10", "SUP-3")
def test_a_step_whose_turn_has_come_does_not_wait_out_the_rest_of_another():
    """Its reply makes the next step ready: a scheduler is woken, and starts that one at once."""
    order, rules = resting(step("runs"), step("next", "runs"))
    assert order.state.not_before == NOW + seconds(7) + HOURS
    change = rules.receive(order, answer("runs", result={}), SOON)
    assert (change.after.state.not_before, woken(change)) == (SOON, [ORDER_ID])
    assert started(rules.claim(change.after, SOON)) == [("next", "do")]


@pytest.mark.proves("SCH-8", "SCH-12")
@pytest.mark.parametrize(
    ("on_failure", "ends"),
    [
        (OnFailure.UNDO, (ProcessState.PENDING, Direction.UNDO)),
        (OnFailure.ERROR, (ProcessState.ERROR, Direction.FORWARD)),
    ],
    ids=["undo", "error"],
)
def test_an_order_that_failed_does_not_wait_out_a_rest(on_failure, ends):
    """A step is refused while another rests: operators hear of it, or it is taken back, at once."""
    order, rules = resting(step("runs", on_failure=on_failure))
    change = rules.receive(order, answer("runs", "failed", reason="no"), SOON)
    assert (change.after.state.not_before, woken(change)) == (SOON, [ORDER_ID])
    state = rules.claim(change.after, SOON).after.state
    assert (state.process_state, state.direction) == ends


@pytest.mark.proves("OPR-4", "UND-1")
def test_an_order_that_was_cancelled_does_not_wait_out_a_rest():
    """Cancelled while a step ran that cannot be undone: when its time is up, nothing is left to wait for."""
    order, rules = order_of(replace(RESTS, compensation=None))
    cancelled = operator_rules.cancel(rules.claim(order, NOW).after, GRACE, NOW + seconds(1))
    change = supervisor.recover(cancelled.after, NOW + seconds(7))
    assert (change.after.state.not_before, woken(change)) == (NOW + seconds(7), [ORDER_ID])
    assert "; rest" not in change.entry.detail
    assert rules.claim(change.after, NOW + seconds(7)).after.state.outcome is Outcome.UNDONE


@pytest.mark.proves("SUP-3", "SCH-10")
def test_a_step_that_found_no_room_does_not_wait_out_the_rest_of_another():
    """It may begin as soon as an agent has room for it; and the order waits among those that need that agent."""
    order, rules = order_of(RESTS, step("ready", capability="shipping"))
    order = rules.claim(order, NOW, {"payment": "payment"}).after
    change = supervisor.recover(order, NOW + seconds(7))
    assert (change.after.state.not_before, woken(change)) == (NOW + seconds(7), [ORDER_ID])
    assert change.after.needs() == "shipping"


@pytest.mark.proves("SCH-10")
def test_an_order_waits_among_those_that_need_what_it_can_go_on_with():
    """Not for the agent of a step whose turn has not come, although that would not have to wait for a time."""
    order, rules = order_of(step("runs", timeout=HOURS), step("later", "runs", capability="shipping"), RESTS)
    order = supervisor.recover(rules.claim(order, NOW).after, NOW + seconds(7)).after
    assert (order.needs(), order.state.not_before) == ("payment", NOW + seconds(7) + HOURS)


@pytest.mark.proves("SUP-3", "SCH-10")
def test_while_all_that_can_go_on_rests_nobody_is_woken():
    """The order waits for the first rest that is over, however many come and go meanwhile."""
    order, rules = resting(step("runs"), step("last", "rests", "runs"))
    change = rules.receive(order, answer("runs", result={}), SOON)
    assert (change.after.state.not_before, woken(change)) == (NOW + seconds(7) + HOURS, [])
    assert rules.claim(change.after, SOON) is None


@pytest.mark.proves("SCH-11")
def test_an_order_that_may_be_claimed_keeps_its_place_among_those_that_wait():
    """What happens to it meanwhile does not send it back to the end."""
    order, rules = order_of(step("expires"), step("runs", timeout=seconds(60)))
    order = supervisor.recover(rules.claim(order, NOW).after, NOW + seconds(7)).after
    later = rules.receive(order, answer("runs", result={}), NOW + seconds(50)).after
    assert (later.state.process_state, later.state.not_before) == (ProcessState.PENDING, NOW + seconds(7))
