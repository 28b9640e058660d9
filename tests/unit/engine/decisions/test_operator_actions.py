"""What operators may do to an order, in which states, and what becomes of it."""

import pytest

from engine.alerts import events as alerts
from engine.decisions.operator_actions import possible, why_customer_cannot_cancel
from engine.decisions.transitions import HistoryEntry
from engine.domain.causes import Cause, Code
from engine.domain.errors import RefusedError
from engine.domain.events import Action, ActionTaken, OrderEnded, UndoRequested
from engine.domain.messages import AgentRequest, decode
from engine.domain.orders import InError, Pending, Processing
from engine.domain.states import (
    STATES,
    Completed,
    NothingToUndo,
    Skipped,
    SkipReason,
    Undoing,
    UndoPending,
    Waiting,
)
from engine.domain.statuses import Direction, Outcome
from engine.domain.steps import Counts
from engine.domain.submitted_order import OnFailure
from engine.words.causes import words_of
from engine.words.history import in_words
from operations.api.requests import OperatorRequest
from operations.api.views import StepStateView, order_view
from tests.support.acting import cancel, is_refused, resubmit, skip
from tests.support.acting import refusal as why_not
from tests.support.builders import (
    NOW,
    PAYLOAD,
    answer,
    claimed,
    failed_for_good,
    orders,
    refusal,
    scheduler,
    seconds,
    some,
    steps,
    supervisor,
    timed_out,
)

REQUEST = OperatorRequest(operator="grace", note="the provider is back")
BY_HAND = OperatorRequest(operator="grace", note="done by hand")
LATER = NOW + seconds(1)
UNDO_RESUMED = Cause(Code.UNDO_RESUMED)


def with_its_result(step):
    """A step that was done."""
    return steps.completed(step, result={"reference": f"r-{step.name}"})


def in_doubt(step):
    """A step that failed after an attempt without an answer."""
    return steps.failed(steps.in_doubt(step), reason="refused")


DONE, NOT, RUNS, FAILED = with_its_result, steps.waiting, steps.running, in_doubt


def order_of(*states):
    """A pending order on the order workflow with its steps in these states."""
    recorded = orders.new(workflow="order")
    made = (
        steps.with_rules(state(step), on_failure=OnFailure.ERROR)
        for step, state in zip(recorded.steps, states, strict=True)
    )
    return orders.pending(recorded, steps=made)


def in_error(*states):
    return orders.in_error(order_of(*states))


def going_back(*states):
    """An order whose undo could not be completed."""
    return orders.in_error(order_of(*states), outcome=Outcome.UNDO_INCOMPLETE)


STUCK = going_back(FAILED, NOT, NOT, NOT)
PROCESSED = orders.processed(order_of(DONE, DONE, DONE, DONE))


def processing(*states):
    return orders.processing(order_of(*states))


def states(order):
    return [type(step.state) for step in order.steps]


def answered(order, step, outcome="completed", action="do", **more):
    attempts = order.step(step).counts.attempts
    reply = answer(step, outcome, attempt=attempts, action=action, **more)
    return scheduler.receive(order, reply, LATER)


def requested(change):
    return {
        (request.step, request.action)
        for request in (decode(AgentRequest, message.body) for message in change.messages)
    }


EXACT = {
    "cools down": (steps.cooling_down(until=LATER), "NotStarted", "CoolingDown", "CoolingDown"),
    "runs": (steps.running(), "Running", "Running", None),
    "awaits an event": (
        steps.awaiting_external_answer(), "Running", "AwaitingExternalEvent", None
    ),
    "is to be undone": (steps.undo_pending(), "Undoing", "UndoPending", "Waiting"),
}  # fmt: skip


@pytest.mark.proves("OPR-1")
@pytest.mark.parametrize("how", EXACT)
def test_operators_see_the_exact_state_of_a_step_beside_its_word(how):
    """And of a step, or an undo, that waits, for what it waits."""
    step, *seen = EXACT[how]
    order = orders.undoing if how == "is to be undone" else orders.pending
    [view] = order_view(order(steps=[step]), PAYLOAD, [], NOW).model_dump(by_alias=True)["steps"]
    assert [view[name] for name in ("state", "exactState", "wait")] == seen
    names = StepStateView.model_json_schema()["properties"]["exactState"]["enum"]
    assert set(names) == {state.__name__ for state in STATES}


