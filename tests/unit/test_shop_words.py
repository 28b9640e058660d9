"""What customers are told of their orders."""

from dataclasses import replace

import pytest
from builders import claimed

from core.life import Outcome, ProcessState, StepState
from shop import words
from shop.rules import status

FAILED = {"process_state": ProcessState.ERROR, "outcome": Outcome.FAILED}
UNDONE = {"process_state": ProcessState.ERROR, "outcome": Outcome.UNDONE}
PROCESSED = {"process_state": ProcessState.PROCESSED}
PENDING = {"process_state": ProcessState.PENDING}
AGAIN = "Taking longer; we try again"


def order_of(*steps, **state):
    """An order in this state, and its steps."""
    order = claimed()
    (step,) = order.steps
    return replace(order.with_state(**state), steps=tuple(replace(step, **each) for each in steps))


def payment(state, **more):
    """A payment in this state."""
    running = state is StepState.RUNNING
    return {"name": "payment", "state": state} | ({} if running else {"complete_by": None}) | more


@pytest.mark.parametrize(
    ("step", "state", "expected"),
    [
        (payment(StepState.NOT_STARTED, attempts=0), {}, ("pending", "Checking payment", "")),
        (payment(StepState.NOT_STARTED, attempts=1), {}, ("again", "Checking payment", AGAIN)),
        (payment(StepState.RUNNING), {}, ("processing", "Checking payment", "")),
        (payment(StepState.RUNNING, attempts=2), {}, ("again", "Checking payment", AGAIN)),
        (payment(StepState.COMPLETED), {}, ("processed", "Payment checked", "")),
        (payment(StepState.SKIPPED), {}, ("processed", "Payment checked", "")),
        (
            payment(StepState.FAILED),
            FAILED,
            ("error", "Checking payment", "A person is looking at it"),
        ),
        (
            payment(StepState.FAILED),
            UNDONE,
            ("error", "Checking payment", "This could not be done"),
        ),
        (payment(StepState.UNDOING), {}, ("undo", "Taking it back", "Checking payment")),
        (payment(StepState.UNDONE), UNDONE, ("undo", "Payment released", "")),
    ],
)
def test_a_step_is_told_with_its_mark_and_in_calm_words(step, state, expected):
    """Also why it takes longer, and who looks at it."""
    order = order_of(step, **state)
    told = words.of_step(order, order.steps[0])
    assert (told.look, told.words, told.more) == expected


@pytest.mark.parametrize("state", StepState)
def test_every_step_in_every_state_has_words(state):
    """One that the shop has none for is called by its name."""
    for name in ("stock", "payment", "shipment", "capture", "engraving"):
        order = order_of(payment(state, name=name))
        assert words.of_step(order, order.steps[0]).words
    assert name == "engraving"
    done = order_of(payment(StepState.COMPLETED, name=name))
    assert words.of_step(done, done.steps[0]).words == "engraving: done"


STOCK = {"name": "stock", "complete_by": None}


@pytest.mark.parametrize(
    ("steps", "state", "look", "line"),
    [
        (
            [payment(StepState.RUNNING, attempts=2)],
            PROCESSED,
            "processed",
            "All done. Your parcel is on its way.",
        ),
        ([payment(StepState.RUNNING)], FAILED, "error", "A person is looking at it."),
        ([STOCK | {"state": StepState.UNDOING}], FAILED, "error", "A person is looking at it."),
        ([STOCK | {"state": StepState.UNDONE}], UNDONE, "undo", "Cancelled; all taken back."),
        ([STOCK | {"state": StepState.UNDOING}], {}, "undo", "Your order is being cancelled."),
        ([STOCK | {"state": StepState.UNDONE}], PENDING, "undo", "Your order is being cancelled."),
        ([payment(StepState.RUNNING, attempts=2)], {}, "again", "Taking longer; we try again."),
        ([payment(StepState.RUNNING)], {}, "processing", "We are on it."),
    ],
)
def test_an_order_is_told_in_one_line(steps, state, look, line):
    """The same words stand in the answer."""
    order = order_of(*steps, **state)
    told = status(order)
    assert (told.look, told.line) == (look, line)
    assert told.next == words.of_order(order).next


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([], "You were not charged."),
        ([StepState.NOT_STARTED], "You were not charged."),
        ([StepState.UNDONE], "What was paid goes back to you."),
        ([StepState.FAILED], "What was paid goes back to you."),
    ],
)
def test_nobody_is_told_not_charged_whose_money_was_asked_for(steps, expected):
    """It may have been taken."""
    capture = [payment(state, name="capture") for state in steps]
    order = order_of(payment(StepState.UNDONE), *capture, **UNDONE)
    assert words.of_order(order).next == expected


def test_who_has_waited_for_long_is_told_something_else():
    """The answer has both texts, for the page to choose by its own clock."""
    order = order_of(
        payment(StepState.RUNNING), payment(StepState.NOT_STARTED, name="capture", attempts=0)
    )
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
        (payment(StepState.RUNNING, attempts=2), {}),
        (payment(StepState.COMPLETED), {}),
        (payment(StepState.UNDOING), {}),
        (payment(StepState.RUNNING), FAILED),
    ],
)
def test_nothing_else_is_told_where_waiting_makes_no_difference(step, state):
    """What is tried again says so by itself."""
    told = status(order_of(step, **state))
    assert [told.if_slow, told.steps[0].if_slow] == [None, None]
    assert "ifSlow" not in told.model_dump(by_alias=True)


@pytest.mark.parametrize(
    ("state", "seconds"), [({}, 2), (PENDING, 2), (FAILED, 30), (PROCESSED, None), (UNDONE, None)]
)
def test_nobody_is_asked_to_come_again_once_it_is_over(state, seconds):
    """By which the page knows when to stop."""
    assert status(order_of(payment(StepState.RUNNING), **state)).retry_after == seconds
