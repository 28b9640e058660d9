"""What customers are told of their orders."""

from functools import partial

import pytest

from engine.domain.statuses import Outcome, StepState
from shop import words
from shop.rules import status
from tests.support.builders import orders, steps

AGAIN = "Taking longer; we try again"
TRIED = steps.waiting(steps.with_counts("payment", attempts=1))
PENDING, PROCESSED, FAILED = orders.pending, orders.processed, orders.in_error
RUNS, BACK = orders.processing, orders.undoing
STUCK = partial(orders.in_error, outcome=Outcome.UNDO_INCOMPLETE)
UNDONE = partial(orders.in_error, outcome=Outcome.UNDONE)


@pytest.mark.parametrize(
    ("step", "state", "expected"),
    [
        (steps.new(), PENDING, ("pending", "Checking payment", "")),
        (TRIED, PENDING, ("again", "Checking payment", AGAIN)),
        (steps.running(), RUNS, ("processing", "Checking payment", "")),
        (steps.running(attempt=2), RUNS, ("again", "Checking payment", AGAIN)),
        (steps.completed(), PENDING, ("processed", "Payment checked", "")),
        (steps.skipped_by_operator(), PENDING, ("processed", "Payment checked", "")),
        (
            steps.failed(),
            FAILED,
            ("error", "Checking payment", "A person is looking at it"),
        ),
        (
            steps.failed(steps.new(undoable=False)),
            UNDONE,
            ("error", "Checking payment", "This could not be done"),
        ),
        (steps.undo_pending(), BACK, ("undo", "Taking it back", "Checking payment")),
        (steps.undone(), UNDONE, ("undo", "Payment released", "")),
    ],
)
def test_a_step_is_told_with_its_mark_and_in_calm_words(step, state, expected):
    """Also why it takes longer, and who looks at it."""
    order = state(steps=[step])
    told = words.of_step(order, order.steps[0])
    assert (told.look, told.words, told.more) == expected


IN_STATE = {
    StepState.NOT_STARTED: steps.waiting,
    StepState.RUNNING: steps.running,
    StepState.COMPLETED: steps.completed,
    StepState.FAILED: steps.failed,
    StepState.UNDOING: steps.undoing,
    StepState.UNDONE: steps.undone,
    StepState.SKIPPED: steps.skipped_by_operator,
}


@pytest.mark.parametrize("state", StepState)
def test_every_step_in_every_state_has_words(state):
    """One that the shop has none for is called by its name."""
    for name in ("stock", "payment", "shipment", "capture", "engraving"):
        order = orders.pending(steps=[IN_STATE[state](name)])
        assert words.of_step(order, order.steps[0]).words
    assert name == "engraving"
    done = orders.pending(steps=[steps.completed(name)])
    assert words.of_step(done, done.steps[0]).words == "engraving: done"


@pytest.mark.parametrize(
    ("step", "state", "look", "line"),
    [
        (
            steps.running(attempt=2),
            PROCESSED,
            "processed",
            "All done. Your parcel is on its way.",
        ),
        (steps.running(), FAILED, "error", "A person is looking at it."),
        (steps.undo_failed("stock"), STUCK, "error", "A person is looking at it."),
        (steps.undone("stock"), UNDONE, "undo", "Cancelled; all taken back."),
        (steps.undoing("stock"), BACK, "undo", "Your order is being cancelled."),
        (steps.undone("stock"), BACK, "undo", "Your order is being cancelled."),
        (steps.running(attempt=2), RUNS, "again", "Taking longer; we try again."),
        (steps.running(), RUNS, "processing", "We are on it."),
    ],
)
def test_an_order_is_told_in_one_line(step, state, look, line):
    """The same words stand in the answer."""
    order = state(steps=[step])
    told = status(order)
    assert (told.look, told.line) == (look, line)
    assert told.next == words.of_order(order).next


@pytest.mark.parametrize(
    ("capture", "expected"),
    [
        ([], "You were not charged."),
        ([steps.new("capture")], "You were not charged."),
        ([steps.undone("capture")], "What was paid goes back to you."),
        (
            [steps.failed(steps.new("capture", undoable=False))],
            "What was paid goes back to you.",
        ),
    ],
)
def test_nobody_is_told_not_charged_whose_money_was_asked_for(capture, expected):
    """It may have been taken."""
    order = UNDONE(steps=[steps.undone(), *capture])
    assert words.of_order(order).next == expected


def test_who_has_waited_for_long_is_told_something_else():
    """The answer has both texts, for the page to choose by its own clock."""
    order = orders.processing(steps=[steps.running(), steps.new("capture")])
    told = status(order)
    running, waiting = told.steps
    assert running.if_slow.look == "again"
    assert running.if_slow.words == "Checking payment"
    assert running.if_slow.more == AGAIN
    assert waiting.if_slow is None
    assert (told.if_slow.look, told.if_slow.line) == ("again", "Taking longer; we try again.")


@pytest.mark.parametrize(
    ("step", "state"),
    [
        (steps.running(attempt=2), RUNS),
        (steps.completed(), PENDING),
        (steps.undoing(), BACK),
        (steps.running(), FAILED),
    ],
)
def test_nothing_else_is_told_where_waiting_makes_no_difference(step, state):
    """What is tried again says so by itself."""
    told = status(state(steps=[step]))
    assert [told.if_slow, told.steps[0].if_slow] == [None, None]
    assert "ifSlow" not in told.model_dump(by_alias=True)


@pytest.mark.parametrize(
    ("state", "seconds"),
    [(RUNS, 2), (PENDING, 2), (FAILED, 30), (PROCESSED, None), (UNDONE, None)],
)
def test_nobody_is_asked_to_come_again_once_it_is_over(state, seconds):
    """By which the page knows when to stop."""
    assert status(state(steps=[steps.running()])).retry_after == seconds