@pytest.mark.proves("OPR-3", "OPR-6")
def test_a_resubmitted_order_goes_on_from_the_failed_step_with_a_fresh_count():
    """Counts start afresh, attempts go on, and the history says who did it and why."""
    failed, now = failed_for_good()
    change = resubmit(failed, REQUEST, now)
    after, step = change.after, change.after.step("payment")
    assert (after.state, after.failures, after.cause) == (Pending(), 0, None)
    assert (step.state, step.counts) == (Waiting(), Counts(attempts=3))
    assert (change.entry.actor, in_words(change.entry.events)) == (
        "operator/grace",
        "the provider is back",
    )
    assert scheduler.claim(change.after, now).after.step("payment").counts.attempts == 4


@pytest.mark.proves("OPR-3")
def test_a_resubmitted_step_may_begin_at_once_and_rest_again():
    """Its rests are used up, and it waits for its time: an operator has mended the cause."""
    failed = in_error(FAILED, NOT, NOT, NOT)
    tired = steps.with_rules(failed.step("stock"), on_failure=OnFailure.COOLDOWN)
    tired = steps.with_counts(tired, cooldowns=3, failures=2)
    step = resubmit(orders.with_steps(failed, tired), REQUEST, NOW).after.steps[0]
    assert (step.state, step.counts) == (Waiting(), Counts(attempts=step.counts.attempts))


@pytest.mark.proves("OPR-3", "OPR-4", "UND-4")
def test_of_an_undo_that_stuck_only_what_may_stand_is_seen_to():
    """A step that was refused on the way forward, without doubt, is left as it is."""
    stuck = going_back(steps.nothing_to_undo, FAILED, NOT, NOT)
    assert states(resubmit(stuck, REQUEST, NOW).after)[:2] == [NothingToUndo, UndoPending]
    assert states(skip(stuck, BY_HAND, NOW).after)[:2] == [NothingToUndo, Skipped]


@pytest.mark.proves("OPR-3", "OPR-4", "UND-5", "ALR-1")
def test_an_undo_that_an_operator_resumed_ends_with_that_as_its_reason():
    """In the order, its history and its alert; the reason shown before was the failure (engine 29 g)."""
    stuck = going_back(steps.undone, FAILED, NOT, NOT)
    goes_on = skip(stuck, BY_HAND, NOW).after
    assert goes_on.cause == UNDO_RESUMED
    assert resubmit(stuck, REQUEST, NOW).after.cause == UNDO_RESUMED
    change = scheduler.claim(goes_on, LATER)
    assert change.after.cause == UNDO_RESUMED
    assert change.ended == OrderEnded(outcome=Outcome.UNDONE, cause=UNDO_RESUMED)
    (alert,) = alerts.of(change.after, change.entry)
    assert alert.data["reason"] == UNDO_RESUMED.as_json()


@pytest.mark.proves("OPR-3")
@pytest.mark.parametrize("order", [orders.new(), claimed()], ids=["pending", "processing"])
def test_only_an_order_in_error_can_be_resubmitted_or_freed_of_a_step(order):
    """Anything else is refused with the reason, in the words of what was asked for."""
    with is_refused(Code.NOT_IN_ERROR, action="resubmit", state=order.process_state):
        resubmit(order, REQUEST, NOW)
    with is_refused(Code.NOT_IN_ERROR, action="skip"):
        skip(order, BY_HAND, NOW)


@pytest.mark.proves("OPR-4", "OPR-6")
def test_an_order_goes_on_after_a_skipped_step():
    """The next step begins although it was not done; the history says which, who, and why."""
    change = skip(in_error(DONE, DONE, FAILED, NOT), BY_HAND, NOW)
    assert states(change.after) == [Completed, Completed, Skipped, Waiting]
    assert change.after.step("shipment").state == Skipped(SkipReason.OPERATOR)
    assert change.after.state == Pending()
    assert (change.entry.event, in_words(change.entry.events)) == (
        "skipped",
        "shipment: done by hand",
    )
    assert requested(scheduler.claim(change.after, NOW)) == {("capture", "do")}


@pytest.mark.proves("OPR-4")
@pytest.mark.parametrize(
    ("states", "step", "needs"),
    [((FAILED, DONE), "stock", "shipment"), ((DONE, FAILED), "payment", "capture")],
)
def test_a_step_whose_answer_is_needed_cannot_be_skipped(states, step, needs):
    """The shipment names the reservation, the capture names the authorisation."""
    with is_refused(Code.RESULT_NEEDED, needed={step: [needs]}):
        skip(in_error(*states, NOT, NOT), BY_HAND, NOW, step=step)


