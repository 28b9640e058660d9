"""The events of an order's history, as values. One transition records one or more of them.

A cause is a code with facts. Words for people are made where the history is shown.
"""

from dataclasses import dataclass
from enum import StrEnum

from pydantic import AwareDatetime

from engine.domain.causes import Cause
from engine.domain.deadlines import WhenLate
from engine.domain.statuses import Outcome
from engine.domain.submitted_order import EXTERNAL_PARTY


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryEvent:
    """One recorded event of an order."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepEvent(HistoryEvent):
    """An event of one step."""

    step: str


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptEvent(StepEvent):
    """An event of one attempt at a step."""

    attempt: int


# Attempts


@dataclass(frozen=True, kw_only=True, slots=True)
class StepStarted(AttemptEvent):
    """An attempt was recorded, and its request is sent after the commit (SCH-3)."""

    capability: str
    agent: str
    complete_by: AwareDatetime
    is_undo: bool = False
    generation: int = 0

    @property
    def is_external(self) -> bool:
        """Whether the attempt waits for an external event, so no request is sent (ANS-1)."""
        return self.agent == EXTERNAL_PARTY


@dataclass(frozen=True, kw_only=True, slots=True)
class StepCompleted(AttemptEvent):
    """An agent replied that the step is done (SCH-5)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepUndone(AttemptEvent):
    """An agent replied that the step is undone (UND-1)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepFailed(AttemptEvent):
    """The step has failed and gets no more attempts (SCH-8).

    It was refused, its request could not be made, or it reached its threshold.
    """

    cause: Cause


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptDeferred(AttemptEvent):
    """The service accepted the call and finishes the work later (AGT-11)."""

    agent: str
    until: AwareDatetime
    """The time of the next request to the service."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NotAttempted(AttemptEvent):
    """An agent replied that it made no call, or that the service throttles its calls (AGT-8).

    No failure is counted.
    """

    cause: Cause


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptExpired(AttemptEvent):
    """The complete-by time of an attempt passed without a valid reply (SUP-3)."""

    agent: str
    threshold: int
    failure: int | None = None
    """The number of this failure, or None if the attempt counts as no failure."""
    has_begun: bool = False
    """Whether an agent is known to have begun the attempt."""
    fault: str = ""
    """The last fault that the agent reported for the attempt, or empty if it reported none."""
    is_overloaded: bool = False
    """Whether the agent was overloaded, so the attempt counts as no failure (SUP-3)."""

    @property
    def is_external(self) -> bool:
        """Whether the attempt waited for an external event, which did not come in time (ANS-2)."""
        return self.agent == EXTERNAL_PARTY


@dataclass(frozen=True, kw_only=True, slots=True)
class ExternalRequestCancelled(AttemptEvent):
    """The order no longer waits for an external event (SCH-12)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExternalEventRecorded(AttemptEvent):
    """An external event completed the step (ANS-1)."""


# Steps


@dataclass(frozen=True, kw_only=True, slots=True)
class EarlyRefusalRecorded(StepEvent):
    """An external party refused a step before its condition was evaluated.

    The refusal counts only if the step turns out to be needed.
    """

    cause: Cause


@dataclass(frozen=True, kw_only=True, slots=True)
class OptionalStepFailed(StepEvent):
    """The order continues without a step that failed (SCH-13)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SkippedByCondition(StepEvent):
    """The condition of a step is false, so the step is skipped (SCH-14)."""

    condition: str


@dataclass(frozen=True, kw_only=True, slots=True)
class StepScheduled(StepEvent):
    """The workflow chose a later start time for a step (SCH-15)."""

    until: AwareDatetime
    by: str
    """The name of the function that chose the time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CooldownStarted(StepEvent):
    """A step reached its threshold. It cools down before the next attempt (SUP-3)."""

    number: int
    most: int
    until: AwareDatetime


# Orders


@dataclass(frozen=True, kw_only=True, slots=True)
class Submitted(HistoryEvent):
    """The order was recorded (SUB-2)."""

    workflow: str
    not_before: AwareDatetime | None = None
    """The time at which the first steps may start, if it is in the future (SUB-9)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SubmissionRefused(HistoryEvent):
    """A message was refused because it would have overwritten the order (SUB-3)."""

    cause: Cause


