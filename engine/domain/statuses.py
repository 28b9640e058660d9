"""The meanings of the states of an order and of a step, one row for each state.

A row holds whether the order has ended, its work items, its notice and alert, and how people see
it. The actions that operators may take follow from the records too
(`engine.decisions.operator_actions`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class ProcessState(StrEnum):
    """The four documented states of an order, and no others."""

    PENDING = "Pending"
    PROCESSING = "Processing"
    PROCESSED = "Processed"
    ERROR = "Error"


class Outcome(StrEnum):
    """How an order in `Error` has ended."""

    FAILED = "failed"
    """It waits for an operator, with its finished steps done."""
    UNDONE = "undone"
    """Everything was taken back (UND-5)."""
    UNDO_INCOMPLETE = "undo-incomplete"
    """Something could not be taken back; an operator can let the undo go on (UND-4)."""


class Direction(StrEnum):
    """Whether the order's steps are being done, or undone."""

    FORWARD = "forward"
    UNDO = "undo"


class StepState(StrEnum):
    """The states of a workflow step."""

    NOT_STARTED = "NotStarted"
    RUNNING = "Running"
    COMPLETED = "Completed"
    FAILED = "Failed"
    UNDOING = "Undoing"
    UNDONE = "Undone"
    SKIPPED = "Skipped"


class Mark(StrEnum):
    """The shapes that distinguish states, beside word and colour; the pages draw them."""

    PENDING = "pending"
    PROCESSING = "processing"
    PROCESSED = "processed"
    ERROR = "error"
    AGAIN = "again"
    UNDO = "undo"
    SKIPPED = "skipped"
    WAITED = "waited"


class OrderStatus(StrEnum):
    """The states of an order that people and other parts of the system distinguish."""

    PENDING = "pending"
    PROCESSING = "processing"
    AWAITING = "awaiting"
    AGAIN = "again"
    UNDOING = "undoing"
    HELD = "held"
    PROCESSED = "processed"
    FAILED = "failed"
    UNDO_INCOMPLETE = "undo-incomplete"
    UNDONE = "undone"


@dataclass(frozen=True, kw_only=True, slots=True)
class StatusInfo:
    """The properties of a status."""

    mark: Mark
    waits_for_operator: bool = False
    """Whether the order is listed until an operator acts on it."""
    is_parked: bool = False
    """Whether nothing more of the order begins until an operator releases it."""
    is_over: bool = False
    """Whether the order is finished: nothing is due for it, and retention may remove it."""
    notice: str | None = None
    """The type of the notice to the sender when the order gets there (ALR-2)."""
    alert: str | None = None
    """The type of the event that alerts operators when the order gets there (ALR-1)."""

    @property
    def is_under_way(self) -> bool:
        """Whether the order goes on by itself."""
        return not (self.waits_for_operator or self.is_parked or self.is_over)


ORDER_FAILED = "OrderProcessing.OrderFailed"
ORDER_UNDONE = "OrderProcessing.OrderUndone"

STATUS_INFO: Mapping[OrderStatus, StatusInfo] = {
    OrderStatus.PENDING: StatusInfo(mark=Mark.PENDING),
    OrderStatus.PROCESSING: StatusInfo(mark=Mark.PROCESSING),
    OrderStatus.AWAITING: StatusInfo(mark=Mark.PENDING),
    OrderStatus.AGAIN: StatusInfo(mark=Mark.AGAIN),
    OrderStatus.UNDOING: StatusInfo(mark=Mark.UNDO),
    OrderStatus.HELD: StatusInfo(mark=Mark.PENDING, is_parked=True),
    OrderStatus.PROCESSED: StatusInfo(mark=Mark.PROCESSED, is_over=True, notice="order-completed"),
    OrderStatus.FAILED: StatusInfo(
        mark=Mark.ERROR,
        waits_for_operator=True,
        notice="order-failed",
        alert=ORDER_FAILED,
    ),
    OrderStatus.UNDO_INCOMPLETE: StatusInfo(
        mark=Mark.ERROR,
        waits_for_operator=True,
        notice="order-failed",
        alert=ORDER_FAILED,
    ),
    OrderStatus.UNDONE: StatusInfo(
        mark=Mark.UNDO, is_over=True, notice="order-undone", alert=ORDER_UNDONE
    ),
}


def status_of(
    process_state: ProcessState,
    outcome: Outcome | None,
    direction: Direction,
    *,
    failed_before: bool,
    is_held: bool,
) -> OrderStatus:
    """Return the status of the order; if several apply, the one that matters most."""
    if process_state is ProcessState.PROCESSED:
        return OrderStatus.PROCESSED
    if process_state is ProcessState.ERROR:
        return OrderStatus(outcome or Outcome.FAILED)
    if is_held:
        return OrderStatus.HELD
    if direction is Direction.UNDO:
        return OrderStatus.UNDOING
    return OrderStatus.AGAIN if failed_before else OrderStatus(process_state.value.lower())


class NotClaimable(StrEnum):
    """Why a scheduler does not claim an order as it stands."""

    ENDED = "ended"
    HELD = "held"
    RUNS = "runs"
    """All steps that can run now are running: the order waits for their answers."""
    NOT_YET = "not-yet"
    """The chosen time of its next step is in the future."""
    DEADLINE_PASSED = "deadline-passed"
    """The order begins nothing more; a supervisor notes that it is late (SCH-17)."""
    UNKNOWN_WORKFLOW = "unknown-workflow"
    """The order follows a workflow that a newer version of the app may know."""
    UNKNOWN_PROVIDER = "unknown-provider"
    """A step may have been done at a provider that a newer version of the app may know (AGT-3)."""
    NO_CAPACITY = "no-capacity"
    """No agent that offers the needed capability has room."""
    NO_CAPACITY_AT_ITS_OWN = "no-capacity-at-its-own"
    """Agents have room, but not those whose service knows the step's idempotency key (AGT-3)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepMeaning:
    """The meaning of a step's state."""

    mark: Mark
    may_be_tried_again: bool = False
    """Whether a step in this state that has failed before is being tried again."""


STEPS: Mapping[StepState, StepMeaning] = {
    StepState.NOT_STARTED: StepMeaning(mark=Mark.PENDING, may_be_tried_again=True),
    StepState.RUNNING: StepMeaning(mark=Mark.PROCESSING, may_be_tried_again=True),
    StepState.COMPLETED: StepMeaning(mark=Mark.PROCESSED),
    StepState.FAILED: StepMeaning(mark=Mark.ERROR),
    StepState.UNDOING: StepMeaning(mark=Mark.UNDO),
    StepState.UNDONE: StepMeaning(mark=Mark.UNDO),
    StepState.SKIPPED: StepMeaning(mark=Mark.SKIPPED),
}
