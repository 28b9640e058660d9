"""What follows when a complete-by time passes."""

from dataclasses import replace

import pytest

from engine.decisions.step_kinds import MAX_OVERLOADED_ATTEMPTS
from engine.decisions.transitions import NotClaimed
from engine.domain.causes import Cause, Code, root_of, step_failed
from engine.domain.deadlines import Deadline, WhenLate
from engine.domain.effects import InDoubt
from engine.domain.keys import sortable
from engine.domain.messages import AgentRequest, OrderReady, decode
from engine.domain.states import Failed, UndoFailed, UndoPending, Waiting
from engine.domain.statuses import Direction, NotClaimable, ProcessState
from engine.domain.steps import Counts
from engine.domain.submitted_order import OnFailure
from engine.domain.work_index import WorkItemKind
from engine.storage.agent_health import AgentHealth, AttemptFault
from engine.words.causes import words_of
from engine.words.history import in_words
from operations.api.requests import OperatorRequest
from supervisor.rules import FOUND_WITHIN, SupervisorRules
from tests.support.acting import alerts_of, resubmit
from tests.support.builders import (
    MAX_UNBEGUN,
    NOW,
    ORDER_ID,
    TIMEOUT,
    TOLERANCE,
    answer,
    begun_by,
    claimed,
    failed_for_good,
    fault_of_all,
    index_rows,
    next_try,
    orders,
    scheduler,
    seconds,
    steps,
    supervisor,
    timed_out,
    under_way,
)


@pytest.mark.proves("SUP-3")
def test_an_expired_order_is_counted_and_given_back():
    """FailureCount grows, LockedBy is null, CompleteBy is new, and just that step is asked for."""
    order = claimed()
    now = timed_out(order)
    change = supervisor.recover(order, now)
    after, step = change.after, change.after.step("payment")
    assert after.process_state == ProcessState.PENDING
    assert after.derived.locked_by is None
    assert after.failures == 1
    assert after.derived.complete_by > order.derived.complete_by
    assert step.state == Waiting(steps.TIMED_OUT, retry_by=now + TIMEOUT)
    assert step.counts == Counts(attempts=1, failures=1)
    (message,) = change.messages
    order_ready = OrderReady.model_validate_json(message.body)
    assert (order_ready.order_id, order_ready.steps) == (ORDER_ID, ("payment",))


@pytest.mark.proves("SUP-2", "FLT-9")
def test_an_order_is_left_alone_until_its_time_and_the_tolerance_have_passed():
    """A reply may still come until then: the scheduler's and the supervisor's times meet."""
    order = claimed()
    assert supervisor.recover(order, order.derived.complete_by + TOLERANCE) is None
    assert supervisor.recover(orders.new(), NOW) is None


@pytest.mark.proves("SUP-4")
def test_no_moment_suits_both_a_reply_and_a_recovery():
    """Either a reply is still valid or the supervisor may act, never both and never neither."""
    order = claimed()
    due = order.derived.complete_by
    for moment in (due, due + TOLERANCE, timed_out(order)):
        counted = hasattr(scheduler.receive(order, answer(), moment), "after")
        assert counted != (supervisor.recover(order, moment) is not None)


@pytest.mark.proves("SUP-3", "ALR-1")
def test_the_order_is_given_up_once_the_count_reaches_the_threshold():
    """The third of three time-outs makes the order Error; attempts only ever grow."""
    order, _ = failed_for_good()
    assert order.process_state == ProcessState.ERROR
    assert order.failures == 3
    assert order.derived.locked_by is None
    assert order.cause == timed_out_times(3)
    assert order.step("payment").state == Failed(order.cause)
    assert order.step("payment").counts.attempts == 3


def timed_out_times(failures, step="payment", fault=""):
    """The cause of a step that has reached its threshold."""
    facts = {"step": step, "failures": failures, "fault": fault}
    return Cause(Code.THRESHOLD_REACHED, facts)


