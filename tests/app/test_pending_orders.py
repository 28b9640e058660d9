"""When an order may be claimed, and since when it waits: its place in the queue, and its age."""

from dataclasses import replace
from datetime import timedelta

import pytest

from engine.decisions.transitions import NotClaimed
from engine.declarations.workflow import StepDefinition, WorkflowDefinition, Workflows
from engine.domain import work_index
from engine.domain.messages import AgentRequest, OrderReady, decode
from engine.domain.orders import Processing
from engine.domain.states import Running, UnderWay
from engine.domain.statuses import Direction, NotClaimable, Outcome, ProcessState
from engine.domain.submitted_order import OnFailure, Priority
from engine.words.history import in_words
from operations.api.requests import OperatorRequest
from tests.support import acting as operator_rules
from tests.support.builders import (
    NOW,
    ORDER_ID,
    TIMEOUT,
    answer,
    order_ready,
    orders,
    scheduler,
    seconds,
    steps,
    supervisor,
)

HOURS = timedelta(hours=6)
SOON = NOW + seconds(8)
GRACE = OperatorRequest(operator="grace", note="not needed any more")


def step(name, *after, **more):
    """A step that can be undone, at an agent that is always there."""
    rules = {
        "capability": "payment",
        "operation": "do",
        "compensation": "undo",
        "request": lambda order, results: {},
    }
    return StepDefinition(name=name, after=after, **rules | more)


RESTS = step(
    "rests", on_failure=OnFailure.COOLDOWN, threshold=1, cooldown=HOURS, timeout=seconds(5)
)


def order_of(*definitions):
    """A new order of these steps, and the scheduler that knows them."""
    workflow = WorkflowDefinition(name="w", version=1, steps=definitions)
    return orders.on(workflow), replace(scheduler, workflows=Workflows(workflow))


def resting(*others):
    """An order whose first step rests for hours, while the others run for a minute in turn."""
    order, rules = order_of(RESTS, *(replace(other, timeout=seconds(60)) for other in others))
    return supervisor.recover(rules.claim(order, NOW).after, NOW + seconds(7)).after, rules


def woken(change):
    """The orders that the messages of a change announce to the schedulers."""
    return [
        decode(OrderReady, message.body).order_id
        for message in change.messages
        if message.queue == "scheduler-requests"
    ]


def times(order):
    """Since when the order waits, and until when it has to."""
    return order.derived.ready_since, order.derived.not_before


def needed(order):
    """The capability that the order needs first; empty if it needs no agent."""
    return work_index.first_need(order, order.derived.ready_since)


def started(change):
    """The steps that a change asks agents for, and what is asked."""
    requests = [
        decode(AgentRequest, message.body)
        for message in change.messages
        if message.queue == "payment-requests"
    ]
    return [(request.step, request.action) for request in requests]


@pytest.mark.proves("SCH-10", "SUP-3")
def test_a_step_whose_turn_has_come_does_not_wait_out_the_rest_of_another():
    """Its reply makes the next step ready: a scheduler is woken, and starts that one at once."""
    order, rules = resting(step("runs"), step("next", "runs"))
    assert times(order) == (NOW + seconds(7) + HOURS, NOW + seconds(7) + HOURS)
    change = rules.receive(order, answer("runs", result={}), SOON)
    assert (times(change.after), woken(change)) == ((SOON, None), [ORDER_ID])
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
    change = rules.receive(order, answer("runs", "failed", detail="no"), SOON)
    assert (times(change.after), woken(change)) == ((SOON, None), [ORDER_ID])
    claimed = rules.claim(change.after, SOON).after
    assert (claimed.process_state, claimed.direction) == ends