@dataclass(frozen=True, kw_only=True, slots=True)
class Claimed(HistoryEvent):
    """A scheduler claimed the order (SCH-2)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Requeued(HistoryEvent):
    """The order waits, because no step is running and no step can start now."""

    until: AwareDatetime | None = None
    """The time at which the next step may start, or None if the order does not wait for a time."""
    is_chosen: bool = False
    """Whether the workflow or the sender chose that time. Otherwise it ends a pause after an
    attempt."""
    held_by: str | None = None
    """The operator who holds the order, if the order waits for a release (OPR-7)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Recovered(HistoryEvent):
    """The supervisor took the order back from its scheduler (SUP-3)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DueSoon(HistoryEvent):
    """The deadline of the order is near (ALR-6)."""

    due_by: AwareDatetime


@dataclass(frozen=True, kw_only=True, slots=True)
class DeadlinePassed(HistoryEvent):
    """The order was still open at its deadline (SCH-17).

    The rule of the deadline decides what follows.
    """

    due_by: AwareDatetime
    when_late: WhenLate


@dataclass(frozen=True, kw_only=True, slots=True)
class UndoRequested(HistoryEvent):
    """The undo of the order was requested (UND-1, SCH-17).

    A step failed, or the order is late.
    """

    step: str | None = None
    """The step that failed, or None if the order is late."""
    cause: Cause


@dataclass(frozen=True, kw_only=True, slots=True)
class OrderProcessed(HistoryEvent):
    """Every step is finished."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OrderEnded(HistoryEvent):
    """The order ended in `Error` (SCH-8, UND-5)."""

    outcome: Outcome
    cause: Cause | None = None
    step: str | None = None
    """The step that caused the end, or None if no step did."""


class Action(StrEnum):
    """The actions that this version knows by name. An event may name any other action."""

    CANCEL = "cancel"
    HOLD = "hold"
    RELEASE = "release"
    EXPEDITE = "expedite"
    RESUBMIT = "resubmit"
    SKIP = "skip"
    RETRY_WITH_NEW_KEY = "retry-with-new-key"
    SETTLE = "settle"
    EXTEND_DEADLINE = "extend-deadline"
    REMIND = "remind"
    NEW_CALLBACK_URL = "new-callback-url"
    EXPORT = "export"


@dataclass(frozen=True, kw_only=True, slots=True)
class ActionTaken(HistoryEvent):
    """An operator or the customer acted on the order, or an operator acted on all orders."""

    action: str
    note: str


@dataclass(frozen=True, kw_only=True, slots=True)
class StepActionTaken(ActionTaken):
    """An operator acted on one step of the order."""

    step: str
    resumes: bool = False
    """Whether the action resumes an order that was in `Error`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepSettled(StepActionTaken):
    """An operator found out whether a step in doubt was done (OPR-12)."""

    was_done: bool
    late_effect_possible: bool = False
    """Whether the operator confirmed that a call may still take effect."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DeadlineMoved(StepActionTaken):
    """An operator moved the deadline of an external event (ANS-7)."""

    until: AwareDatetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Restored(HistoryEvent):
    """An operator restored the order from a copy. Events after the copy are unknown (OPR-11)."""

    copied_at: AwareDatetime
    note: str


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkflowChanged(HistoryEvent):
    """The version of the workflow was changed while the order followed it."""

    workflow: str
    version: int
    steps: str
    """The changed steps, and the fingerprints of their new definitions."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplyRefused(HistoryEvent):
    """A reply was invalid and changed nothing (SCH-6)."""

    step: str
    attempt: int
    cause: Cause


@dataclass(frozen=True, kw_only=True, slots=True)
class PersonalDataErased(HistoryEvent):
    """An operator erased the customer's data (ANS-5)."""

    note: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PersonalDataRevealed(HistoryEvent):
    """An operator viewed the customer's data (OPR-1)."""

    note: str


@dataclass(frozen=True, kw_only=True, slots=True)
class UnknownEvent(HistoryEvent):
    """An event that only another version of the app knows, as a line of its values (FLT-12)."""

    name: str
    words: str
