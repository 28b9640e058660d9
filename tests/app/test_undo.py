"""How an order is turned back: what is undone, in which order, and by which request."""

from datetime import timedelta

import pytest

from engine.decisions.transitions import NotClaimed
from engine.domain.attempts import FailureOrigin
from engine.domain.causes import step_failed
from engine.domain.keys import sortable
from engine.domain.messages import AgentRequest, decode
from engine.domain.states import (
    LateEffectsPossible,
    Running,
    Skipped,
    SkipReason,
    Undone,
    UndoPending,
    Waiting,
)
from engine.domain.statuses import Direction, NotClaimable, Outcome, ProcessState
from engine.domain.steps import Counts
from engine.domain.submitted_order import OnFailure
from engine.domain.work_index import WorkItemKind
from engine.words.history import in_words
from operations.api.requests import OperatorRequest
from tests.support.acting import alerts_of, cancel, resubmit, skip
from tests.support.builders import (
    NOW,
    ORDER_ID,
    TIMEOUT,
    TOLERANCE,
    answer,
    index_rows,
    next_try,
    orders,
    refusal,
    scheduler,
    seconds,
    start_undo,
    steps,
    supervisor,
    timed_out,
)

LATER = NOW + seconds(1)
INSTANT = timedelta(microseconds=1)
WINDOW = seconds(30)
SETTLED = NOW + TIMEOUT + TOLERANCE + WINDOW
"""When no call of an attempt that began now can take effect any more, where there is a window."""
GRACE = OperatorRequest(operator="grace", note="not needed any more")
BY_HAND = OperatorRequest(operator="grace", note="done by hand")


def in_states(*states):
    """The steps of the order workflow, each in its state."""
    return [
        state(step) for step, state in zip(orders.new(workflow="order").steps, states, strict=True)
    ]


def processing(*states):
    """An order on the order workflow that a scheduler handles, its steps in these states."""
    return orders.processing(workflow="order", steps=in_states(*states))


def pending(*states):
    """An order on the order workflow that nobody handles, its steps in these states."""
    return orders.pending(workflow="order", steps=in_states(*states))


def with_its_result(step):
    """A step that was done."""
    return steps.completed(step, result={"reference": f"r-{step.name}"})


DONE, NOT, RUNS, FAILED = with_its_result, steps.waiting, steps.running, steps.failed
SKIPPED = steps.skipped_by_operator


def states(order):
    return [type(step.state) for step in order.steps]


def claimed_to_undo(order):
    return scheduler.claim(orders.pending(start_undo(order)), LATER)


@pytest.mark.proves("UND-1", "UND-3", "AGT-3", "AGT-9")
def test_the_last_step_is_undone_first_with_what_was_kept_of_it():
    """Under the key of what it undoes, with the result that was stored when the step completed."""
    change = claimed_to_undo(pending(DONE, DONE, DONE, NOT))
    (request,) = [decode(AgentRequest, message.body) for message in change.messages]
    assert (request.step, request.action, request.operation) == ("shipment", "undo", "cancel")
    assert request.idempotency_key == f"{ORDER_ID}:shipment"
    assert request.content["result"] == {"reference": "r-shipment"}
    after = scheduler.receive(change.after, answer("shipment", action="undo", attempt=2), LATER)
    assert after.after.step("shipment").state == Undone()
    assert requested(after) == ["undo of stock, attempt 2", "undo of payment, attempt 2"]


@pytest.mark.proves("UND-1")
def test_what_depends_on_a_step_through_others_is_undone_before_it():
    """The shipment was left out: the capture comes after stock and payment all the same."""
    order = processing(DONE, DONE, SKIPPED, DONE)
    assert [step.name for step in start_undo(order).ready] == ["capture"]


@pytest.mark.proves("UND-2")
def test_every_step_that_was_ever_tried_is_undone():
    """A time-out leaves open what happened; and what was refused may have been delivered twice."""
    running = processing(RUNS, RUNS, NOT, NOT)
    expired = supervisor.recover(running, NOW + seconds(7)).after
    assert states(start_undo(expired)) == [UndoPending, UndoPending, Waiting, Waiting]
    refused = scheduler.receive(running, answer("stock", "failed", detail="no"), LATER).after
    assert states(start_undo(refused)) == [UndoPending, Running, Waiting, Waiting]


