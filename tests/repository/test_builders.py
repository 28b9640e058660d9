"""What the tests build by `builders` is what the app could have come to by itself."""

from datetime import timedelta

import pytest

from engine.decisions.transitions import HistoryEntry, Transition
from engine.domain.effects import InDoubt, NothingSent
from engine.domain.states import Completed, Failed
from engine.domain.statuses import Direction, OrderStatus, Outcome, ProcessState
from engine.domain.steps import Counts
from engine.domain.submitted_order import OnFailure
from engine.domain.work_index import WorkItemKind
from engine.storage.order_rows import order_of, state_record
from engine.storage.orders import columns_of_record, record_of
from engine.storage.tables import Stored, entity, stored_form
from tests.support.builders import (
    NOW,
    TIMEOUT,
    answer,
    claimed,
    index_rows,
    orders,
    refusal,
    scheduler,
    seconds,
    start_undo,
    steps,
    supervisor,
    transition,
)
from tests.support.builders import timed_out as time_is_up

LATER = NOW + seconds(60)
KEY = {"known_until": LATER, "effects_final_at": LATER + TIMEOUT}

STEPS = {
    "new": (steps.new(), "NotStarted"),
    "waiting": (steps.waiting(reason=steps.TIMED_OUT), "NotStarted"),
    "condition pending": (steps.condition_pending(), "NotStarted"),
    "scheduled": (steps.scheduled(at=LATER), "NotStarted"),
    "backing off": (steps.backing_off(until=LATER), "NotStarted"),
    "cooling down": (steps.cooling_down(until=LATER), "NotStarted"),
    "accepted": (
        steps.accepted_by_service(ask_again_at=LATER, finish_by=LATER + TIMEOUT),
        "NotStarted",
    ),
    "withdrawn": (steps.withdrawn(), "NotStarted"),
    "running": (steps.running(), "Running"),
    "awaiting an external answer": (steps.awaiting_external_answer(), "Running"),
    "completed": (steps.completed(result={"reference": "r"}), "Completed"),
    "skipped by an operator": (steps.skipped_by_operator(), "Skipped"),
    "skipped by its condition": (steps.skipped_by_condition(), "Skipped"),
    "skipped after a failure": (steps.skipped_after_failure(), "Skipped"),
    "failed": (steps.failed(), "Failed"),
    "failed for an operator": (steps.failed(for_operator=True), "Failed"),
    "failed before its start": (steps.failed_before_start(reason="no amount"), "Failed"),
    "in doubt": (steps.failed(steps.in_doubt("payment", **KEY)), "Failed"),
    "refused for good": (steps.failed(steps.not_done("payment", refused_for_good=True)), "Failed"),
    "undo pending": (steps.undo_pending(), "Undoing"),
    "undo backing off": (steps.undo_pending(until=LATER), "Undoing"),
    "undoing": (steps.undoing(), "Undoing"),
    "undo failed": (steps.undo_failed(), "Failed"),
    "nothing to undo": (steps.nothing_to_undo(), "Failed"),
    "undone": (steps.undone(), "Undone"),
}


@pytest.mark.parametrize("state", STEPS)
def test_a_step_in_every_state_is_stored_and_read_again(state):
    """It shows the documented word of its state, and its order can be written."""
    step, word = STEPS[state]
    assert step.pattern_state == word
    order = orders.recorded(orders.pending(steps=[step]))
    assert stored_again(order) == order


@pytest.mark.parametrize("state", STEPS)
def test_a_step_takes_nothing_from_its_former_state(state):
    """Whatever it was, a failed step has the reason of its failure and no times."""
    former, _ = STEPS[state]
    failed = steps.failed(former, reason="no")
    assert failed.state == Failed(refusal("no"))
    assert (failed.complete_by, failed.not_before) == (None, None)


ORDERS = {
    "new": (orders.new(), OrderStatus.PENDING, [WorkItemKind.PENDING]),
    "pending": (orders.pending(), OrderStatus.PENDING, [WorkItemKind.PENDING]),
    "of three steps": (
        orders.pending(workflow="in-sequence"),
        OrderStatus.PENDING,
        [WorkItemKind.PENDING],
    ),
    "processing": (orders.processing(), OrderStatus.PROCESSING, [WorkItemKind.RUNNING]),
    "awaiting an external answer": (
        orders.processing(steps=[steps.awaiting_external_answer()]),
        OrderStatus.AWAITING,
        [WorkItemKind.WAITING],
    ),
    "processed": (orders.processed(), OrderStatus.PROCESSED, ["_ended"]),
    "in error": (orders.in_error(), OrderStatus.FAILED, [WorkItemKind.ERROR]),
    "undone": (orders.in_error(outcome=Outcome.UNDONE), OrderStatus.UNDONE, ["_ended"]),
    "undo incomplete": (
        orders.in_error(outcome=Outcome.UNDO_INCOMPLETE),
        OrderStatus.UNDO_INCOMPLETE,
        [WorkItemKind.ERROR],
    ),
    "to be undone": (
        orders.undoing(steps=[steps.undo_pending()]),
        OrderStatus.UNDOING,
        [WorkItemKind.PENDING],
    ),
    "being undone": (
        orders.processing(orders.undoing(steps=[steps.undo_pending()])),
        OrderStatus.UNDOING,
        [WorkItemKind.RUNNING],
    ),
    "on hold": (orders.on_hold(), OrderStatus.HELD, [WorkItemKind.HELD]),
}


