"""What alerts, refusals, the history and the work index say, word for word: others read it."""

from dataclasses import replace
from datetime import timedelta
from hashlib import sha256

import pytest

from engine.alerts import events as alerts
from engine.alerts.conditions import Condition, ConditionStatus
from engine.decisions.lists import summary
from engine.decisions.operator_actions import BY_NAME
from engine.decisions.transitions import HistoryEntry, Note, OperatorEvent
from engine.domain import exact_json
from engine.domain import statuses as life
from engine.domain.backoff import SHORTEST
from engine.domain.causes import Cause, Code
from engine.domain.clocks import ClockSkew
from engine.domain.events import (
    AttemptExpired,
    CooldownStarted,
    NotAttempted,
    OrderEnded,
    OrderProcessed,
    Recovered,
    ReplyRefused,
    Requeued,
    StepCompleted,
    StepFailed,
    StepStarted,
    StepUndone,
    UndoRequested,
    WorkflowChanged,
)
from engine.domain.orders import Pending
from engine.domain.states import BackingOff, UndoPending
from engine.domain.statuses import Outcome
from engine.domain.submitted_order import OnFailure
from tests.support.builders import (
    NOW,
    ORDER_ID,
    answer,
    claimed,
    index_rows,
    not_attempted,
    orders,
    refusal,
    scheduler,
    seconds,
    steps,
    supervisor,
    timed_out,
)

LATER = NOW + timedelta(minutes=10)
AHEAD = ClockSkew(by=timedelta(seconds=7.4), since=NOW)


def failed_order():
    """An order whose payment failed."""
    return scheduler.receive(claimed(), answer(outcome="failed", detail="declined"), NOW).after


def of_entry(order, *happened):
    """The alert of what happened to an order."""
    (alert,) = alerts.of(order, HistoryEntry(at=NOW, actor="t", events=happened))
    return alert


def of_end(order):
    """The alert that an order has ended."""
    return of_entry(
        order, OrderEnded(outcome=order.outcome, step="payment", cause=refusal("declined"))
    )


def asks(*what):
    return {"actionRequired": bool(what), "actions": list(what)}


def event(event_id, kind, subject, data, at=NOW):
    return OperatorEvent(event_id=event_id, type=kind, subject=subject, at=at, data=data)


def json_of(code, **facts):
    """A cause as rows and alerts have it."""
    return Cause(code, facts).as_json()