@pytest.mark.proves("SCH-12")
def test_after_a_failure_the_others_answer_and_nothing_new_begins():
    """Stock is refused while the payment runs: the order waits for it, and is undone then."""
    change = scheduler.receive(
        processing(RUNS, RUNS, NOT, NOT), answer("stock", "failed", detail="sold out"), LATER
    )
    assert change.messages == ()
    assert change.after.process_state is ProcessState.PROCESSING
    change = scheduler.receive(change.after, answer("payment", result={"reference": "p"}), LATER)
    order = change.after
    assert order.process_state == "Pending"
    assert order.direction == "undo"
    assert order.cause == step_failed("stock", refusal("sold out"))
    assert order.step("payment").state == UndoPending()
    assert change.entry.event == "undo-requested"


@pytest.mark.proves("UND-1", "SCH-12")
def test_a_step_that_answers_after_the_undo_was_requested_is_undone_too():
    """Until then nothing is undone: steps that run answer or expire first."""
    back = start_undo(processing(DONE, RUNS, NOT, NOT))
    assert back.step("stock").state == UndoPending()
    change = scheduler.receive(back, answer("payment", result={"reference": "p"}), LATER)
    assert requested(change) == ["undo of stock, attempt 2", "undo of payment, attempt 2"]


@pytest.mark.proves("SCH-6")
def test_an_undo_is_answered_by_a_reply_to_the_undo_only():
    """A reply to the step's own attempt says nothing of its undo."""
    refused = scheduler.receive(undoing().after, answer("stock", attempt=2), LATER)
    assert refused.entry.event == "reply-refused"


@pytest.mark.proves("UND-4")
def test_the_reply_to_an_undo_ends_it():
    """The step is undone, and is not to be undone once more."""
    change = claimed_to_undo(pending(DONE, NOT, NOT, NOT))
    change = scheduler.receive(change.after, answer("stock", action="undo", attempt=2), LATER)
    assert states(change.after) == [Undone, Waiting, Waiting, Waiting]
    assert change.after.outcome is Outcome.UNDONE
    assert change.messages == ()


@pytest.mark.proves("UND-4", "UND-5", "ALR-1")
def test_an_undo_that_cannot_be_done_ends_with_what_is_left():
    """The alert names it; what depends on nothing else is undone all the same."""
    change = claimed_to_undo(pending(DONE, DONE, NOT, NOT))
    change = scheduler.receive(
        change.after, answer("stock", "failed", action="undo", attempt=2, detail="gone"), LATER
    )
    assert change.after.process_state is ProcessState.PROCESSING
    change = scheduler.receive(change.after, answer("payment", action="undo", attempt=2), LATER)
    assert change.after.outcome is Outcome.UNDO_INCOMPLETE
    (event,) = alerts_of(change)
    assert event.data["stillToBeUndone"] == ["stock"]
    assert event.data["actionRequired"] is True


@pytest.mark.proves("UND-1", "UND-4", "UND-5")
def test_what_comes_before_a_step_that_could_not_be_undone_stays():
    """It may be needed; the alert names all that stands."""
    change = claimed_to_undo(pending(DONE, DONE, DONE, NOT))
    stuck = answer("shipment", "failed", action="undo", attempt=2, detail="on its way")
    change = scheduler.receive(change.after, stuck, LATER)
    assert (change.messages, change.after.outcome) == ((), Outcome.UNDO_INCOMPLETE)
    assert alerts_of(change)[0].data["stillToBeUndone"] == ["stock", "payment", "shipment"]


@pytest.mark.proves("UND-1", "UND-5")
def test_chains_of_steps_are_undone_from_their_ends_independently():
    """A step that runs comes first, and the order does not end before it."""
    first, alone = steps.completed("first"), steps.completed("alone")
    last = steps.completed(steps.new("last", after=("first",)))
    back = start_undo(orders.new(steps=[first, last, alone]))
    assert [step.name for step in back.ready] == ["last", "alone"]
    running = orders.with_steps(back, steps.running(alone))
    assert running.ready == ()
    assert running.still_to_undo()


@pytest.mark.proves("UND-2", "UND-5")
def test_a_step_that_nothing_undoes_is_not_left_to_be_undone():
    """Whatever is in doubt about it."""
    order = pending(FAILED, NOT, NOT, NOT)
    doubtful = steps.in_doubt(steps.with_rules(order.step("stock"), undoable=False))
    order = orders.with_steps(order, doubtful)
    assert claimed_to_undo(order).after.outcome is Outcome.UNDONE