@pytest.mark.parametrize("state", ORDERS)
def test_an_order_in_every_state_is_stored_read_and_changed(state):
    """Its rows say what it waits for, and a transition derives nothing else from it."""
    order, status, kinds = ORDERS[state]
    assert order.status is status
    assert [key.split("|")[0] for key in index_rows(order)] == kinds
    assert stored_again(order) == orders.recorded(order)
    entry = HistoryEntry(at=order.updated_at, actor="t", events=())
    after = transition(order, order, entry).after
    assert after == orders.having(order, version=order.version + 1)


def stored_again(order):
    """The order as it is read from the row that it is written to."""
    columns = stored_form(columns_of_record(state_record(order)))
    row = entity("b03", key := f"{order.order_id}|state", columns)
    return order_of(order.submitted, record_of(Stored(key, row, "1")), None)


def same(built, reached):
    """Compare two orders, except for their versions and the times of their last change."""
    details = {"version": reached.version, "updated_at": reached.updated_at}
    assert orders.having(built, **details) == reached


def test_an_order_is_built_as_a_claim_leaves_it():
    """Its step runs, under the key of the agent's provider."""
    assert orders.new() == orders.pending()
    same(orders.processing(), claimed())
    assert orders.processing().derived.complete_by == claimed().derived.complete_by


def test_an_order_is_built_as_an_answer_leaves_it():
    """It is processed, or in `Error` for the step's reason."""
    done = scheduler.receive(claimed(), answer(result={"reference": "r"}), NOW).after
    completed = steps.completed(orders.processing().steps[0], result={"reference": "r"})
    same(orders.processed(steps=[completed]), done)
    refused = scheduler.receive(claimed(), answer(outcome="failed", detail="no"), NOW).after
    same(orders.in_error(steps=[steps.failed(reason="no")]), refused)
    same(orders.in_error(reason="no"), refused)


def test_an_order_is_built_as_the_supervisor_leaves_it():
    """Its step waits in doubt, or cools down."""
    order = claimed()
    now = time_is_up(order)
    expired = supervisor.recover(order, now).after
    in_doubt = steps.with_counts(steps.in_doubt("payment"), failures=1)
    waiting = steps.waiting(in_doubt, reason=steps.TIMED_OUT, retry_by=now + TIMEOUT)
    same(orders.pending(steps=[waiting], failures=1), expired)
    cools = steps.new(threshold=1, on_failure=OnFailure.COOLDOWN, cooldown=TIMEOUT, max_cooldowns=1)
    order = claimed(orders.new(steps=[cools]))
    cooling = supervisor.recover(order, now).after
    built = steps.cooling_down(cools, until=now + TIMEOUT)
    same(orders.pending(steps=[built], updated_at=now, failures=1), cooling)


def test_an_order_is_built_as_the_request_to_undo_it_leaves_it():
    """What was done waits for its undo, and an undo that runs has had an attempt before."""
    done = steps.completed(result={"reference": "r"})
    order = orders.pending(steps=[done])
    assert start_undo(order).steps == (steps.undo_pending(done),)
    undo = scheduler.claim(orders.undoing(steps=[steps.undo_pending(done)]), NOW).after
    same(orders.processing(orders.undoing(steps=[steps.undo_pending(done)])), undo)
    gone = answer(action="undo", attempt=2)
    same(
        orders.in_error(steps=[steps.undone(done)], outcome=Outcome.UNDONE),
        scheduler.receive(undo, gone, NOW).after,
    )
    stuck = answer(outcome="failed", action="undo", attempt=2, detail="gone")
    undo_failed = steps.with_counts(steps.undo_failed(done, reason="gone"), attempts=2)
    same(
        orders.in_error(steps=[undo_failed], outcome=Outcome.UNDO_INCOMPLETE),
        scheduler.receive(undo, stuck, NOW).after,
    )


def test_the_deadline_and_the_lock_of_an_order_follow_from_its_steps():
    """Nobody locks an order that waits for an external answer, or that has ended."""
    first = steps.running(complete_by=LATER)
    second = steps.awaiting_external_answer("answer", complete_by=NOW + TIMEOUT)
    both = orders.processing(steps=[first, second], by="s2")
    assert (both.derived.locked_by, both.derived.complete_by) == ("s2", NOW + TIMEOUT)
    waiting = orders.with_steps(both, steps.completed(first))
    assert (waiting.derived.locked_by, waiting.derived.complete_by) == (None, NOW + TIMEOUT)
    ended = orders.processed(both)
    assert (ended.derived.locked_by, ended.derived.complete_by) == (None, None)
    assert len(ended.in_state(Completed)) == 2