@pytest.mark.proves("ALR-1")
def test_every_time_that_an_order_fails_has_an_alert_of_its_own():
    """Resubmitted, it fails again; the alert says how often it was tried."""
    order, events = orders.new(steps=[steps.new(threshold=1)]), []
    for now in (NOW, NOW + seconds(3600)):
        running = claimed(order, now)
        change = supervisor.recover(running, timed_out(running))
        events += alerts_of(change)
        order = resubmit(change.after, OperatorRequest(operator="grace", note="again"), now).after
    assert [event.data["failureCount"] for event in events] == [1, 1]
    assert len({event.event_id for event in events}) == 2


COOLS_DOWN_ONCE = {
    "on_failure": OnFailure.COOLDOWN,
    "cooldown": seconds(60),
    "max_cooldowns": 1,
    "threshold": 1,
}


@pytest.mark.proves("SUP-3")
def test_a_step_rests_a_bounded_number_of_times():
    """At the threshold it waits with a fresh count; after the last rest it is given up."""
    order = claimed(orders.new(steps=[steps.new(**COOLS_DOWN_ONCE)]))
    now = timed_out(order)
    cooldowns = supervisor.recover(order, now)
    assert cooldowns.messages == ()
    assert "cooldown 1 of 1" in in_words(cooldowns.entry.events)
    assert cooldowns.after.derived.not_before == now + seconds(60)
    assert cooldowns.after.step("payment").counts.failures == 0
    assert cooldowns.after.step("payment").counts.cooldowns == 1
    assert scheduler.claim(cooldowns.after, now + seconds(59)) == NotClaimed(
        why=NotClaimable.NOT_YET
    )
    again = claimed(cooldowns.after, now + seconds(60))
    assert again.step("payment").not_before is None
    assert supervisor.recover(again, timed_out(again)).after.process_state is ProcessState.ERROR


@pytest.mark.proves("SUP-3")
def test_one_step_rests_while_another_is_tried_again():
    """The order goes on with the other; the one that rests begins when its time has come."""
    running = orders.processing(steps=[runs("payment", **COOLS_DOWN_ONCE), runs("other")])
    change = supervisor.recover(running, NOW + seconds(7))
    assert change.after.derived.not_before is None
    assert change.messages
    assert change.after.step("payment").not_before == NOW + seconds(67)


def runs(name, *, complete_by=NOW + TIMEOUT, agent=None, **rules):
    """A step with these rules that runs."""
    return steps.running(steps.new(name, **rules), complete_by=complete_by, agent=agent)


@pytest.mark.proves("SUP-3")
def test_steps_that_expire_together_are_one_failure_of_the_order():
    """Each counts its own; the order was tried, and failed, once."""
    after = supervisor.recover(
        orders.processing(steps=[runs("s0"), runs("s1")]), NOW + seconds(7)
    ).after
    assert after.failures == 1
    assert [step.counts.failures for step in after.steps] == [1, 1]


@pytest.mark.proves("SUP-3")
def test_an_order_that_is_given_back_is_due_when_the_longest_of_its_tries_is():
    """From when on it may be claimed, and so long as the step takes that may take longest."""
    slow = orders.processing(steps=[runs("s0"), runs("s1", timeout=seconds(60))])
    after = supervisor.recover(slow, NOW + seconds(7)).after
    assert after.derived.complete_by == NOW + seconds(67)
    tired = [runs(name, **COOLS_DOWN_ONCE) for name in ("s0", "s1")]
    after = supervisor.recover(orders.processing(steps=tired), NOW + seconds(7)).after
    assert after.derived.complete_by == NOW + seconds(7) + seconds(60) + seconds(5)


@pytest.mark.proves("SUP-3", "SCH-12")
def test_an_order_that_has_failed_is_due_when_what_still_runs_is():
    """It is not given back: the scheduler that has it ends it with the last answer."""
    one_fails = [runs("s0", threshold=1), runs("s1", complete_by=NOW + seconds(60))]
    change = supervisor.recover(orders.processing(steps=one_fails), NOW + seconds(7))
    after = change.after
    assert change.entry.event == "step-failed"
    assert after.process_state == ProcessState.PROCESSING
    assert after.derived.locked_by == "s1"
    assert after.derived.complete_by == NOW + seconds(60)