ENDED = {
    "orderId": ORDER_ID,
    "workflow": "payment-only",
    "step": "payment",
    "reason": refusal("declined").as_json(),
    "cause": "refused: declined",
    "failureCount": 0,
    "stillToBeUndone": [],
}
WHY = Cause(Code.SUBMISSION_CONFLICT)
REJECTED = asks("correct-message")
SILENT = Condition(
    key="agents/payment",
    reason=Cause(Code.NO_SWEEP),
    since=NOW,
    first=NOW,
    last=LATER,
    count=2,
    orders=("b03-1", "b03-2"),
    status=ConditionStatus.CHANGED,
    revision=2,
    raised_at=NOW,
)
ALERT_OF_SILENT = {
    "alert": f"stalled:agents/payment:{NOW.isoformat()}",
    "revision": 2,
    "condition": "agents/payment",
    "reason": json_of(Code.NO_SWEEP),
    "since": NOW.isoformat(),
    "first": NOW.isoformat(),
    "last": LATER.isoformat(),
    "count": 2,
    "orders": ["b03-1", "b03-2"],
}
ALERTS = {
    "an order failed": (
        lambda: of_end(failed_order()),
        event(
            f"{ORDER_ID}:3",
            life.ORDER_FAILED,
            f"orders/{ORDER_ID}",
            ENDED | {"outcome": Outcome.FAILED} | asks("resubmit", "skip", "cancel"),
        ),
    ),
    "an order was undone": (
        lambda: of_end(orders.in_error(failed_order(), outcome=Outcome.UNDONE)),
        event(
            f"{ORDER_ID}:3",
            life.ORDER_UNDONE,
            f"orders/{ORDER_ID}",
            ENDED | {"outcome": Outcome.UNDONE} | asks(),
        ),
    ),
    "a submission that names an order": (
        lambda: alerts.submission_rejected(ORDER_ID, WHY, "id", NOW),
        event(
            "id",
            alerts.SUBMISSION_REJECTED,
            f"orders/{ORDER_ID}",
            {"orderId": ORDER_ID, "reason": WHY.as_json()} | REJECTED,
        ),
    ),
    "a submission that names none": (
        lambda: alerts.submission_rejected(None, WHY, "id", NOW),
        event(
            "id",
            alerts.SUBMISSION_REJECTED,
            "orders/unknown",
            {"orderId": None, "reason": WHY.as_json()} | REJECTED,
        ),
    ),
    "a notice": (
        lambda: alerts.notice_given_up(ORDER_ID, "status-x", "gone", NOW),
        event(
            f"{ORDER_ID}:notices:status-x",
            alerts.NOTICE_GIVEN_UP,
            f"orders/{ORDER_ID}",
            {
                "orderId": ORDER_ID,
                "reason": json_of(Code.NOTICES_NOT_SENT, queue="status-x", error="gone"),
            }
            | asks("repair-queue"),
        ),
    ),
    "a workflow": (
        lambda: of_entry(orders.new(), WorkflowChanged(workflow="order", version=2, steps="a, b")),
        event(
            f"workflow:order:2:{sha256(b'a, b').hexdigest()[:12]}",
            alerts.WORKFLOW_CHANGED,
            "workflows/order",
            {"reason": json_of(Code.WORKFLOW_CHANGED, workflow="order", version=2, steps="a, b")}
            | asks("raise-version"),
        ),
    ),
    "something stalled": (
        lambda: alerts.stalled(SILENT),
        event(
            f"stalled:agents/payment:{NOW.isoformat()}:2",
            alerts.STALLED,
            "agents/payment",
            ALERT_OF_SILENT | {"status": "changed"} | asks("look-at-health"),
        ),
    ),
    "something that stalled goes on": (
        lambda: alerts.stalled(replace(SILENT, status=ConditionStatus.RESOLVED)),
        event(
            f"stalled:agents/payment:{NOW.isoformat()}:2",
            alerts.STALLED,
            "agents/payment",
            ALERT_OF_SILENT | {"status": "resolved", "actionRequired": False, "actions": []},
        ),
    ),
    "a clock": (
        lambda: alerts.clock_off("i1", AHEAD),
        event(
            f"clock:i1:{NOW.isoformat()}",
            alerts.STALLED,
            "clocks/i1",
            {
                "reason": json_of(Code.CLOCK_AHEAD, instance="i1", seconds=7),
                "since": NOW.isoformat(),
            }
            | asks("set-clock"),
        ),
    ),
}


@pytest.mark.proves("ALR-1")
@pytest.mark.parametrize("what", ALERTS)
def test_an_alert_says_what_happened_and_what_can_be_done(what):
    """Every field: a subscriber may go by any of them."""
    make, expected = ALERTS[what]
    assert make() == expected


def test_an_alert_says_what_is_still_to_be_undone():
    """Of an order that goes forward nothing is."""
    doubtful = steps.in_doubt("payment")
    stuck = [steps.undo_failed(doubtful)]
    back = orders.in_error(steps=stuck, outcome=Outcome.UNDO_INCOMPLETE)
    forth = orders.in_error(steps=[steps.failed(doubtful)])
    still = [of_end(order).data["stillToBeUndone"] for order in (back, forth)]
    assert still == [["payment"], []]


@pytest.mark.proves("OPR-4")
@pytest.mark.parametrize(
    ("order", "cancel", "mend"),
    [
        (
            orders.processed(),
            Cause(Code.PROCESSED_ALREADY),
            Cause(Code.NOT_IN_ERROR, {"action": "resubmit", "state": "Processed"}),
        ),
        (
            orders.in_error(outcome=Outcome.UNDONE),
            Cause(Code.UNDONE_ALREADY),
            Cause(Code.NOTHING_TO_RESUME),
        ),
        (
            orders.in_error(outcome=Outcome.UNDO_INCOMPLETE),
            Cause(Code.UNDO_REQUESTED_ALREADY, {"has_stopped": True}),
            None,
        ),
        (
            orders.processing(orders.undoing(steps=[steps.undo_pending()])),
            Cause(Code.UNDO_REQUESTED_ALREADY, {"has_stopped": False}),
            Cause(Code.NOT_IN_ERROR, {"action": "resubmit", "state": "Processing"}),
        ),
        (orders.in_error(), None, None),
    ],
)
def test_a_refusal_says_why(order, cancel, mend):
    """With a cause that has a text."""
    refusals = (BY_NAME[name].why_not(order, NOW) for name in ("cancel", "resubmit"))
    assert tuple(refusals) == (cancel, mend)


def undoing():
    """An order whose payment is being undone for the second time."""
    return orders.processing(orders.undoing(steps=[steps.undoing()]))