def test_when_an_order_may_go_on_follows_from_its_steps():
    """A pause leaves the order its place in the queue; a chosen time does not."""
    chosen = orders.pending(steps=[steps.scheduled(at=LATER)])
    assert (chosen.derived.not_before, chosen.derived.ready_since) == (LATER, LATER)
    pauses = orders.pending(steps=[steps.backing_off(until=LATER)])
    assert (pauses.derived.not_before, pauses.derived.ready_since) == (LATER, NOW)
    given = orders.pending(steps=[steps.scheduled(at=LATER)], ready_since=NOW)
    assert given.derived.ready_since == NOW
    first, second = steps.scheduled(at=LATER), steps.scheduled("other", at=NOW + TIMEOUT)
    assert orders.pending(steps=[first, second]).derived.not_before == NOW + TIMEOUT
    dated = orders.pending(not_before=LATER)
    assert (dated.submitted.not_before, dated.derived.not_before) == (LATER, LATER)
    undone = orders.undoing(steps=[steps.undo_pending()], not_before=LATER)
    assert undone.derived.not_before is None


def test_an_order_has_the_steps_of_its_workflow_and_the_same_id_everywhere():
    """Unless the workflow is unknown: then it has a payment."""
    order = orders.new(workflow="order", order_id="b00-1")
    assert [step.name for step in order.steps] == ["stock", "payment", "shipment", "capture"]
    assert (order.submitted.order_id, order.order_id) == ("b00-1", "b00-1")
    assert order.workflow_version == 2
    assert [step.name for step in orders.new(workflow="gone").steps] == ["payment"]


def test_the_effect_of_a_step_is_kept_and_its_state_is_not():
    """Doubt, key and result belong to the effect; times and reasons to the state."""
    doubtful = steps.in_doubt("payment", agent="payment-backup", **KEY)
    assert (doubtful.agent, doubtful.key.provider) == ("payment-backup", "psp")
    assert doubtful.counts.attempts == 1
    failed = steps.failed(steps.running(doubtful, attempt=3), reason="gone")
    assert (failed.effect, failed.complete_by) == (InDoubt(key=doubtful.key), None)
    assert failed.counts.attempts == 3
    assert failed.key.known_until == LATER
    assert failed.key.effects_final_at == LATER + TIMEOUT
    assert steps.undo_pending(doubtful).not_before == LATER + TIMEOUT
    assert not isinstance(steps.completed(failed).effect, InDoubt)
    assert steps.completed(failed).cause is None
    assert steps.nothing_sent(failed).counts.attempts == 0
    assert steps.nothing_sent(failed).effect == NothingSent()


def test_rules_and_counts_of_a_step_are_given_by_name():
    """An optional step is one that is skipped once it fails."""
    step = steps.new("tell", capability="shipping", threshold=1, pivot=True, after=("payment",))
    rules = step.rules
    assert (rules.capability, step.agent, rules.threshold) == ("shipping", "shipping", 1)
    assert rules.pivot
    assert not steps.with_rules(step, pivot=False).rules.pivot
    optional = steps.with_rules(step, on_failure=OnFailure.CONTINUE)
    assert optional.rules.on_failure is OnFailure.CONTINUE
    counted = steps.with_counts(step, attempts=4, failures=2, cooldowns=1, uncounted=3)
    assert counted.counts == Counts(attempts=4, failures=2, cooldowns=1, uncounted=3)
    assert steps.awaiting_external_answer("photos").is_external
    assert steps.like(counted, "other", undoable=False).counts.attempts == 4


def test_what_cannot_be_undone_is_not_built_as_undone():
    """A test that asks for it has forgotten the rule."""
    step = steps.completed(steps.new(undoable=False))
    for state in (steps.undo_pending, steps.undoing, steps.undo_failed, steps.undone):
        with pytest.raises(ValueError, match="cannot be undone"):
            state(step)
    order = orders.in_error(steps=[step], outcome=Outcome.UNDONE)
    assert order.direction is Direction.UNDO
    assert order.process_state is ProcessState.ERROR
    assert Transition(before=None, after=order, entry=HistoryEntry(at=NOW, actor="t", events=()))


def test_an_attempt_has_its_timeout_unless_its_deadline_is_given():
    """Counted from its start."""
    assert steps.running(started=LATER).complete_by == LATER + TIMEOUT
    assert steps.running(steps.new(timeout=timedelta(0)), started=LATER).complete_by == LATER
    assert steps.undoing(complete_by=LATER).complete_by == LATER