@pytest.mark.proves("SUP-3", "SCH-12")
def test_an_order_that_fails_while_nobody_has_it_is_ended_by_who_claims_it():
    """It was given back for one step when another failed for good: no handling ends here."""
    waits = steps.waiting(steps.in_doubt("s0"))
    order = orders.pending(steps=[waits, runs("s1", threshold=1)])
    change = supervisor.recover(order, NOW + seconds(7))
    assert change.entry.event == "step-failed"
    assert change.after.process_state == ProcessState.PENDING
    assert change.messages


@pytest.mark.proves("SUP-2", "SUP-3")
def test_what_still_runs_of_an_order_that_was_given_back_is_watched_like_any_other():
    """Nobody has the order; the work index says when that step is due."""
    one_expires = [runs("s0"), runs("s1", complete_by=NOW + seconds(60))]
    after = supervisor.recover(orders.processing(steps=one_expires), NOW + seconds(7)).after
    assert after.process_state is ProcessState.PENDING
    due = f"{WorkItemKind.RUNNING}|{sortable(NOW + seconds(60))}|{ORDER_ID}"
    assert due in index_rows(after)


@pytest.mark.proves("SUP-3")
def test_a_step_that_has_to_rest_does_not_put_off_an_order_that_may_be_claimed():
    """The order was given back for another of its steps; whoever claims it begins that one."""
    waits = steps.waiting(steps.in_doubt("s0"))
    order = orders.pending(steps=[waits, runs("s1", **COOLS_DOWN_ONCE)])
    after = supervisor.recover(order, NOW + seconds(7)).after
    assert after.step("s1").not_before == NOW + seconds(67)
    assert (after.derived.ready_since, after.derived.not_before) == (NOW, None)


# Attempts that no agent has begun

ELSEWHERE = {"payment": ("payment", "payment-backup")}


def started(change):
    """The agents that a change asks, and what is asked of them."""
    requests = [(message.queue, decode(AgentRequest, message.body)) for message in change.messages]
    return [
        (queue.removesuffix("-requests"), request.action, request.attempt)
        for queue, request in requests
    ]


@pytest.mark.proves("SUP-3", "FLT-2")
def test_an_attempt_that_no_agent_has_begun_is_not_charged():
    """The order is given back, the history says why, and another agent is asked next."""
    order = claimed()
    now = timed_out(order)
    change = supervisor.recover(order, now, [])
    after, step = change.after, change.after.step("payment")
    assert after.process_state == ProcessState.PENDING
    assert after.derived.locked_by is None
    assert after.failures == 0
    assert step.state == Waiting(NOT_BEGUN, retry_by=now + TIMEOUT)
    assert step.counts == Counts(attempts=1, uncounted=1, unbegun=1)
    why = words_of(Cause(Code.NOT_BEGUN, {"agent": "payment"}))
    assert change.entry.event == "recovered"
    assert in_words(change.entry.events) == f"payment attempt 1 ended without a result: {why}"
    assert started(scheduler.claim(change.after, now, ELSEWHERE)) == [("payment-backup", "do", 2)]


NOT_BEGUN = Cause(Code.NOT_BEGUN, {"agent": "payment"})
ATTEMPT = f"{ORDER_ID}:payment:1:do"
OTHER = f"{ORDER_ID[:-1]}X"


def report_of(*begun, instance="1", faults=True):
    """The report of an instance of the agent, with a fault of whatever it has begun."""
    at_fault = (AttemptFault(text="", requests=begun),) if faults and begun else ()
    return AgentHealth(
        agent="payment", instance=instance, at=NOW + seconds(5), begun=begun, faults=at_fault
    )


