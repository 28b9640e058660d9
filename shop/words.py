"""The customer's words for an order and its steps; the page shows them as they are."""

from dataclasses import dataclass
from typing import Literal

from core.life import ENDED, Outcome, ProcessState, StepState
from core.orders import Snapshot, Step

Look = Literal["pending", "processing", "processed", "error", "again", "undo"]
"""The mark beside the words (`web/static/common/marks.js`)."""


@dataclass(frozen=True, slots=True)
class StepWords:
    """The words for a step; `more` may be empty."""

    look: Look
    words: str
    more: str = ""


@dataclass(frozen=True, slots=True)
class OrderWords:
    """The words for an order: one line, and what comes next."""

    look: Look
    line: str
    next: str


STEPS = {
    "stock": ("Setting your tea aside", "Your tea is set aside", "Put back on the shelf"),
    "payment": ("Checking payment", "Payment checked", "Payment released"),
    "shipment": ("Sending it to you", "Sent to you", "Parcel called back"),
    "capture": ("Taking the payment", "Paid", "Money returned"),
}
"""The words for each step: while it runs, once it is done, and once it is undone."""
TRYING_AGAIN = "Taking longer; we try again"
ACCEPTED = OrderWords(
    "pending", "One moment.", "Your order has arrived, and is being written down."
)
ON_IT = OrderWords("processing", "We are on it.", "This page follows your order by itself.")
SLOW = OrderWords(
    "again", f"{TRYING_AGAIN}.", "Your order is safe. You may close this page and come back."
)
DONE = OrderWords("processed", "All done. Your parcel is on its way.", "You need do nothing more.")
BEING_UNDONE = OrderWords(
    "undo", "Your order is being cancelled.", "Everything that was done is taken back."
)
IN_DOUBT = OrderWords(
    "error",
    "A person is looking at it.",
    "Something needs a hand. Your order is safe, and you need do nothing.",
)


def is_over(order: Snapshot) -> bool:
    """Whether nothing will change any more."""
    return order.state.meaning.is_over


def trying_again(order: Snapshot, step: Step) -> bool:
    """Whether the step runs again, or waits to run again, after an attempt without success."""
    if order.state.process_state in ENDED or step.state not in (
        StepState.NOT_STARTED,
        StepState.RUNNING,
    ):
        return False
    return step.attempts > (1 if step.runs else 0)


def of_step(order: Snapshot, step: Step) -> StepWords:
    """Return the words for the state of a step."""
    doing, done, back = _names(step)
    if trying_again(order, step):
        return _slow(step)
    failed = "This could not be done" if is_over(order) else "A person is looking at it"
    words = {
        StepState.NOT_STARTED: StepWords("pending", doing),
        StepState.RUNNING: StepWords("processing", doing),
        StepState.COMPLETED: StepWords("processed", done),
        StepState.SKIPPED: StepWords("processed", done),
        StepState.FAILED: StepWords("error", doing, failed),
        StepState.UNDOING: StepWords("undo", "Taking it back", doing),
        StepState.UNDONE: StepWords("undo", back),
    }
    return words[step.state]


def of_step_if_slow(order: Snapshot, step: Step) -> StepWords | None:
    """Return the words for a step that takes long; None if they are the usual ones."""
    under_way = step.state is StepState.RUNNING and order.state.process_state not in ENDED
    return _slow(step) if under_way and not trying_again(order, step) else None


def _slow(step: Step) -> StepWords:
    return StepWords("again", _names(step)[0], TRYING_AGAIN)


def _names(step: Step) -> tuple[str, str, str]:
    """Return the words for a step: running, done, undone; those of other steps from its name."""
    return STEPS.get(step.name, (step.name, f"{step.name}: done", f"{step.name}: taken back"))


def of_order(order: Snapshot) -> OrderWords:
    """Return the words for the state of an order."""
    if order.state.process_state is ProcessState.PROCESSED:
        return DONE
    if order.state.outcome is Outcome.UNDONE:
        return OrderWords("undo", "Cancelled; all taken back.", _charge(order))
    if order.state.process_state is ProcessState.ERROR:
        return IN_DOUBT
    if order.in_state(StepState.UNDOING, StepState.UNDONE):
        return BEING_UNDONE
    return SLOW if any(trying_again(order, step) for step in order.steps) else ON_IT


def of_order_if_slow(order: Snapshot) -> OrderWords | None:
    """Return the words for an order with a slow step; None if they are the usual ones."""
    waiting = any(of_step_if_slow(order, step) for step in order.steps)
    return SLOW if waiting and of_order(order) == ON_IT else None


def _charge(order: Snapshot) -> str:
    """Return the words on the charge: "not charged" only if the capture was never requested."""
    capture = order.step("capture")
    untouched = capture is None or capture.state is StepState.NOT_STARTED
    return "You were not charged." if untouched else "What was paid goes back to you."
