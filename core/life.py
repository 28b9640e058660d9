"""What each state of an order, and of a step, means: a row for each, which everything reads that depends on it.

Whether it has ended and what it owes, who is told, and how it looks to people. What operators may do follows from the
records as well (`core.actions`).
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
    """How an order ended that is in `Error`."""

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
    """Where one workflow step stands."""

    NOT_STARTED = "NotStarted"
    RUNNING = "Running"
    COMPLETED = "Completed"
    FAILED = "Failed"
    UNDOING = "Undoing"
    UNDONE = "Undone"
    SKIPPED = "Skipped"


class Mark(StrEnum):
    """The shapes by which states are told apart, beside word and colour; the pages draw them."""

    PENDING = "pending"
    PROCESSING = "processing"
    PROCESSED = "processed"
    ERROR = "error"
    AGAIN = "again"
    UNDO = "undo"


class Situation(StrEnum):
    """Where an order stands, as far as it makes a difference to anybody."""

    PENDING = "pending"
    PROCESSING = "processing"
    AGAIN = "again"
    UNDOING = "undoing"
    HELD = "held"
    PROCESSED = "processed"
    FAILED = "failed"
    UNDO_INCOMPLETE = "undo-incomplete"
    UNDONE = "undone"


@dataclass(frozen=True, kw_only=True, slots=True)
class Meaning:
    """What a situation means."""

    word: str
    mark: Mark
    waits_for_operator: bool = False
    """Whether it is owed an operator's action, and is listed until there was one."""
    is_over: bool = False
    """Whether nothing is left to do for anybody: it owes nothing, and may be removed after a while."""
    notice: str | None = None
    """What the sender is told once the order is there (ALR-2)."""
    alert: str | None = None
    """The type of the event by which operators are told (ALR-1)."""


ORDER_FAILED = "OrderProcessing.OrderFailed"
ORDER_UNDONE = "OrderProcessing.OrderUndone"

MEANINGS: Mapping[Situation, Meaning] = {
    Situation.PENDING: Meaning(word="Pending", mark=Mark.PENDING),
    Situation.PROCESSING: Meaning(word="Processing", mark=Mark.PROCESSING),
    Situation.AGAIN: Meaning(word="Trying again", mark=Mark.AGAIN),
    Situation.UNDOING: Meaning(word="Being undone", mark=Mark.UNDO),
    Situation.HELD: Meaning(word="Held", mark=Mark.PENDING),
    Situation.PROCESSED: Meaning(
        word="Processed", mark=Mark.PROCESSED, is_over=True, notice="order-completed"
    ),
    Situation.FAILED: Meaning(
        word="Error",
        mark=Mark.ERROR,
        waits_for_operator=True,
        notice="order-failed",
        alert=ORDER_FAILED,
    ),
    Situation.UNDO_INCOMPLETE: Meaning(
        word="Error",
        mark=Mark.ERROR,
        waits_for_operator=True,
        notice="order-failed",
        alert=ORDER_FAILED,
    ),
    Situation.UNDONE: Meaning(
        word="Undone", mark=Mark.UNDO, is_over=True, notice="order-undone", alert=ORDER_UNDONE
    ),
}

ENDED = (ProcessState.PROCESSED, ProcessState.ERROR)
"""In these states nobody handles the order."""


def situation_of(
    process_state: ProcessState,
    outcome: Outcome | None,
    direction: Direction,
    *,
    failed_before: bool,
    is_held: bool,
) -> Situation:
    """Return where an order stands: of several things that are so, that which matters most."""
    ended = {
        ProcessState.PROCESSED: Situation.PROCESSED,
        ProcessState.ERROR: Situation(outcome or Outcome.FAILED),
    }
    if process_state in ended:
        return ended[process_state]
    if is_held:
        return Situation.HELD
    if direction is Direction.UNDO:
        return Situation.UNDOING
    return Situation.AGAIN if failed_before else Situation(process_state.value.lower())


class WhyNot(StrEnum):
    """Why a scheduler does not claim an order as it stands."""

    ENDED = "ended"
    HELD = "held"
    RUNS = "runs"
    """All that can be done of it now is being done: it waits for answers."""
    NOT_YET = "not-yet"
    """Its time is to come."""
    UNKNOWN_WORKFLOW = "unknown-workflow"
    """It follows a workflow that a newer version of the app may know."""
    NO_ROOM = "no-room"
    """No agent has room for what it needs."""
    NO_ROOM_AT_ITS_OWN = "no-room-at-its-own"
    """Agents have room, but not those whose service knows the step's idempotency key (AGT-3)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepMeaning:
    """What the state of a step means."""

    word: str
    mark: Mark
    is_done: bool = False
    """Whether the steps after it may begin."""
    is_settled: bool = False
    """Whether something has come of it."""
    may_be_tried_again: bool = False
    """Whether, after a failure, it is being tried again."""


STEPS: Mapping[StepState, StepMeaning] = {
    StepState.NOT_STARTED: StepMeaning(
        word="Not started", mark=Mark.PENDING, may_be_tried_again=True
    ),
    StepState.RUNNING: StepMeaning(word="Running", mark=Mark.PROCESSING, may_be_tried_again=True),
    StepState.COMPLETED: StepMeaning(
        word="Completed", mark=Mark.PROCESSED, is_done=True, is_settled=True
    ),
    StepState.FAILED: StepMeaning(word="Failed", mark=Mark.ERROR, is_settled=True),
    StepState.UNDOING: StepMeaning(word="Undoing", mark=Mark.UNDO),
    StepState.UNDONE: StepMeaning(word="Undone", mark=Mark.UNDO, is_settled=True),
    StepState.SKIPPED: StepMeaning(
        word="Skipped", mark=Mark.PENDING, is_done=True, is_settled=True
    ),
}

DONE = tuple(state for state, each in STEPS.items() if each.is_done)
"""In these states the steps after it may begin."""

SETTLED = tuple(state for state, each in STEPS.items() if each.is_settled)
"""In these states something has come of it."""
