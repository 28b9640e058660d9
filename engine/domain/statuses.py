"""The states of an order and of a step, and the properties of each.

The properties are: whether the order has ended, its status notification and alert, and how people
see it. The actions that operators may take follow from the records too
(`engine.decisions.operator_actions`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class ProcessState(StrEnum):
    """The four states of an order in the pattern's documentation. There are no others."""

    PENDING = "Pending"
    PROCESSING = "Processing"
    PROCESSED = "Processed"
    ERROR = "Error"


class Outcome(StrEnum):
    """The outcome of an order in `Error`."""

    FAILED = "failed"
    """The order waits for an operator, and its finished steps stay done."""
    UNDONE = "undone"
    """Every step with an effect was undone (UND-5)."""
    UNDO_INCOMPLETE = "undo-incomplete"
    """Some steps could not be undone. An operator can resume the undo (UND-4)."""


class Direction(StrEnum):
    """Whether the order's steps are being done or undone."""

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
    """The shapes by which the pages show states, beside word and colour."""

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
    """Whether no step of the order starts until an operator releases it."""
    is_over: bool = False
    """Whether the order is over: no work is due for it, and retention may remove it."""
    notice: str | None = None
    """The type of the notification to the sender when the order gets this status (ALR-2)."""
    alert: str | None = None
    """The type of the event that alerts operators when the order gets this status (ALR-1)."""

    @property
    def is_under_way(self) -> bool:
        """Whether the order continues by itself."""
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
    """Return the status of the order. If several apply, it is the most important one."""
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
    """The reason why a scheduler does not claim an order now."""

    ENDED = "ended"
    HELD = "held"
    RUNS = "runs"
    """All steps that can run now are running, so the order waits for their replies."""
    NOT_YET = "not-yet"
    """The start time of the next step is in the future."""
    DEADLINE_PASSED = "deadline-passed"
    """The order starts no more steps. A supervisor records that it is late (SCH-17)."""
    UNKNOWN_WORKFLOW = "unknown-workflow"
    """The order follows a workflow that a newer version of the app may know."""
    UNKNOWN_PROVIDER = "unknown-provider"
    """A step may have been done at a provider that a newer version of the app may know (AGT-3)."""
    NO_CAPACITY = "no-capacity"
    """No agent that offers the needed capability has capacity."""
    NO_CAPACITY_AT_ITS_OWN = "no-capacity-at-its-own"
    """Agents have capacity, but none of them calls the service that knows the step's idempotency
    key (AGT-3)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepMeaning:
    """The meaning of a step's state."""

    mark: Mark
    may_be_tried_again: bool = False
    """Whether the step is shown as tried again if it has failed before."""


STEPS: Mapping[StepState, StepMeaning] = {
    StepState.NOT_STARTED: StepMeaning(mark=Mark.PENDING, may_be_tried_again=True),
    StepState.RUNNING: StepMeaning(mark=Mark.PROCESSING, may_be_tried_again=True),
    StepState.COMPLETED: StepMeaning(mark=Mark.PROCESSED),
    StepState.FAILED: StepMeaning(mark=Mark.ERROR),
    StepState.UNDOING: StepMeaning(mark=Mark.UNDO),
    StepState.UNDONE: StepMeaning(mark=Mark.UNDO),
    StepState.SKIPPED: StepMeaning(mark=Mark.SKIPPED),
}