@pytest.mark.proves("OPR-4")
def test_an_order_with_two_failed_steps_waits_until_both_are_seen_to():
    """Skipping one of them leaves it in Error; which one is meant has to be said."""
    failed = in_error(FAILED, FAILED, NOT, NOT)
    failed = orders.with_steps(failed, *(steps.with_rules(step, uses=()) for step in failed.steps))
    declined = steps.failed(failed.step("payment"), reason="card declined")
    failed = orders.with_steps(failed, declined)
    with is_refused(Code.SEVERAL_STEPS, steps=["stock", "payment"]):
        skip(failed, BY_HAND, NOW)
    with is_refused(Code.NO_SUCH_STEP, action="skip", steps=["stock", "payment"]):
        skip(failed, BY_HAND, NOW, step="capture")
    change = skip(failed, BY_HAND, NOW, step="stock")
    assert change.after.state == InError(Outcome.FAILED)
    assert change.entry.event == "step-skipped"
    assert change.messages == ()
    assert change.after.cause == refusal("card declined")
    change = skip(change.after, BY_HAND, NOW)
    assert (change.after.state, change.entry.event) == (Pending(), "skipped")


@pytest.mark.proves("OPR-4", "UND-4")
def test_an_undo_that_was_done_by_hand_can_be_skipped():
    """The undo goes on, and the order ends as undone."""
    change = skip(going_back(FAILED, steps.undone, NOT, NOT), BY_HAND, NOW, step="stock")
    end = scheduler.claim(change.after, NOW)
    assert (end.after.state, states(end.after)[0]) == (InError(Outcome.UNDONE), Skipped)


@pytest.mark.proves("OPR-4", "UND-2")
def test_a_skipped_step_is_undone_with_the_others():
    """It was tried, so it may have been done."""
    change = skip(in_error(DONE, DONE, FAILED, NOT), BY_HAND, NOW)
    change = cancel(change.after, REQUEST, NOW)
    assert states(change.after) == [UndoPending, UndoPending, UndoPending, Waiting]


@pytest.mark.proves("OPR-4", "OPR-6", "UND-1")
@pytest.mark.parametrize(
    "order",
    [
        supervisor.recover(processing(DONE, RUNS, NOT, NOT), NOW + seconds(7)).after,
        in_error(DONE, FAILED, NOT, NOT),
    ],
    ids=["pending", "error"],
)
def test_a_cancelled_order_that_nobody_handles_is_claimed_to_be_undone(order):
    """The undo stands in the state; the history says who asked and why; the reason names nobody."""
    change = cancel(order, REQUEST, NOW)
    after = change.after
    assert (after.state, after.direction) == (Pending(), Direction.UNDO)
    assert after.derived.complete_by is None
    assert change.entry.event == "cancelled"
    assert change.entry.actor == "operator/grace"
    assert in_words(change.entry.events) == "the provider is back"
    assert after.cause == Cause(Code.CANCELLED, {"by": "operator"})
    assert ("stock", "undo") in requested(scheduler.claim(after, NOW))


@pytest.mark.proves("OPR-4", "SCH-12")
def test_a_cancelled_order_stays_with_its_scheduler_until_its_steps_have_answered():
    """Nothing is sent meanwhile; then all is undone that was done."""
    change = cancel(processing(DONE, RUNS, NOT, NOT), REQUEST, NOW)
    assert change.after.state == Processing("s1")
    assert change.after.derived.locked_by == "s1"
    assert change.after.derived.complete_by == NOW + seconds(5)
    assert change.messages == ()
    after = answered(change.after, "payment", result={"reference": "p"})
    assert requested(after) == {("stock", "undo"), ("payment", "undo")}


@pytest.mark.proves("OPR-4", "SCH-12", "UND-2")
@pytest.mark.parametrize("how", ["failed", "notAttempted", "expired"])
def test_a_step_that_runs_when_the_order_is_cancelled_is_undone_however_it_ends(how):
    """What it did is unknown in each case; and it is not tried again."""
    after = cancel(processing(DONE, RUNS, NOT, NOT), REQUEST, NOW).after
    if how == "expired":
        after = supervisor.recover(after, timed_out(after)).after
        assert isinstance(after.step("payment").state, UndoPending)
        change = scheduler.claim(after, NOW + seconds(60))
    else:
        again = {"retry_after": 1} if how == "notAttempted" else {}
        change = answered(after, "payment", how, detail="no", **again)
    assert isinstance(change.after.step("payment").state, Undoing)
    assert requested(change) == {("stock", "undo"), ("payment", "undo")}


