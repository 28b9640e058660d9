"""The states of a step: one small class for each, with only the data that it needs.

Base classes are the groups for which decisions ask. A step that has to be undone waits as one that
has to be done, so `UndoPending` holds one of the same waiting states.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pydantic import AwareDatetime

from engine.domain.causes import Cause
from engine.domain.statuses import StepState

# Groups


class State:
    """The state of a step."""

    __slots__ = ()


class Wait(State):
    """The reason why the next attempt, to do or to undo the step, has not started yet."""

    __slots__ = ()


class Startable(Wait):
    """The next attempt to do the step starts when its turn and its time have come."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class UnderWay(State):
    """An attempt has a complete-by time."""

    complete_by: AwareDatetime
    started_at: AwareDatetime | None = None
    """When it started, if the order's deadline cuts its timeout short (SCH-17); otherwise None."""


class AtWork(UnderWay):
    """An agent has the request."""

    __slots__ = ()


class SettledStep(State):
    """The attempts have come to a result."""

    __slots__ = ()


class Finished(SettledStep):
    """The steps after it may start."""

    __slots__ = ()


# Waiting for the next attempt. `cause` says why the last attempt ended without a result, and
# `retry_by` is the complete-by time that the supervisor gives to the next one (SUP-3).


@dataclass(frozen=True, slots=True)
class Waiting(Startable):
    """Waits for the steps before it, or for an agent with capacity, and for no time."""

    cause: Cause | None = None
    retry_by: AwareDatetime | None = None


@dataclass(frozen=True, slots=True)
class Delayed(Startable):
    """Waits after repeated time-outs, so that requests that fail together come apart (SUP-3)."""

    until: AwareDatetime
    cause: Cause
    retry_by: AwareDatetime | None = None


@dataclass(frozen=True, slots=True)
class BackingOff(Startable):
    """Waits after attempts that counted as no failure; the pause grows with them (SCH-16)."""

    until: AwareDatetime
    cause: Cause | None = None
    retry_by: AwareDatetime | None = None


@dataclass(frozen=True, slots=True)
class Deferred(Startable):
    """The service accepted the work and finishes it later; the agent calls again (AGT-11)."""

    ask_again_at: AwareDatetime | None = None
    """None if that may be as soon as an agent has capacity."""


@dataclass(frozen=True, slots=True)
class CoolingDown(Startable):
    """Has reached its threshold, and waits for long before it starts afresh (SUP-3)."""

    until: AwareDatetime
    cause: Cause
    retry_by: AwareDatetime | None = None


@dataclass(frozen=True, slots=True)
class ConditionPending(Startable):
    """Its condition and its start time have not been evaluated (SCH-14, SCH-15)."""

    refusal: Cause | None = None
    """Why somebody outside has refused the step already: that counts if it is needed (ANS-3)."""


@dataclass(frozen=True, slots=True)
class Scheduled(Startable):
    """Waits for the start time that its workflow chose (SCH-15)."""

    at: AwareDatetime


@dataclass(frozen=True, slots=True)
class LateEffectsPossible(Wait):
    """An undo waits until no earlier call can take effect any more (UND-2)."""

    until: AwareDatetime
    retry_by: AwareDatetime | None = None


# The way forward


@dataclass(frozen=True, slots=True)
class Running(AtWork):
    """An agent does the step."""


@dataclass(frozen=True, slots=True)
class AwaitingExternalEvent(UnderWay):
    """Waits for an external event; no agent works on it (ANS-1)."""


@dataclass(frozen=True, slots=True)
class RequestCancelled(State):
    """An external event was requested, and is not awaited any more (SCH-12)."""


@dataclass(frozen=True, slots=True)
class Completed(Finished):
    """It was done; the effect has the result."""


class SkipReason(StrEnum):
    """Why the order goes on without a step."""

    CONDITION = "condition"
    """Its condition says that it is not needed (SCH-14)."""
    FAILED = "failed"
    """It failed, and the order goes on without it (SCH-13)."""
    OPERATOR = "operator"
    """An operator says that it was done, or undone, by other means (OPR-4)."""


@dataclass(frozen=True, slots=True)
class Skipped(Finished):
    """The order continues without it."""

    reason: SkipReason
    cause: Cause | None = None


@dataclass(frozen=True, slots=True)
class Failed(SettledStep):
    """No more attempts; its rule or an operator decides what follows."""

    cause: Cause
    operator_decides: bool = False
    """Whether an operator decides, since the failure is not the service's own word."""
    condition_pending: bool = False
    """Whether a resubmit has to evaluate its condition and start time again."""


# The way back


@dataclass(frozen=True, slots=True)
class UndoPending(State):
    """It has to be undone; `Wait` says for what the undo waits."""

    wait: Wait = field(default_factory=Waiting)


@dataclass(frozen=True, slots=True)
class Undoing(AtWork):
    """An agent undoes the step."""


@dataclass(frozen=True, slots=True)
class UndoFailed(SettledStep):
    """No more attempts to undo it, and its effect may remain (UND-4)."""

    cause: Cause
    operator_decides: bool = False


@dataclass(frozen=True, slots=True)
class NothingToUndo(SettledStep):
    """The undo failed, but the step was certainly not done, so nothing is left to undo."""

    cause: Cause
    operator_decides: bool = False


@dataclass(frozen=True, slots=True)
class Undone(SettledStep):
    """It was undone."""


PATTERN_STATE: Mapping[type[State], StepState] = {
    Waiting: StepState.NOT_STARTED,
    Delayed: StepState.NOT_STARTED,
    BackingOff: StepState.NOT_STARTED,
    Deferred: StepState.NOT_STARTED,
    CoolingDown: StepState.NOT_STARTED,
    ConditionPending: StepState.NOT_STARTED,
    Scheduled: StepState.NOT_STARTED,
    RequestCancelled: StepState.NOT_STARTED,
    Running: StepState.RUNNING,
    AwaitingExternalEvent: StepState.RUNNING,
    Completed: StepState.COMPLETED,
    Skipped: StepState.SKIPPED,
    Failed: StepState.FAILED,
    UndoPending: StepState.UNDOING,
    Undoing: StepState.UNDOING,
    UndoFailed: StepState.FAILED,
    NothingToUndo: StepState.FAILED,
    Undone: StepState.UNDONE,
}
"""The documented word of each state, which rows, API and events show beside the exact state."""

STATES = tuple(PATTERN_STATE)