REPORTED = {
    "nobody": ([], 0),
    "the agent has begun it": ([report_of(ATTEMPT)], 1),
    "beside others": ([report_of(f"{OTHER}:payment:1:do", ATTEMPT)], 1),
    "the agent has begun that of another order": ([report_of(f"{OTHER}:payment:1:do")], 0),
    "the agent has begun the attempt before": ([report_of(f"{ORDER_ID}:payment:0:do")], 0),
    "the agent has begun the undo": ([report_of(f"{ORDER_ID}:payment:1:undo")], 0),
    "one of two instances has begun it": ([report_of(), report_of(ATTEMPT, instance="2")], 1),
    "the agent speaks, and has begun nothing": ([report_of()], 0),
    "it has begun it, and reports no fault": ([report_of(ATTEMPT, faults=False)], 0),
}


@pytest.mark.proves("SUP-3", "FLT-2")
@pytest.mark.parametrize("who", REPORTED)
def test_an_attempt_is_charged_only_if_an_instance_of_its_agent_has_begun_it(who):
    """That attempt, of that order: what else it began, before or after it, proves nothing."""
    health, failures = REPORTED[who]
    order = claimed()
    after = supervisor.recover(order, timed_out(order), health).after
    assert (after.failures, after.step("payment").counts.failures) == (failures, failures)


@pytest.mark.proves("SUP-3", "FLT-2")
def test_orders_that_come_to_nothing_together_are_tried_apart():
    """One of them may end its agent's process each time."""
    waits = []
    for number in range(100):
        order, now = orders.new(order_id=f"{ORDER_ID[:-2]}{number:02d}"), NOW
        for _ in range(2):
            order = claimed(order, now)
            now = timed_out(order)
            order = supervisor.recover(order, now).after
        waits.append(next_try(order, now) - now)
    together = [other for other in waits if abs(other - waits[0]) < TIMEOUT / 20]
    assert max(waits) < TIMEOUT
    assert len(together) < 20


def time_outs_of(*orders_of_others, own=ATTEMPT, after=5.0):
    """The agent has begun this attempt, and those of others; all timed out so many seconds after `NOW`."""
    requests = (own, *(f"{order_id}:payment:1:do" for order_id in orders_of_others))
    times = (NOW + seconds(after),) * len(requests)
    fault = AttemptFault(text="late", requests=requests, timed_out_at=times)
    return [replace(report_of(*requests), faults=(fault,))]


OTHERS = (OTHER, f"{ORDER_ID[:-1]}Y")


@pytest.mark.proves("SUP-3", "AGT-8")
@pytest.mark.parametrize(
    ("others", "failures"), [((), 1), (OTHERS[:1], 1), (OTHERS, 0)], ids=["1", "2", "3"]
)
def test_time_outs_of_several_orders_are_the_state_of_their_agent(others, failures):
    """The order is tried again, and the history says why; one order, or two, may be the cause themselves."""
    order = claimed()
    change = supervisor.recover(order, timed_out(order), time_outs_of(*others))
    after, step = change.after, change.after.step("payment")
    assert (after.process_state, after.failures) == (ProcessState.PENDING, failures)
    assert (step.counts.failures, step.counts.overloaded) == (failures, not failures)
    code = Code.TIMED_OUT if failures else Code.AGENT_OVERLOADED
    assert step.cause.code is code
    assert isinstance(step.effect, InDoubt)
    assert change.entry.events[0].failure == (failures or None)


@pytest.mark.proves("SUP-3", "UND-4")
def test_an_undo_that_times_out_at_an_overloaded_agent_is_not_charged():
    """It waits to be undone again."""
    order = orders.processing(orders.undoing(steps=[steps.undoing(steps.new(threshold=1))]))
    (own,) = under_way(order)
    change = supervisor.recover(order, timed_out(order), time_outs_of(*OTHERS, own=own))
    step = change.after.step("payment")
    assert isinstance(step.state, UndoPending)
    assert (change.after.failures, step.counts.overloaded) == (0, 1)