@pytest.mark.proves("UND-5")
def test_an_order_with_nothing_to_take_back_is_undone_at_once():
    """No request goes out, and the event only informs."""
    change = claimed_to_undo(pending(NOT, NOT, NOT, NOT))
    assert (change.after.outcome, change.messages) == (Outcome.UNDONE, ())
    (event,) = alerts_of(change)
    assert event.type == "OrderProcessing.OrderUndone"
    assert event.data["actionRequired"] is False


@pytest.mark.proves("UND-2")
def test_an_undo_waits_for_a_service_that_does_not_refuse_undone_keys():
    """The order is pending until no call can take effect any more, and then goes on by itself."""
    busy = answer("stock", "notAttempted", detail="busy", retry_after=0)
    change = cancel(scheduler.receive(late_effect_window(), busy, LATER, {}).after, GRACE, LATER)
    order = change.after
    follows = order.derived
    assert order.process_state == "Pending"
    assert (follows.locked_by, follows.not_before) == (None, SETTLED)
    assert scheduler.claim(change.after, SETTLED - INSTANT) == NotClaimed(why=NotClaimable.NOT_YET)
    assert requested(scheduler.claim(change.after, SETTLED)) == ["undo of stock, attempt 2"]


def late_effect_window(on_failure=OnFailure.UNDO, window=WINDOW):
    """An order of which a step runs at a service that does not refuse undone keys."""
    stock, payment, *others = pending(NOT, NOT, NOT, NOT).steps
    stock = steps.with_rules(stock, late_effect_window=window, on_failure=on_failure)
    away = steps.scheduled(payment, at=NOW + seconds(3600))
    order = orders.pending(workflow="order", steps=[stock, away, *others])
    return scheduler.claim(order, NOW).after


def requested(change):
    """What the requests ask for that go out with this change."""
    requests = [decode(AgentRequest, message.body) for message in change.messages]
    return [
        f"{request.action} of {request.step}, attempt {request.attempt}" for request in requests
    ]


ANSWERS = {
    "completed": ("completed", {"result": {"reference": "r"}}),
    "refused": ("failed", {"detail": "no"}),
    "not tried": ("notAttempted", {"detail": "busy", "retry_after": 0}),
}


@pytest.mark.proves("UND-2")
@pytest.mark.parametrize("answered", ANSWERS)
def test_an_undo_waits_from_the_end_of_the_attempt_on_whatever_was_answered(answered):
    """The same request may be delivered twice: the other copy may call until its time is up."""
    outcome, more = ANSWERS[answered]
    change = scheduler.receive(
        late_effect_window(OnFailure.ERROR), answer("stock", outcome, **more), LATER, {}
    )
    stock = cancel(change.after, GRACE, LATER).after.step("stock")
    assert stock.state == UndoPending(LateEffectsPossible(SETTLED))


@pytest.mark.proves("UND-2", "OPR-4")
def test_an_undo_waits_for_what_runs_while_an_operator_cancels():
    """The step completes only then, and is undone no sooner than one that had completed before."""
    cancelled = cancel(late_effect_window(), GRACE, NOW).after
    change = scheduler.receive(cancelled, answer("stock", result={"reference": "r"}), LATER)
    assert (change.messages, change.after.derived.not_before) == ((), SETTLED)
    assert requested(scheduler.claim(change.after, SETTLED)) == ["undo of stock, attempt 2"]


@pytest.mark.proves("UND-2", "OPR-3", "OPR-4")
def test_an_undo_waits_from_the_end_of_the_attempt_on_whatever_was_done_since():
    """An operator resubmitted or skipped in between, and then cancelled the order."""
    failed = scheduler.receive(
        late_effect_window(OnFailure.ERROR), answer("stock", "failed", detail="no"), LATER
    ).after
    unneeded = orders.with_steps(failed, SKIPPED(failed.step("shipment")))
    skipped = skip(unneeded, BY_HAND, LATER).after
    assert skipped.step("stock").state == Skipped(SkipReason.OPERATOR)
    for order_now in (failed, resubmit(failed, GRACE, LATER).after, skipped):
        assert cancel(order_now, GRACE, LATER).after.step("stock").not_before == SETTLED