HAPPENED = {
    "completed": (
        claimed(),
        answer(),
        [StepCompleted(step="payment", attempt=1), OrderProcessed()],
    ),
    "failed": (
        claimed(),
        answer(outcome="failed", detail="declined"),
        [
            StepFailed(step="payment", attempt=1, cause=refusal("declined")),
            OrderEnded(outcome=Outcome.FAILED, step="payment", cause=refusal("declined")),
        ],
    ),
    "not tried": (
        claimed(),
        answer(outcome="notAttempted", detail="open"),
        [NotAttempted(step="payment", attempt=1, cause=not_attempted("open"))],
    ),
    "undone": (
        undoing(),
        answer(action="undo", attempt=2),
        [StepUndone(step="payment", attempt=2), OrderEnded(outcome=Outcome.UNDONE)],
    ),
}


@pytest.mark.proves("SCH-5")
@pytest.mark.parametrize("what", HAPPENED)
def test_the_history_says_of_which_step_and_attempt_it_tells(what):
    """The console draws bars from it, and senders get notices."""
    order, reply, happened = HAPPENED[what]
    assert list(scheduler.receive(order, reply, NOW).entry.events)[: len(happened)] == happened


@pytest.mark.proves("SCH-6")
def test_a_reply_that_is_refused_stands_in_the_history_with_its_time():
    """And with what it was a reply to."""
    note = scheduler.receive(claimed(), answer(attempt=2), NOW + seconds(1))
    assert isinstance(note, Note)
    assert note.entry.at == NOW + seconds(1)
    cause = Cause(Code.REPLY_OUTDATED, {"step": "payment", "attempt": 2, "current": 1})
    assert note.entry.events == (ReplyRefused(step="payment", attempt=2, cause=cause),)


OF_ANY = {
    "FailureCount": 0,
    "Priority": "normal",
    "Workflow": "payment-only",
    "WorkflowVersion": 1,
    "ReadySince": NOW,
}


AT_PAYMENT = {"Step": "payment", "Attempt": 1, "Threshold": 3}


@pytest.mark.parametrize(
    ("order", "columns"),
    [
        (
            orders.pending(steps=[steps.scheduled(at=LATER)], ready_since=NOW),
            AT_PAYMENT
            | {"List": "Pending", "Situation": "pending", "ProcessState": "Pending"}
            | {"NotBefore": LATER},
        ),
        (
            claimed(),
            AT_PAYMENT
            | {"List": "Processing", "Situation": "processing", "ProcessState": "Processing"}
            | {"Agents": "payment", "CompleteBy": claimed().derived.complete_by},
        ),
        (
            failed_order(),
            {
                "List": "Error",
                "Situation": "failed",
                "ProcessState": "Error",
                "Outcome": "failed",
                "FailedSteps": "payment",
                "FailedAgents": "payment",
                "Cause": "refused: declined",
                "Reason": exact_json.write(refusal("declined").as_json()),
            },
        ),
    ],
    ids=["pending", "running", "in error"],
)
def test_the_work_index_says_what_lists_and_looks_need(order, columns):
    """Nothing that is null: a table has no such thing."""
    (row,) = index_rows(order).values()
    assert row.data == OF_ANY | {"UpdatedAt": order.updated_at} | columns


def expired_again(cooldowns=0):
    """What happens when a payment times out for the last time, with so many cooldowns allowed."""
    order = claimed()
    last = steps.with_counts(order.step("payment"), failures=2, attempts=3)
    order = orders.with_steps(order, steps.with_rules(last, max_cooldowns=cooldowns))
    return supervisor.recover(order, timed_out(order)).entry


EXPIRED = AttemptExpired(
    step="payment", attempt=3, agent="payment", failure=3, threshold=3, has_begun=True
)


@pytest.mark.proves("SUP-3")
def test_the_history_says_which_step_timed_out_and_what_becomes_of_it():
    """It is tried again, cools down, or is given up."""
    order = claimed()
    first = supervisor.recover(order, timed_out(order)).entry.events
    assert first == (replace(EXPIRED, attempt=1, failure=1), Recovered())
    rests = expired_again(cooldowns=1)
    cools = CooldownStarted(
        step="payment", number=1, most=1, until=rests.at + order.steps[0].rules.cooldown
    )
    assert rests.events == (EXPIRED, cools, Recovered())
    given_up = expired_again().events
    cause = Cause(Code.THRESHOLD_REACHED, {"step": "payment", "failures": 3, "fault": ""})
    assert given_up[:2] == (EXPIRED, StepFailed(step="payment", attempt=3, cause=cause))


