"""What customers are told of their orders: the page makes the words, from what the app answers."""

import json
import subprocess
from functools import partial
from pathlib import Path

import pytest

from engine.domain.statuses import Outcome, StepState
from shop.rules import accepted, status
from tests.support.builders import ORDER_ID, orders, steps

WORDS = Path(__file__).parents[3] / "shop/page/words.js"
SAY = f"""
import {{ canBeSlow, orderWords, stepWords }} from "{WORDS.as_uri()}";
let text = "";
for await (const part of process.stdin) text += part;
const say = (order, isSlow) => ({{
  ...orderWords(order, isSlow),
  steps: order.steps.map((step) => stepWords(order, step, isSlow && canBeSlow(order, step))),
  canBeSlow: order.steps.some((step) => canBeSlow(order, step)),
}});
console.log(JSON.stringify(JSON.parse(text).map(([order, isSlow]) => say(order, isSlow))));
"""
TRIED = steps.waiting(steps.with_counts("payment", attempts=1))
PENDING, PROCESSED, FAILED = orders.pending, orders.processed, orders.in_error
RUNS, BACK = orders.processing, orders.undoing
STUCK = partial(orders.in_error, outcome=Outcome.UNDO_INCOMPLETE)
UNDONE = partial(orders.in_error, outcome=Outcome.UNDONE)


def all_said(*cases):
    """What the page says of these answers; each with whether the customer has waited long."""
    sent = json.dumps(
        [(answer.model_dump(mode="json", by_alias=True), is_slow) for answer, is_slow in cases]
    )
    command = ["node", "--input-type=module", "-e", SAY]
    ran = subprocess.run(command, input=sent, capture_output=True, text=True, check=True)
    return json.loads(ran.stdout)


def said(order, is_slow=False):
    (only,) = all_said((status(order), is_slow))
    return only


STEPS = [
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
]


def test_a_step_is_shown_with_its_mark():
    """With more where it takes longer, or somebody looks at it."""
    shown = all_said(*((status(state(steps=[step])), False) for step, state, _, _ in STEPS))
    found = [(order["steps"][0]["look"], bool(order["steps"][0]["more"])) for order in shown]
    assert found == [(look, has_more) for _, _, look, has_more in STEPS]


def test_a_step_that_cannot_be_done_is_looked_at_only_while_its_order_is_not_over():
    """Nobody waits for a person who has finished."""
    failed = steps.failed(steps.new(undoable=False))
    over, stuck = said(UNDONE(steps=[failed])), said(FAILED(steps=[failed]))
    assert over["steps"][0]["more"] != stuck["steps"][0]["more"]


IN_STATE = {
    StepState.NOT_STARTED: steps.waiting,
    StepState.RUNNING: steps.running,
    StepState.COMPLETED: steps.completed,
    StepState.FAILED: steps.failed,
    StepState.UNDOING: steps.undoing,
    StepState.UNDONE: steps.undone,
    StepState.SKIPPED: steps.skipped_by_operator,
}


def test_every_step_in_every_state_has_words():
    """One that the shop has none for is called by its name."""
    names = ("stock", "payment", "shipment", "capture", "engraving")
    shown = all_said(
        *(
            (status(orders.pending(steps=[IN_STATE[state](name) for name in names])), False)
            for state in StepState
        )
    )
    for state, order in zip(StepState, shown, strict=True):
        *known, other = order["steps"]
        assert len({step["words"] + step["more"] for step in known}) == len(known), state
        assert "engraving" in other["words"] + other["more"], state
        waits = other["look"] == "pending"
        assert waits == (state is StepState.NOT_STARTED), state


ORDERS = [
    (steps.running(attempt=2), PROCESSED, "processed"),
    (steps.running(), FAILED, "error"),
    (steps.undo_failed("stock"), STUCK, "error"),
    (steps.undone("stock"), UNDONE, "undo"),
    (steps.undoing("stock"), BACK, "undo"),
    (steps.undone("stock"), BACK, "undo"),
    (steps.running(attempt=2), RUNS, "again"),
    (steps.running(), RUNS, "processing"),
]


def test_an_order_is_shown_in_one_line():
    """With what comes next."""
    shown = all_said(*((status(state(steps=[step])), False) for step, state, _ in ORDERS))
    assert [order["look"] for order in shown] == [look for _, _, look in ORDERS]
    assert all(order["line"] and order["next"] for order in shown)


def test_an_order_that_is_accepted_or_waits_for_its_time_says_so():
    """The first is not recorded yet; the second does not begin before the time that was chosen."""
    at = orders.pending().submitted.placed_at
    plain = status(orders.pending(steps=[steps.new()]))
    later = plain.model_copy(update={"not_before": at})
    shown = all_said((accepted(ORDER_ID, at), False), (plain, False), (later, False))
    assert [order["look"] for order in shown] == ["pending", "processing", "pending"]
    assert len({order["line"] for order in shown}) == len(shown)


def test_no_order_with_a_requested_payment_is_called_not_charged():
    """It may have been taken: something else is said than where there is no capture."""
    (without, new, undone, failed) = (
        order["next"]
        for order in all_said(
            *(
                (status(UNDONE(steps=[steps.undone(), *capture])), False)
                for capture in (
                    [],
                    [steps.new("capture")],
                    [steps.undone("capture")],
                    [steps.failed(steps.new("capture", undoable=False))],
                )
            )
        )
    )
    assert without == new
    assert undone == failed != new


def test_an_order_that_waits_for_long_has_another_text():
    """The page chooses by its own clock."""
    order = orders.processing(steps=[steps.running(), steps.new("capture")])
    slow, soon = said(order, is_slow=True), said(order)
    running, waiting = slow["steps"]
    assert (running["look"], bool(running["more"])) == ("again", True)
    assert waiting == soon["steps"][1]
    assert slow["look"] == "again"
    assert slow["line"] != soon["line"]


def test_nothing_else_is_shown_where_waiting_makes_no_difference():
    """What is tried again says so by itself."""
    cases = [
        (steps.running(attempt=2), RUNS),
        (steps.completed(), PENDING),
        (steps.undoing(), BACK),
        (steps.running(), FAILED),
    ]
    shown = all_said(*((status(state(steps=[step])), False) for step, state in cases))
    assert [order["canBeSlow"] for order in shown] == [False] * len(cases)


@pytest.mark.parametrize(
    ("state", "seconds"),
    [(RUNS, 2), (PENDING, 2), (FAILED, 30), (PROCESSED, None), (UNDONE, None)],
)
def test_the_page_stops_polling_once_it_is_over(state, seconds):
    """By which the page knows when to stop."""
    assert status(state(steps=[steps.running()])).retry_after == seconds