@pytest.mark.proves("UND-2")
def test_an_undo_does_not_wait_once_no_call_can_take_effect():
    """However late the supervisor sees that the time is up, or an operator cancels."""
    expired = supervisor.recover(late_effect_window(), SETTLED).after
    cancelled = cancel(expired, GRACE, SETTLED).after
    assert cancelled.derived.not_before is None
    assert requested(scheduler.claim(cancelled, SETTLED)) == ["undo of stock, attempt 2"]


@pytest.mark.proves("UND-2", "AGT-9")
def test_a_service_that_refuses_undone_keys_is_called_for_the_undo_immediately():
    """There nothing can take effect after it."""
    done = scheduler.receive(
        late_effect_window(window=seconds(0)), answer("stock", result={}), LATER, {}
    ).after
    cancelled = cancel(done, GRACE, LATER).after
    final_at = cancelled.step("stock").effects_final_at
    assert (final_at, cancelled.derived.not_before) == (None, None)
    assert requested(scheduler.claim(cancelled, LATER)) == ["undo of stock, attempt 2"]


@pytest.mark.proves("UND-2", "FLT-9")
def test_an_attempt_that_a_slower_clock_began_shortens_no_wait():
    """The first scheduler's clock was ahead: its agent may call for as long as it was told."""
    late = NOW + seconds(10)
    expired = supervisor.recover(late_effect_window(), late).after
    ahead = steps.with_key(expired.step("stock"), effects_final_at=late + seconds(100))
    again = scheduler.claim(orders.with_steps(expired, ahead), late).after
    assert again.step("stock").counts.attempts == 2
    assert again.step("stock").effects_final_at == late + seconds(100)


@pytest.mark.proves("UND-2", "UND-4")
def test_no_attempt_to_undo_a_step_puts_its_undo_off():
    """Else each try of the undo would have to wait for the one before."""
    undoing = scheduler.claim(cancel(failed_in_doubt(), GRACE, LATER).after, SETTLED).after
    expired = supervisor.recover(undoing, timed_out(undoing)).after
    final_at = expired.step("stock").effects_final_at
    assert (final_at, expired.derived.not_before) == (SETTLED, None)
    assert requested(scheduler.claim(expired, expired.updated_at)) == ["undo of stock, attempt 3"]


def failed_in_doubt():
    """An order in `Error`: its only attempt may have been done at a service with a window."""
    reply = answer("stock", "failed", detail="too long", in_doubt=True)
    return scheduler.receive(late_effect_window(OnFailure.ERROR), reply, LATER).after


@pytest.mark.proves("UND-2")
def test_the_undo_of_a_completed_step_waits_for_the_calls_of_all_its_attempts():
    """The first call hangs, the second attempt completes, and a refused step turns it back."""
    order_now = scheduler.claim(stock_then_shipment(), at(0)).after  # may take effect until +65 s
    order_now = supervisor.recover(order_now, at(6.1)).after
    order_now = scheduler.claim(order_now, at(6.1)).after  # and this attempt until +71.1 s
    order_now = scheduler.receive(order_now, answer("stock", attempt=2, result={}), at(7)).after
    refused = scheduler.receive(order_now, answer("shipment", "failed", detail="no"), at(8))
    assert refused.entry.event == "undo-requested"
    undoing = scheduler.claim(refused.after, at(8))
    assert requested(undoing) == ["undo of shipment, attempt 2"]
    undone = answer("shipment", action="undo", attempt=2)
    waiting = scheduler.receive(undoing.after, undone, at(9)).after
    assert waiting.process_state == "Pending"
    assert waiting.derived.not_before == at(6.1 + 5 + 1 + 60)
    assert scheduler.claim(waiting, at(72)) == NotClaimed(why=NotClaimable.NOT_YET)
    undoing = scheduler.claim(waiting, at(72.1))
    assert requested(undoing) == ["undo of stock, attempt 3"]
    undone = answer("stock", action="undo", attempt=3)
    ended = scheduler.receive(undoing.after, undone, at(73)).after
    assert ended.outcome is Outcome.UNDONE


def at(count):
    return NOW + seconds(count)


