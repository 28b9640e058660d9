"""The customer's words for an order and its steps; the page shows them as they are."""

from dataclasses import dataclass

from engine.domain.orders import InError, OrderAggregate, Processed
from engine.domain.states import (
    AwaitingExternalEvent,
    Running,
    Startable,
    Undoing,
    Undone,
    UndoPending,
)
from engine.domain.statuses import Mark, Outcome, StepState
from engine.domain.steps import Step


@dataclass(frozen=True, slots=True)
class StepWords:
    """The words for a step; `more` may be empty."""

    look: Mark
    words: str
    more: str = ""


@dataclass(frozen=True, slots=True)
class OrderWords:
    """The words for an order: one line, and what comes next."""

    look: Mark
    line: str
    next: str


STEPS = {
    "stock": ("Setting your tea aside", "Your tea is set aside", "Put back on the shelf"),
    "payment": ("Checking payment", "Payment checked", "Payment released"),
    "shipment": ("Sending it to you", "Sent to you", "Parcel called back"),
    "capture": ("Taking the payment", "Paid", "Money returned"),
}
"""The words for each step: while it runs, once it is done, and once it is undone."""
SIMULATED = "A demonstration: payments go to a simulated service."
"""On every page of a shop that charges nobody."""
TRYING_AGAIN = "Taking longer; we try again"
ACCEPTED = OrderWords(
    Mark.PENDING, "One moment.", "Your order has arrived, and is being written down."
)
ON_IT = OrderWords(Mark.PROCESSING, "We are on it.", "This page follows your order by itself.")
SLOW = OrderWords(
    Mark.AGAIN, f"{TRYING_AGAIN}.", "Your order is safe. You may close this page and come back."
)
LATER = OrderWords(
    Mark.PENDING, "We begin at the time you chose.", "This page follows your order by itself."
)
DONE = OrderWords(
    Mark.PROCESSED, "All done. Your parcel is on its way.", "You need do nothing more."
)
BEING_UNDONE = OrderWords(
    Mark.UNDO, "Your order is being cancelled.", "Everything that was done is taken back."
)
IN_DOUBT = OrderWords(
    Mark.ERROR,
    "A person is looking at it.",
    "Something needs a hand. Your order is safe, and you need do nothing.",
)


def trying_again(order: OrderAggregate, step: Step) -> bool:
    """Whether the step runs again, or waits to run again, after an attempt without success."""
    if order.has_ended:
        return False
    match step.state:
        case Startable():
            return step.counts.attempts > 0
        case Running() | AwaitingExternalEvent():
            return step.counts.attempts > 1
    return False


def of_step(order: OrderAggregate, step: Step) -> StepWords:
    """Return the words for the state of a step."""
    doing, done, back = _names(step)
    if trying_again(order, step):
        return _slow(step)
    failed = "This could not be done" if order.is_over else "A person is looking at it"
    known = {
        StepState.NOT_STARTED: StepWords(Mark.PENDING, doing),
        StepState.RUNNING: StepWords(Mark.PROCESSING, doing),
        StepState.COMPLETED: StepWords(Mark.PROCESSED, done),
        StepState.SKIPPED: StepWords(Mark.PROCESSED, done),
        StepState.FAILED: StepWords(Mark.ERROR, doing, failed),
        StepState.UNDOING: StepWords(Mark.UNDO, "Taking it back", doing),
        StepState.UNDONE: StepWords(Mark.UNDO, back),
    }
    return known[step.pattern_state]


def of_step_if_slow(order: OrderAggregate, step: Step) -> StepWords | None:
    """Return the words for a step that takes long; None if they are the usual ones."""
    runs = step.pattern_state is StepState.RUNNING and not order.has_ended
    return _slow(step) if runs and not trying_again(order, step) else None


def _slow(step: Step) -> StepWords:
    return StepWords(Mark.AGAIN, _names(step)[0], TRYING_AGAIN)


def _names(step: Step) -> tuple[str, str, str]:
    """Return the words for a step: running, done, undone; those of other steps from its name."""
    return STEPS.get(step.name, (step.name, f"{step.name}: done", f"{step.name}: taken back"))


def of_order(order: OrderAggregate) -> OrderWords:
    """Return the words for the state of an order."""
    match order.state:
        case Processed():
            return DONE
        case InError(Outcome.UNDONE):
            return OrderWords(Mark.UNDO, "Cancelled; all taken back.", _charge(order))
        case InError():
            return IN_DOUBT
    if order.has_any(UndoPending, Undoing, Undone):
        return BEING_UNDONE
    begins = order.submitted.not_before
    if begins is not None and order.derived.not_before == begins:
        return LATER
    return SLOW if any(trying_again(order, step) for step in order.steps) else ON_IT


def of_order_if_slow(order: OrderAggregate) -> OrderWords | None:
    """Return the words for an order with a slow step; None if they are the usual ones."""
    waiting = any(of_step_if_slow(order, step) for step in order.steps)
    return SLOW if waiting and of_order(order) == ON_IT else None


def _charge(order: OrderAggregate) -> str:
    """Return the words on the charge: "not charged" only if the capture was never requested."""
    capture = order.step("capture")
    untouched = capture is None or capture.pattern_state is StepState.NOT_STARTED
    return "You were not charged." if untouched else "What was paid goes back to you."
