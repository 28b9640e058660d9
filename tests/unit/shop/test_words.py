"""What customers are told of their orders."""

from functools import partial

import pytest

from engine.domain.statuses import Outcome, StepState
from shop import words
from shop.rules import status
from tests.support.builders import orders, steps

TRIED = steps.waiting(steps.with_counts("payment", attempts=1))
PENDING, PROCESSED, FAILED = orders.pending, orders.processed, orders.in_error
RUNS, BACK = orders.processing, orders.undoing
STUCK = partial(orders.in_error, outcome=Outcome.UNDO_INCOMPLETE)
UNDONE = partial(orders.in_error, outcome=Outcome.UNDONE)


@pytest.mark.parametrize(
    ("step", "state", "look", "has_more"),
    [
        (steps.new(), PENDING, "pending", False),
        (TRIED, PENDING, "again", True),
        (steps.running(), RUNS, "processing", False),
        (steps.running(attempt=2), RUNS, "again", True),
        (steps.completed(), PENDING, "processed", False),
        (steps.skipped_by_operator(), PENDING, "processed", False),
        (steps.failed(), FAILED, "error", True),
        (steps.failed(steps.new(undoable=False)), UNDONE, "error", True),
        (steps.undo_pending(), BACK, "undo", True),
        (steps.undone(), UNDONE, "undo", False),
    ],
)
def test_a_step_is_shown_with_its_mark(step, state, look, has_more):
    """With more where it takes longer, or somebody looks at it."""
    order = state(steps=[step])
    shown = words.of_step(order, order.steps[0])
    assert (shown.look, bool(shown.more)) == (look, has_more)


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
    assert "engraving" in words.of_step(done, done.steps[0]).words


@pytest.mark.parametrize(
    ("step", "state", "look"),
    [
        (steps.running(attempt=2), PROCESSED, "processed"),
        (steps.running(), FAILED, "error"),
        (steps.undo_failed("stock"), STUCK, "error"),
        (steps.undone("stock"), UNDONE, "undo"),
        (steps.undoing("stock"), BACK, "undo"),
        (steps.undone("stock"), BACK, "undo"),
        (steps.running(attempt=2), RUNS, "again"),
        (steps.running(), RUNS, "processing"),
    ],
)
def test_an_order_is_shown_in_one_line(step, state, look):
    """The same words stand in the answer."""
    order = state(steps=[step])
    shown = status(order)
    assert shown.look == look
    assert (shown.line, shown.next) == (words.of_order(order).line, words.of_order(order).next)


@pytest.mark.parametrize(
    ("capture", "was_requested"),
    [
        (steps.new("capture"), False),
        (steps.undone("capture"), True),
        (steps.failed(steps.new("capture", undoable=False)), True),
    ],
)
def test_no_order_with_a_requested_payment_is_called_not_charged(capture, was_requested):
    """It may have been taken: something else is said than where there is no capture."""
    not_charged = words.of_order(UNDONE(steps=[steps.undone()])).next
    shown = words.of_order(UNDONE(steps=[steps.undone(), capture])).next
    assert shown
    assert (shown != not_charged) == was_requested


def test_an_order_that_waits_for_long_has_another_text():
    """The answer has both texts, for the page to choose by its own clock."""
    order = orders.processing(steps=[steps.running(), steps.new("capture")])
    shown = status(order)
    running, waiting = shown.steps
    assert running.if_slow.look == "again"
    assert running.if_slow.more
    assert waiting.if_slow is None
    assert shown.if_slow.look == "again"
    assert shown.if_slow.line != shown.line


@pytest.mark.parametrize(
    ("step", "state"),
    [
        (steps.running(attempt=2), RUNS),
        (steps.completed(), PENDING),
        (steps.undoing(), BACK),
        (steps.running(), FAILED),
    ],
)
def test_nothing_else_is_shown_where_waiting_makes_no_difference(step, state):
    """What is tried again says so by itself."""
    shown = status(state(steps=[step]))
    assert [shown.if_slow, shown.steps[0].if_slow] == [None, None]
    assert "ifSlow" not in shown.model_dump(by_alias=True)


@pytest.mark.parametrize(
    ("state", "seconds"),
    [(RUNS, 2), (PENDING, 2), (FAILED, 30), (PROCESSED, None), (UNDONE, None)],
)
def test_the_page_stops_polling_once_it_is_over(state, seconds):
    """By which the page knows when to stop."""
    assert status(state(steps=[steps.running()])).retry_after == seconds