@pytest.mark.proves("OPR-4", "UND-1")
def test_an_order_that_was_cancelled_does_not_wait_out_a_rest():
    """It was cancelled while a step ran that cannot be undone: nothing is left to wait for."""
    order, rules = order_of(replace(RESTS, compensation=None))
    cancelled = operator_rules.cancel(rules.claim(order, NOW).after, GRACE, NOW + seconds(1))
    change = supervisor.recover(cancelled.after, NOW + seconds(7))
    assert (change.after.derived.not_before, woken(change)) == (None, [ORDER_ID])
    assert "; cooldown" not in in_words(change.entry.events)
    assert rules.claim(change.after, NOW + seconds(7)).after.outcome is Outcome.UNDONE


@pytest.mark.proves("SUP-3", "SCH-10")
def test_a_step_that_found_no_capacity_does_not_wait_out_the_cooldown_of_another():
    """The order waits among those that need the agent of the step that may begin."""
    order, rules = order_of(RESTS, step("ready", capability="shipping"))
    order = rules.claim(order, NOW, {"payment": ("payment",)}).after
    change = supervisor.recover(order, NOW + seconds(7))
    assert (times(change.after), woken(change)) == ((NOW, None), [ORDER_ID])
    assert needed(change.after) == "shipping"


@pytest.mark.proves("SCH-10")
def test_an_order_waits_among_those_that_need_what_it_can_go_on_with():
    """It does not wait for the agent of a step whose turn has not come."""
    order, rules = order_of(
        step("runs", timeout=HOURS), step("later", "runs", capability="shipping"), RESTS
    )
    order = supervisor.recover(rules.claim(order, NOW).after, NOW + seconds(7)).after
    assert (needed(order), order.derived.not_before) == ("payment", NOW + seconds(7) + HOURS)


@pytest.mark.proves("SUP-3", "SCH-10")
def test_while_all_that_can_go_on_rests_nobody_is_woken():
    """The order waits for the first rest that is over, however many come and go meanwhile."""
    order, rules = resting(step("runs"), step("last", "rests", "runs"))
    change = rules.receive(order, answer("runs", result={}), SOON)
    assert (change.after.derived.not_before, woken(change)) == (NOW + seconds(7) + HOURS, [])
    assert rules.claim(change.after, SOON) == NotClaimed(why=NotClaimable.NOT_YET)


@pytest.mark.proves("SCH-11")
def test_an_order_that_may_be_claimed_keeps_its_place_among_those_that_wait():
    """What comes to nothing does not send it back to the end."""
    order, rules = order_of(step("expires"), step("runs", timeout=seconds(60)))
    order = supervisor.recover(rules.claim(order, NOW).after, NOW + seconds(7)).after
    later = rules.receive(
        order, answer("runs", "notAttempted", detail="busy"), NOW + seconds(50)
    ).after
    assert later.process_state is ProcessState.PENDING
    assert times(later) == (NOW, None)


# Since when it waits


BEFORE = NOW - seconds(60)


def that_waited(order):
    """The order, which was submitted before."""
    return orders.having(order, ready_since=BEFORE)


@pytest.mark.proves("SCH-11", "SUP-7")
def test_an_order_waits_since_its_submission_until_something_comes_of_it():
    """Claimed, put back, not tried, failed, asked of nobody: it keeps its place and its age."""
    order, rules = order_of(step("first"))
    running = rules.claim(that_waited(order), NOW).after
    not_tried = rules.receive(
        running, answer("first", "notAttempted", detail="busy"), SOON - seconds(4), {}
    ).after
    counted = supervisor.recover(running, NOW + seconds(7)).after
    unbegun = supervisor.recover(running, NOW + seconds(7), []).after
    assert [times(state) for state in (running, not_tried, counted, unbegun)] == [
        (BEFORE, None)
    ] * 4
    again = rules.claim(not_tried, SOON).after
    assert times(supervisor.recover(again, SOON + seconds(7)).after) == (BEFORE, None)


ENDS = {"completed": answer("first", result={}), "failed": answer("first", "failed", detail="no")}