@pytest.mark.proves("SUP-3", "AGT-8")
def test_orders_at_a_service_that_hangs_for_all_end_too():
    """After three attempts that are not counted, each time-out counts."""
    order, now, attempts = orders.new(), NOW, 0
    while order.process_state is ProcessState.PENDING:
        order = claimed(order, order.derived.not_before or now)
        now, attempts = timed_out(order), attempts + 1
        (own,) = under_way(order)
        health = time_outs_of(*OTHERS, own=own, after=(now - NOW).total_seconds())
        order = supervisor.recover(order, now, health).after
    assert order.process_state is ProcessState.ERROR
    assert attempts == MAX_OVERLOADED_ATTEMPTS + order.steps[0].rules.threshold


@pytest.mark.proves("SUP-9", "FLT-1")
def test_an_order_is_given_up_when_no_agent_has_begun_so_many_requests():
    """Far beyond the threshold, and no failure is counted: nothing is known of the service."""
    order, now = orders.new(), NOW
    for _ in range(MAX_UNBEGUN):
        assert order.process_state is ProcessState.PENDING
        order = claimed(order, order.derived.not_before or now)
        now = timed_out(order)
        order = supervisor.recover(order, now, []).after
    assert (order.process_state, order.failures) == (ProcessState.ERROR, 0)
    assert order.cause.code is Code.NO_AGENT_BEGAN
    assert order.step("payment").counts.attempts == MAX_UNBEGUN


@pytest.mark.proves("SUP-9")
def test_no_order_is_given_up_while_the_reports_of_agents_cannot_be_read():
    """Nobody knows then whether an agent began its requests."""
    order, now = orders.new(), NOW
    for health in [[]] * (MAX_UNBEGUN - 1) + [None] * 2:
        order = claimed(order, order.derived.not_before or now)
        now = timed_out(order)
        order = SupervisorRules.recover(supervisor, order, now, health).after
    assert order.process_state is ProcessState.PENDING
    assert order.step("payment").counts.unbegun == MAX_UNBEGUN - 1


@pytest.mark.proves("SUP-3")
def test_of_two_attempts_that_expire_together_one_that_was_begun_is_one_failure():
    """Of the order, and of that step; the other one waits uncounted, and the history tells both."""
    order = orders.processing(steps=[runs("s0"), runs("s1", capability="shipping")])
    change = supervisor.recover(order, NOW + seconds(7), [report_of(f"{ORDER_ID}:s0:1:do")])
    assert change.after.failures == 1
    assert [step.counts.failures for step in change.after.steps] == [1, 0]
    due = NOW + seconds(7) + TIMEOUT
    elsewhere = Cause(Code.NOT_BEGUN, {"agent": "shipping"})
    assert [step.state for step in change.after.steps] == [
        Waiting(steps.TIMED_OUT, due),
        Waiting(elsewhere, due),
    ]
    assert in_words(change.entry.events) == (
        f"s0 timed out, failure 1 of 3; s1 attempt 1 ended without a result: {words_of(elsewhere)}"
    )
    (message,) = change.messages
    assert decode(OrderReady, message.body).steps == ("s0", "s1")


POLICIES = [OnFailure.ERROR, OnFailure.UNDO, OnFailure.COOLDOWN]


@pytest.mark.proves("SUP-3", "AGT-6")
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("by_gateway", [True, False], ids=["at the gateway", "the service's word"])
def test_a_fault_of_the_gateway_never_starts_the_undo(policy, by_gateway):
    """A gateway's answer is no word of the service: an operator sees to it, by any policy."""
    order = claimed()
    payment = steps.with_rules(order.step("payment"), threshold=1, on_failure=policy)
    order = orders.with_steps(order, payment)
    health = begun_by(
        NOW, "payment", faults=(fault_of_all("403 forbidden", by_gateway=by_gateway),)
    )
    after = supervisor.recover(order, timed_out(order), health).after
    back = policy is OnFailure.UNDO and not by_gateway
    assert after.process_state is (ProcessState.PENDING if back else ProcessState.ERROR)
    if back:
        after = scheduler.claim(after, after.updated_at).after
    assert (after.direction is Direction.UNDO) is back
    assert root_of(after.cause) == timed_out_times(1, fault="403 forbidden")