@pytest.mark.proves("UND-1")
def test_an_order_that_is_to_be_undone_is_nobodys_and_says_what_for():
    """And the step that failed has no reason left to go to another agent."""
    order = claimed()
    payment = steps.with_rules(order.step("payment"), on_failure=OnFailure.UNDO)
    order = orders.with_steps(order, payment)
    change = scheduler.receive(order, answer(outcome="failed", detail="declined"), NOW)
    requested = UndoRequested(step="payment", cause=refusal("declined"))
    assert change.entry.events == (
        StepFailed(step="payment", attempt=1, cause=refusal("declined")),
        requested,
    )
    after = change.after
    assert after.state == Pending()
    assert (after.derived.locked_by, after.derived.complete_by) == (None, None)
    assert after.steps[0].state == UndoPending()


@pytest.mark.proves("UND-4")
def test_an_undo_that_was_not_tried_stays_one():
    """It waits for its turn, and is not done instead."""
    reply = answer(action="undo", attempt=2, outcome="notAttempted", detail="open")
    (step,) = scheduler.receive(undoing(), reply, NOW, capacity={}).after.steps
    waits = UndoPending(BackingOff(NOW + SHORTEST))
    assert (step.state, step.counts.attempts) == (waits, 2)


@pytest.mark.proves("SCH-1")
def test_an_order_that_is_put_back_says_until_when():
    """Until the first of its steps may begin again."""
    order = claimed()
    reply = answer(outcome="notAttempted", detail="busy", retry_after=30.0)
    until = NOW + seconds(30)
    assert scheduler.receive(order, reply, NOW).entry.events[-1] == Requeued(until=until)
    at_once = reply.model_copy(update={"retry_after": 0})
    late = NOW + seconds(2)
    assert scheduler.receive(order, at_once, late, capacity={}).entry.events[-1] == Requeued()


@pytest.mark.proves("SUP-3")
def test_a_step_that_nobody_began_names_the_agent_of_the_request():
    """So that whoever explains the order can name the agent."""
    order = claimed()
    recovered = supervisor.recover(order, timed_out(order), health=[]).after
    assert recovered.steps[0].cause == Cause(Code.NOT_BEGUN, {"agent": "payment"})


@pytest.mark.proves("SCH-6")
def test_a_reply_of_an_order_whose_workflow_is_gone_is_refused():
    """No newer version of the app knows more of it."""
    note = scheduler.receive(orders.having(claimed(), workflow_version=0), answer(), NOW)
    assert note.entry.events[0].cause.code is Code.REPLY_AFTER_RETIREMENT


@pytest.mark.proves("SCH-8")
def test_a_step_that_no_agent_offers_stands_in_the_history():
    """It has no attempt yet."""
    happened = scheduler.claim(orders.new(payload={}), NOW).entry.events
    failure = next(recorded for recorded in happened if isinstance(recorded, StepFailed))
    assert (failure.step, failure.attempt) == ("payment", 0)


@pytest.mark.proves("SCH-3")
@pytest.mark.parametrize("undo", [False, True])
def test_the_history_says_what_was_started_until_when_and_whether_to_undo(undo):
    """The console draws its bars from that."""
    attempt = 3 if undo else 1
    waits = steps.with_counts(steps.undo_pending(), attempts=2)
    order = orders.undoing(steps=[waits]) if undo else orders.new()
    started = scheduler.claim(order, NOW).entry.events[-1]
    until = NOW + order.steps[0].rules.timeout
    where = {"capability": "payment", "agent": "payment", "complete_by": until}
    assert started == StepStarted(step="payment", attempt=attempt, is_undo=undo, **where)


@pytest.mark.proves("UND-4", "OPR-2")
def test_of_an_undo_that_failed_lists_show_the_step_as_its_alert_does():
    """The step that failed first has no effect, and is not to be mended."""
    refused = steps.failed(steps.new("stock", undoable=False))
    doubtful = steps.in_doubt("payment")
    stuck = [refused, steps.undo_failed(doubtful)]
    back = orders.in_error(steps=stuck, outcome=Outcome.UNDO_INCOMPLETE)
    forth = orders.in_error(steps=[refused, steps.failed(doubtful)])
    shown = [summary(order)["FailedSteps"] for order in (back, forth)]
    assert shown == ["payment", "stock payment"]


@pytest.mark.proves("OPR-2")
def test_lists_show_no_step_of_an_order_that_has_ended_before_it():
    """As of one whose workflow is gone: the step could begin, and nobody will begin it."""
    ended = scheduler.claim(orders.new(workflow_version=0), NOW).after
    assert ended.ready
    assert "Step" in summary(orders.new())
    assert "Step" not in summary(ended)