@pytest.mark.proves("OPR-4", "UND-5")
@pytest.mark.parametrize("how", ["completed", "failed", "notAttempted", "expired"])
def test_a_step_that_runs_when_the_order_is_cancelled_and_cannot_be_undone_ends_the_order(how):
    """There is nothing to take back: however it ends, the order does."""
    order = claimed()
    payment = steps.with_rules(order.step("payment"), undoable=False)
    order = orders.with_steps(order, payment)
    after = cancel(order, REQUEST, NOW).after
    if how == "expired":
        after = supervisor.recover(after, timed_out(after)).after
        after = scheduler.claim(after, NOW + seconds(60)).after
    else:
        after = answered(after, "payment", how, detail="no").after
    assert after.state == InError(Outcome.UNDONE)


@pytest.mark.proves("OPR-4")
@pytest.mark.parametrize("order", [PROCESSED, STUCK], ids=["processed", "undo incomplete"])
def test_an_order_cannot_be_cancelled_where_that_makes_no_sense(order):
    """It is refused with the reason."""
    with pytest.raises(RefusedError) as refusal:
        cancel(order, REQUEST, NOW)
    assert words_of(refusal.value.cause) == why_not("cancel", order, NOW)


@pytest.mark.proves("SUB-8")
@pytest.mark.parametrize(
    ("order", "until", "why"),
    [
        (orders.new(), "payment", None),
        (in_error(FAILED, NOT, NOT, NOT), "payment", None),
        (orders.new(), None, Cause(Code.CUSTOMERS_NEVER_CANCEL)),
        (
            orders.having(orders.new(), state=InError(Outcome.UNDONE)),
            "payment",
            Cause(Code.TAKEN_BACK_ALREADY),
        ),
        (
            orders.with_steps(PROCESSED, steps.new("capture")),
            "capture",
            Cause(Code.DONE_ALREADY),
        ),
    ],
    ids=["it can", "it has failed", "never", "undone at once", "ended before that step"],
)
def test_a_customer_reads_why_an_order_cannot_be_cancelled(order, until, why):
    """In words that name nothing of the app."""
    assert why_customer_cannot_cancel(order, until) == why


POSSIBLE = {
    "pending": (orders.new(), ["cancel", "hold", "expedite"]),
    "processing": (claimed(), ["cancel", "hold", "expedite"]),
    "last step failed": (
        in_error(DONE, DONE, DONE, FAILED),
        ["resubmit", "skip", "settle", "cancel"],
    ),
    "needed step failed": (in_error(DONE, FAILED, NOT, NOT), ["resubmit", "settle", "cancel"]),
    "undo incomplete": (STUCK, ["resubmit", "skip"]),
    "undone": (orders.in_error(STUCK, outcome=Outcome.UNDONE), []),
    "processed": (PROCESSED, []),
}


@pytest.mark.proves("OPR-4", "ALR-1")
@pytest.mark.parametrize("what", POSSIBLE)
def test_what_can_be_done_is_shown_and_an_alert_offers_the_same(what):
    """Nothing is offered that would be refused."""
    order, actions = POSSIBLE[what]
    assert possible(order, NOW) == actions
    if order.outcome:
        ended = HistoryEntry(at=NOW, actor="t", events=some("failed"))
        assert [alert.data["actions"] for alert in alerts.of(order, ended)] == [actions]


@pytest.mark.proves("OPR-1")
def test_the_full_view_shows_the_documented_properties_and_no_personal_data():
    """Null stands where a documented property has no value; the customer is not shown."""
    view = order_view(orders.new(), PAYLOAD, [], NOW).model_dump(mode="json", by_alias=True)
    shown = {"lockedBy": None, "completeBy": None, "processState": "Pending", "failureCount": 0}
    assert view | shown == view
    assert "ada" not in str(view).lower()


@pytest.mark.proves("OPR-1", "UND-4")
@pytest.mark.parametrize(
    ("event", "why"),
    [
        (UndoRequested(step="stock", cause=refusal("out of stock")), "stock: out of stock"),
        (ActionTaken(action=Action.CANCEL, note="changed her mind"), "cancelled: changed her mind"),
        (ActionTaken(action=Action.RESUBMIT, note="again"), None),
    ],
    ids=["by a step", "by an operator", "not at all"],
)
def test_an_order_says_why_it_is_taken_back(event, why):
    """Also when its undo has failed since, for a reason of its own."""
    entry = HistoryEntry(at=NOW, actor="t", events=(event,))
    end = OrderEnded(outcome=Outcome.UNDO_INCOMPLETE, step="payment", cause=refusal("gone"))
    ended = HistoryEntry(at=NOW, actor="t", events=(end,))
    assert order_view(STUCK, PAYLOAD, [entry, ended], NOW).undone_because == why