@pytest.mark.proves("SUP-7", "SCH-5")
@pytest.mark.parametrize("how", ENDS)
def test_an_order_waits_anew_once_a_step_has_settled(how):
    """Something has come of it: what waits now, has waited for no longer than that."""
    order, rules = order_of(step("first", on_failure=OnFailure.UNDO), step("next", "first"))
    running = rules.claim(that_waited(order), NOW).after
    change = rules.receive(running, ENDS[how], NOW + seconds(3), {})
    assert change.after.process_state is ProcessState.PENDING
    assert times(change.after) == (NOW + seconds(3), None)


@pytest.mark.proves("SUP-7", "UND-1")
def test_an_order_waits_anew_once_a_step_has_been_undone():
    """Of two that are undone one after the other."""
    order, rules = order_of(step("first"), step("next", "first"))
    running = rules.claim(order, NOW).after
    running = rules.receive(running, answer("first", result={}), NOW + seconds(1)).after
    cancelled = operator_rules.cancel(running, GRACE, NOW + seconds(2)).after
    undoing = rules.receive(cancelled, answer("next", result={}), NOW + seconds(3)).after
    undone = answer("next", action="undo", attempt=2, complete_by=NOW + seconds(8))
    assert times(rules.receive(undoing, undone, NOW + seconds(4), {}).after) == (
        NOW + seconds(4),
        None,
    )


@pytest.mark.proves("SUP-7", "OPR-3", "OPR-4")
def test_an_order_waits_anew_once_an_operator_has_acted_on_it():
    """Whatever it went through before is over."""
    order, rules = order_of(step("first"), step("next", "first"))
    running = rules.claim(that_waited(order), NOW).after
    failed = rules.receive(running, answer("first", "failed", detail="no"), NOW + seconds(3)).after
    later = NOW + HOURS
    by_hand = OperatorRequest(operator="grace", note="done by hand")
    acted_on = (
        operator_rules.resubmit(failed, GRACE, later),
        operator_rules.skip(failed, by_hand, later),
        operator_rules.cancel(failed, GRACE, later),
        operator_rules.cancel(order, GRACE, later),
    )
    assert [times(change.after) for change in acted_on] == [(later, None)] * 4


@pytest.mark.proves("SUP-7", "SUP-3")
def test_a_time_that_was_chosen_is_no_delay():
    """An order waits from the end of its cooldown on; cancelled before, from that moment on."""
    order, _ = resting()
    until = NOW + seconds(7) + HOURS
    assert times(order) == (until, until)
    assert times(operator_rules.cancel(order, GRACE, SOON).after) == (SOON, None)


@pytest.mark.proves("SUP-7", "SCH-11")
def test_once_a_cooldown_is_over_the_order_waits_since_then():
    """However often it is claimed, and comes to nothing, after that."""
    order, rules = resting()
    until = NOW + seconds(7) + HOURS
    again = rules.claim(order, until + seconds(60)).after
    assert times(again) == (until, None)
    back = rules.receive(
        again, answer("rests", "notAttempted", attempt=2, detail="busy"), until + seconds(61), {}
    ).after
    assert times(back) == (until, None)


@pytest.mark.proves("SUP-7")
def test_an_order_that_may_go_on_before_its_chosen_time_waits_since_then():
    """Another of its steps may be tried at once, and no time in the future counts."""
    order, rules = resting(step("runs"))
    change = rules.receive(order, answer("runs", "notAttempted", detail="busy"), SOON)
    assert times(change.after) == (SOON, None)


# What a wake-up says


def wake_up_of(change):
    (found,) = [
        decode(OrderReady, message.body)
        for message in change.messages
        if message.queue == "scheduler-requests"
    ]
    return found


@pytest.mark.proves("SUP-3", "SCH-11")
def test_a_wake_up_says_where_the_order_waits():
    """Who hears of it need not read it to give it its place: needs, priority and since when."""
    order, rules = order_of(step("first", capability="shipping"))
    running = rules.claim(orders.having(that_waited(order), priority=Priority.HIGH), NOW).after
    message = wake_up_of(supervisor.recover(running, NOW + seconds(7)))
    assert message.order_id == ORDER_ID
    assert message.needs == "shipping"
    assert message.priority == Priority.HIGH
    assert message.since == BEFORE