def stock_then_shipment():
    """An order of two steps, the first at a service that does not refuse undone keys."""
    order = pending(NOT, SKIPPED, NOT, SKIPPED)
    stock, _, shipment, _ = order.steps
    return orders.with_steps(
        order,
        steps.with_rules(stock, late_effect_window=seconds(60)),
        steps.with_rules(shipment, on_failure=OnFailure.UNDO),
    )


def test_of_a_step_that_waits_to_be_undone_no_cooldown_is_recorded():
    """It waits for calls to settle; the history says how often it failed, and no more."""
    cancelled = cancel(late_effect_window(), GRACE, NOW).after
    expired = supervisor.recover(cancelled, at(6.1))
    assert expired.after.step("stock").not_before == SETTLED
    assert in_words(expired.entry.events) == "stock timed out, failure 1 of 3"


@pytest.mark.proves("SUP-3", "SCH-10")
def test_of_two_steps_the_one_that_expired_is_tried_again_while_the_other_runs():
    """Its reply stays valid meanwhile, and starts nothing: whoever claims the order does."""
    running = processing(RUNS, RUNS, NOT, NOT)
    slow = steps.running(running.step("payment"), complete_by=NOW + seconds(60))
    running = orders.with_steps(running, slow)
    change = supervisor.recover(running, NOW + seconds(7))
    assert states(change.after) == [Waiting, Running, Waiting, Waiting]
    assert (change.after.process_state, change.entry.event) == ("Pending", "recovered")
    reply = scheduler.receive(change.after, answer("payment", result={}), NOW + seconds(8))
    assert reply.after.process_state is ProcessState.PENDING
    assert [message.queue for message in reply.messages] == ["scheduler-requests"]
    again = scheduler.claim(reply.after, NOW + seconds(9))
    assert requested(again) == ["do of stock, attempt 2"]


@pytest.mark.proves("UND-1")
def test_a_step_that_has_to_settle_holds_up_no_other():
    """What may take effect late is undone later; what is independent of it, at once."""
    order = processing(RUNS, DONE, NOT, NOT)
    slow = steps.with_key(order.step("stock"), effects_final_at=NOW + seconds(3600))
    back = start_undo(orders.with_steps(order, slow))
    change = supervisor.recover(back, NOW + seconds(10))
    assert change.after.derived.not_before is None
    undoing = scheduler.claim(change.after, NOW + seconds(10))
    assert requested(undoing) == ["undo of payment, attempt 2"]


def undoing():
    """An order whose only completed step is being undone."""
    return claimed_to_undo(pending(DONE, NOT, NOT, NOT))


@pytest.mark.proves("UND-4")
def test_an_undo_has_a_deadline_like_any_other_step():
    """The order and its work item have it, and so have the request and its message."""
    change = undoing()
    deadline = LATER + change.after.step("stock").rules.timeout
    assert change.after.step("stock").complete_by == change.after.derived.complete_by == deadline
    assert list(change.work_items()[1]) == [
        f"{WorkItemKind.RUNNING}|{sortable(deadline)}|{ORDER_ID}"
    ]
    (message,) = change.messages
    assert decode(AgentRequest, message.body).complete_by == deadline
    assert message.time_to_live == deadline - LATER


@pytest.mark.proves("UND-4", "SUP-3")
def test_an_undo_that_times_out_is_tried_again_and_given_up_at_the_threshold():
    """Each time with a new attempt; in the end the alert says what is still to be undone."""
    change = undoing()
    for failures in (1, 2):
        change = supervisor.recover(change.after, timed_out(change.after))
        step = change.after.step("stock")
        assert (type(step.state), step.counts.failures) == (UndoPending, failures)
        assert change.after.process_state is ProcessState.PENDING
        change = scheduler.claim(change.after, next_try(change.after, change.entry.at))
        assert change.after.step("stock").counts.attempts == step.counts.attempts + 1
    change = supervisor.recover(change.after, timed_out(change.after))
    change = scheduler.claim(change.after, change.entry.at)
    assert change.after.process_state == "Error"
    assert change.after.outcome == Outcome.UNDO_INCOMPLETE
    (event,) = alerts_of(change)
    assert (event.data["stillToBeUndone"], event.data["actionRequired"]) == (["stock"], True)
    assert "resubmit" in event.data["actions"]