@pytest.mark.proves("SUP-3", "AGT-6")
def test_a_fault_of_the_gateway_in_one_branch_starts_no_undo_in_another():
    """But the failure of another step still does, by its own rule."""
    fails = {"threshold": 1, "on_failure": OnFailure.UNDO}
    faults = (
        AttemptFault(text="403", by_gateway=True, requests=(f"{ORDER_ID}:s0:1:do",)),
        AttemptFault(text="500", requests=(f"{ORDER_ID}:s1:1:do",)),
    )
    health = begun_by(NOW, "payment", faults=faults)
    order = orders.processing(steps=[runs("s0", **fails), runs("s1", agent="shipping", **fails)])
    recovered = supervisor.recover(order, NOW + seconds(7), health).after
    after = scheduler.claim(recovered, NOW + seconds(7)).after
    assert after.direction == Direction.UNDO
    assert after.cause == step_failed("s1", timed_out_times(1, "s1", fault="500"))


@pytest.mark.proves("SUP-3", "UND-4")
def test_an_undo_that_no_agent_has_begun_is_not_charged():
    """It waits to be undone again; once begun it counts, and is given up at the threshold."""
    payment = steps.undoing(steps.new(threshold=1))
    order = orders.processing(orders.undoing(steps=[payment]))
    now = timed_out(order)
    unbegun = supervisor.recover(order, now, []).after
    assert unbegun.step("payment").state == UndoPending(Waiting(NOT_BEGUN, now + TIMEOUT))
    assert unbegun.failures == 0
    assert started(scheduler.claim(unbegun, now, ELSEWHERE)) == [("payment-backup", "undo", 3)]
    begun = supervisor.recover(order, now, begun_by(NOW, "payment")).after
    assert begun.step("payment").state == UndoFailed(timed_out_times(1))
    assert begun.failures == 1


@pytest.mark.proves("UND-2", "SCH-12")
@pytest.mark.parametrize("health", [[], begun_by(NOW, "payment")], ids=["begun by nobody", "begun"])
def test_a_step_that_expires_after_the_undo_was_requested_is_undone_whoever_began_it(health):
    """The request may still be on its way: what was asked for may yet be done."""
    order = orders.undoing(claimed())
    now = timed_out(order)
    change = supervisor.recover(order, now, health)
    step = change.after.step("payment")
    assert step.state == UndoPending(Waiting(retry_by=now + TIMEOUT))
    assert step.counts.failures == 0
    assert change.after.failures == len(health)
    assert decode(OrderReady, change.messages[0].body).steps == ("payment",)


@pytest.mark.proves("SUP-9", "SUP-10")
def test_time_for_which_nobody_looked_is_no_silence():
    """The whole app may have been away, or its orders were restored from a copy."""
    order = claimed()
    in_time = order.step("payment").complete_by + FOUND_WITHIN
    assert [*supervisor.unresponsive_agents(order, in_time, ())] == [("payment", NOW)]
    late = timed_out(order) + FOUND_WITHIN
    assert [*supervisor.unresponsive_agents(order, late, ())] == [("payment", late - TIMEOUT)]


@pytest.mark.proves("SUP-10", "SCH-17")
def test_an_attempt_that_a_deadline_cut_short_shows_no_silence():
    """Its agent drops a request that leaves it no time, without a report."""
    due_by = NOW + TIMEOUT - seconds(1)
    deadline = Deadline(due_by=due_by, due_soon_at=NOW, when_late=WhenLate.STOP)
    order = claimed(replace(orders.new(), deadline=deadline))
    assert order.step("payment").complete_by == due_by
    assert [*supervisor.unresponsive_agents(order, timed_out(order), ())] == []