@pytest.mark.proves("SUP-3")
def test_a_wake_up_names_only_the_steps_that_may_begin_by_this():
    """It did not find no room before, it does not run on, and its turn has come."""
    runs_on, later = step("runs", timeout=HOURS), step("later", "expires")
    order, rules = order_of(step("expires"), runs_on, step("full", capability="shipping"), later)
    running = rules.claim(order, NOW, {"payment": ("payment",)}).after
    assert [under_way.name for under_way in running.in_state(UnderWay)] == ["expires", "runs"]
    assert wake_up_of(supervisor.recover(running, NOW + seconds(7))).steps == ("expires",)


@pytest.mark.proves("SUB-6")
def test_the_first_wake_up_names_the_steps_that_an_order_begins_with():
    """And needs what the first of them needs."""
    order, _ = order_of(step("first", capability="shipping"), step("next", "first"))
    message = decode(OrderReady, order_ready(order).body)
    assert (message.steps, message.needs, message.since) == (("first",), "shipping", NOW)


def test_an_order_that_can_only_end_needs_nobody():
    """Its wake-up says so."""
    order, _ = order_of(replace(RESTS, compensation=None))
    ended = orders.undoing(order)
    assert decode(OrderReady, order_ready(ended).body).needs is None


@pytest.mark.proves("SCH-12", "SUP-3")
def test_nobody_is_woken_for_an_order_of_which_nothing_can_go_on():
    """It was cancelled while one step waited and one ran: that one answers, then it is woken."""
    order, rules = order_of(step("expires"), step("runs", timeout=seconds(60)))
    order = supervisor.recover(rules.claim(order, NOW).after, NOW + seconds(7)).after
    cancelled = operator_rules.cancel(order, GRACE, SOON)
    assert (cancelled.after.process_state, woken(cancelled)) == (ProcessState.PENDING, [])
    answered = rules.receive(cancelled.after, answer("runs", result={}), SOON + seconds(1))
    assert woken(answered) == [ORDER_ID]
    assert wake_up_of(answered).steps == ("expires", "runs")


# A claim that starts nothing


@pytest.mark.proves("SCH-2", "WRK-2")
def test_a_claim_that_starts_nothing_writes_nothing():
    """There is room for nothing but what runs: the order stays as it is, whoever holds it."""
    order, rules = order_of(step("first"), step("other", capability="shipping"))
    assert rules.claim(order, NOW, {}) == NotClaimed(why=NotClaimable.NO_CAPACITY)
    processing = rules.claim(order, NOW, {"payment": ("payment",)}).after
    assert rules.claim(processing, SOON, {"payment": ("payment",)}) == NotClaimed(
        why=NotClaimable.NO_CAPACITY
    )
    slow = steps.running(processing.step("first"), complete_by=NOW + HOURS)
    pending = orders.pending(orders.with_steps(processing, slow))
    assert rules.claim(pending, SOON, {"payment": ("payment",)}) == NotClaimed(
        why=NotClaimable.NO_CAPACITY
    )


@pytest.mark.proves("SCH-2", "SCH-10")
def test_a_step_that_found_no_capacity_begins_beside_those_that_run():
    """Whoever finds room for it takes the order over, in one write; what runs runs on."""
    order, rules = order_of(step("first"), step("other", capability="shipping"))
    processing = rules.claim(order, NOW, {"payment": ("payment",)}).after
    change = replace(rules, instance="s2").claim(processing, NOW + seconds(2))
    after, entry = change.after, change.entry
    assert (entry.event, in_words(entry.events)) == ("step-started", "other attempt 1 started")
    assert after.state == Processing("s2")
    assert after.derived.locked_by == "s2"
    assert after.derived.complete_by == NOW + TIMEOUT
    assert [running.name for running in after.in_state(Running)] == ["first", "other"]


def test_an_order_at_which_no_agent_works_has_no_deadline():
    """What is due first is asked of any order."""
    assert orders.new().derived.complete_by is None