@pytest.mark.proves("UND-4")
def test_the_undo_of_a_step_begins_with_a_fresh_count():
    """Failures on the way forward take no try away from the undo."""
    order = processing(RUNS, NOT, NOT, NOT)
    tired = steps.with_counts(steps.waiting(order.step("stock")), failures=2, cooldowns=3)
    (step, *_) = start_undo(orders.with_steps(order, tired)).steps
    assert (step.state, step.counts) == (UndoPending(), Counts(attempts=1))


@pytest.mark.proves("UND-1", "SCH-8")
@pytest.mark.parametrize(
    "policies", [(OnFailure.UNDO, OnFailure.ERROR), (OnFailure.ERROR, OnFailure.UNDO)]
)
def test_one_of_several_failed_steps_is_enough_to_ask_for_the_undo(policies):
    """Two failed for good: the reason is the failure of the one whose workflow wants the undo."""
    stock, payment, *_ = processing(FAILED, RUNS, NOT, NOT).steps
    order = orders.with_steps(
        processing(FAILED, RUNS, NOT, NOT),
        steps.with_rules(steps.failed(stock, reason="gone"), on_failure=policies[0]),
        steps.with_rules(payment, on_failure=policies[1]),
    )
    change = scheduler.receive(order, answer("payment", "failed", detail="no"), LATER)
    assert (change.entry.event, change.after.direction) == ("undo-requested", Direction.UNDO)
    undo_first = policies[0] is OnFailure.UNDO
    failed = ("stock", refusal("gone")) if undo_first else ("payment", refusal("no"))
    assert change.after.cause == step_failed(*failed)


def failed_before_the_service():
    """An order whose shipment failed without a word of its service; its policy is the undo."""
    order = processing(DONE, DONE, RUNS, NOT)
    shipment = steps.with_rules(order.step("shipment"), on_failure=OnFailure.UNDO)
    reply = answer(
        "shipment", "failed", detail="the request is wrong: 400", origin=FailureOrigin.REQUEST
    )
    return scheduler.receive(orders.with_steps(order, shipment), reply, LATER)


@pytest.mark.proves("UND-1", "SCH-8")
def test_what_is_no_word_of_the_service_is_no_reason_to_undo_an_order():
    """Whatever the step's policy: an operator sees it, and decides."""
    change = failed_before_the_service()
    order = change.after
    assert order.process_state == "Error"
    assert order.outcome == Outcome.FAILED
    assert order.direction == Direction.FORWARD
    assert order.step("shipment").state.operator_decides
    (event,) = alerts_of(change)
    assert event.data["actionRequired"] is True
    assert event.data["reason"]["facts"] == {"detail": "the request is wrong: 400"}


@pytest.mark.proves("UND-1", "SCH-8")
def test_a_refusal_beside_it_asks_for_the_undo():
    """Its own policy counts; what an operator would have had to look at is undone with the rest."""
    _, *others = failed_before_the_service().after.steps
    stock = steps.with_rules(
        processing(RUNS, NOT, NOT, NOT).step("stock"), on_failure=OnFailure.UNDO
    )
    order = orders.processing(workflow="order", steps=[stock, *others])
    change = scheduler.receive(order, answer("stock", "failed", detail="sold out"), LATER)
    assert change.after.direction == Direction.UNDO
    assert change.after.cause == step_failed("stock", refusal("sold out"))
    assert change.after.step("shipment").state == UndoPending()


@pytest.mark.proves("UND-1", "OPR-3", "OPR-4")
@pytest.mark.parametrize(
    ("act", "left"),
    [
        (resubmit, Waiting()),
        (cancel, UndoPending()),
        (lambda failed, _, now: skip(failed, BY_HAND, now), Skipped(SkipReason.OPERATOR)),
    ],
    ids=["resubmit", "cancel", "skip"],
)
def test_what_an_operator_has_seen_to_is_no_longer_for_an_operator(act, left):
    """Should the step be refused after that, its policy decides."""
    assert act(failed_before_the_service().after, GRACE, LATER).after.step("shipment").state == left


@pytest.mark.proves("UND-5")
def test_an_order_that_was_undone_completely_is_on_nobody_s_list():
    """It owes nothing: nobody has to act, unlike on one of which something is left."""
    pending = {outcome: index_rows(orders.in_error(outcome=outcome)) for outcome in Outcome}
    assert [key.partition("|")[0] for key in pending.pop(Outcome.UNDONE)] == ["_ended"]
    for (row,) in (rows.values() for rows in pending.values()):
        assert row.key.startswith("!error|")
