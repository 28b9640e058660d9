"""The events of an order's history: what happened by one transition, as values.

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
    """An attempt was recorded, and its request goes out (SCH-3)."""

    capability: str
    agent: str
    complete_by: AwareDatetime
    is_undo: bool = False
    generation: int = 0

    @property
    def is_external(self) -> bool:
        """Whether an external event is awaited, and no request goes out (ANS-1)."""
        return self.agent == EXTERNAL_PARTY


@dataclass(frozen=True, kw_only=True, slots=True)
class StepCompleted(AttemptEvent):
    """An agent replied that the step is done (SCH-5)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepUndone(AttemptEvent):
    """An agent replied that the step is undone (UND-1)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepFailed(AttemptEvent):
    """No more attempts: it was refused, has no request, or reached its threshold (SCH-8)."""

    cause: Cause


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptDeferred(AttemptEvent):
    """The service accepted the call, and finishes the work later (AGT-11)."""

    agent: str
    until: AwareDatetime
    """When the service is asked again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NotAttempted(AttemptEvent):
    """An agent replied that it made no call; no failure is counted (AGT-8)."""

    cause: Cause


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptExpired(AttemptEvent):
    """The complete-by time of an attempt passed without a valid reply (SUP-3)."""

    agent: str
    threshold: int
    failure: int | None = None
    """The number of this failure; None if it counts as none."""
    has_begun: bool = False
    """Whether an agent is known to have begun it."""
    fault: str = ""
    """The last fault that the agent reported of it; empty if it reported none."""
    is_overloaded: bool = False
    """Whether its agent was overloaded, so that it counts as no failure (SUP-3)."""

    @property
    def is_external(self) -> bool:
        """Whether no external event came in time (ANS-2)."""
        return self.agent == EXTERNAL_PARTY


@dataclass(frozen=True, kw_only=True, slots=True)
class ExternalRequestCancelled(AttemptEvent):
    """An external event is not awaited any more (SCH-12)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExternalEventRecorded(AttemptEvent):
    """An external event completed the step (ANS-1)."""


# Steps


@dataclass(frozen=True, kw_only=True, slots=True)
class EarlyRefusalRecorded(StepEvent):
    """Somebody outside refused a step whose condition is pending: it counts if that is needed."""

    cause: Cause


@dataclass(frozen=True, kw_only=True, slots=True)
class OptionalStepFailed(StepEvent):
    """The order continues without a step that failed (SCH-13)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SkippedByCondition(StepEvent):
    """A step is not needed, because its condition says so (SCH-14)."""

    condition: str


@dataclass(frozen=True, kw_only=True, slots=True)
class StepScheduled(StepEvent):
    """A step starts at a time that its workflow chose (SCH-15)."""

    until: AwareDatetime
    by: str
    """The name of the function that chose it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CooldownStarted(StepEvent):
    """A step reached its threshold, and cools down before it starts afresh (SUP-3)."""

    number: int
    most: int
    until: AwareDatetime


# Orders


@dataclass(frozen=True, kw_only=True, slots=True)
class Submitted(HistoryEvent):
    """The order was recorded (SUB-2)."""

    workflow: str
    not_before: AwareDatetime | None = None
    """When its first steps may start, if that is in the future (SUB-9)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SubmissionRefused(HistoryEvent):
    """A message would have overwritten the order (SUB-3)."""

    cause: Cause


@dataclass(frozen=True, kw_only=True, slots=True)
class Claimed(HistoryEvent):
    """A scheduler took the order (SCH-2)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Requeued(HistoryEvent):
    """No step runs or can start now, so the order waits."""

    until: AwareDatetime | None = None
    """When the next step may start; None if the order waits for no time."""
    is_chosen: bool = False
    """Whether that time was chosen, and is no pause after an attempt (SCH-15)."""
    held_by: str | None = None
    """The operator whose release the order waits for (OPR-7)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Recovered(HistoryEvent):
    """The supervisor took the order from its scheduler (SUP-3)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DueSoon(HistoryEvent):
    """The deadline of the order is near (ALR-6)."""

    due_by: AwareDatetime


@dataclass(frozen=True, kw_only=True, slots=True)
class DeadlinePassed(HistoryEvent):
    """The order was still open at its deadline, and its rule decides what follows (SCH-17)."""

    due_by: AwareDatetime
    when_late: WhenLate


@dataclass(frozen=True, kw_only=True, slots=True)
class UndoRequested(HistoryEvent):
    """The order is undone, because a step failed or the order is late (UND-1, SCH-17)."""

    step: str | None = None
    """The step that failed; None if the order is late."""
    cause: Cause


@dataclass(frozen=True, kw_only=True, slots=True)
class OrderProcessed(HistoryEvent):
    """Every step is finished."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OrderEnded(HistoryEvent):
    """The order is in `Error` (SCH-8, UND-5)."""

    outcome: Outcome
    cause: Cause | None = None
    step: str | None = None
    """The step that caused the end; None if none did."""


class Action(StrEnum):
    """The actions that this version knows by name; an event may name any other."""

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
    """An operator, or the customer, acted on the order, or an operator on all of them."""

    action: str
    """The name of the action."""
    note: str


@dataclass(frozen=True, kw_only=True, slots=True)
class StepActionTaken(ActionTaken):
    """An operator acted on one step of the order."""

    step: str
    resumes: bool = False
    """Whether the order, which was in `Error`, goes on by this."""


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
    """An operator restored the order from a copy; what happened to it since is unknown (OPR-11)."""

    copied_at: AwareDatetime
    note: str


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkflowChanged(HistoryEvent):
    """The order's version of its workflow was changed while the order followed it."""

    workflow: str
    version: int
    steps: str
    """The changed steps, and the fingerprints of their new definitions."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplyRefused(HistoryEvent):
    """A reply was not valid, and changed nothing (SCH-6)."""

    step: str
    attempt: int
    cause: Cause


@dataclass(frozen=True, kw_only=True, slots=True)
class PersonalDataErased(HistoryEvent):
    """An operator erased the customer's data (ANS-5)."""

    note: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PersonalDataRevealed(HistoryEvent):
    """An operator looked at the personal data of the order (OPR-1)."""

    note: str


@dataclass(frozen=True, kw_only=True, slots=True)
class UnknownEvent(HistoryEvent):
    """An event that only another version of the app knows, as a line of its values (FLT-12)."""

    name: str
    words: str
