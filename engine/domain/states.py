"""The states of a step: one small class for each state, with only the data that it needs.

The base classes are the groups that decisions check. A step whose undo waits has the same waiting
states as a step that waits to be done, so `UndoPending` contains one of them.
"""

# The pattern in an hour, 1 of 23: the states of a step

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
    """The next attempt to do the step starts when its turn and its start time have come."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class UnderWay(State):
    """An attempt with a complete-by time is running."""

    complete_by: AwareDatetime
    started_at: AwareDatetime | None = None
    """The start of the attempt, if the order's deadline shortens its timeout (SCH-17). Otherwise
    None."""


class AtWork(UnderWay):
    """An agent has the request."""

    __slots__ = ()


class SettledStep(State):
    """The attempts have led to a result."""

    __slots__ = ()


class Finished(SettledStep):
    """The steps after this step may start."""

    __slots__ = ()


# Waiting for the next attempt. `cause` says why the last attempt ended without a result, and
# `retry_by` is the complete-by time that the supervisor gives to the next one (SUP-3).


@dataclass(frozen=True, slots=True)
class Waiting(Startable):
    """The step waits for earlier steps, a claim or an agent with capacity, but not for a time."""

    cause: Cause | None = None
    retry_by: AwareDatetime | None = None


@dataclass(frozen=True, slots=True)
class Delayed(Startable):
    """The step waits for a random time after repeated time-outs (SUP-3).

    So requests that failed together are not repeated at the same time.
    """

    until: AwareDatetime
    cause: Cause
    retry_by: AwareDatetime | None = None


@dataclass(frozen=True, slots=True)
class BackingOff(Startable):
    """The step waits after attempts that did not count as failures.

    The pause grows with each such attempt (SCH-16).
    """

    until: AwareDatetime
    cause: Cause | None = None
    retry_by: AwareDatetime | None = None


@dataclass(frozen=True, slots=True)
class Deferred(Startable):
    """The service accepted the work and finishes it later. The agent will call again (AGT-11)."""

    ask_again_at: AwareDatetime | None = None
    """The time of the next request, or None for as soon as an agent has capacity."""


@dataclass(frozen=True, slots=True)
class CoolingDown(Startable):
    """Instead of failing, the step waits for its cooldown (SUP-3).

    Its failure count is zero again.
    """

    until: AwareDatetime
    cause: Cause
    retry_by: AwareDatetime | None = None


@dataclass(frozen=True, slots=True)
class ConditionPending(Startable):
    """The condition and the start time have not been evaluated yet (SCH-14, SCH-15)."""

    refusal: Cause | None = None
    """The cause of an early refusal by an external party. It counts only if the step is needed
    (ANS-3)."""


@dataclass(frozen=True, slots=True)
class Scheduled(Startable):
    """The step waits for the start time that its `start_at` returned (SCH-15)."""

    at: AwareDatetime


@dataclass(frozen=True, slots=True)
class LateEffectsPossible(Wait):
    """An undo waits until no earlier call can take effect any more (UND-2)."""

    until: AwareDatetime
    retry_by: AwareDatetime | None = None


# The way forward


@dataclass(frozen=True, slots=True)
class Running(AtWork):
    """An agent has a request to do the step."""


@dataclass(frozen=True, slots=True)
class AwaitingExternalEvent(UnderWay):
    """The step waits for an external event. No agent has a request (ANS-1)."""


@dataclass(frozen=True, slots=True)
class RequestCancelled(State):
    """The order ends or is undone, so it no longer waits for the external event (SCH-12)."""


@dataclass(frozen=True, slots=True)
class Completed(Finished):
    """The step was done. The record of its effect contains the result."""


class SkipReason(StrEnum):
    """The reason why the order continues without a step."""

    CONDITION = "condition"
    """The condition of the step is false (SCH-14)."""
    FAILED = "failed"
    """The step failed and is optional (SCH-13)."""
    OPERATOR = "operator"
    """An operator reported that the step was done, or undone, by other means (OPR-4)."""


@dataclass(frozen=True, slots=True)
class Skipped(Finished):
    """The order continues without the step."""

    reason: SkipReason
    cause: Cause | None = None


@dataclass(frozen=True, slots=True)
class Failed(SettledStep):
    """No more attempts are made.

    The `on_failure` of the step or an operator decides what follows.
    """

    cause: Cause
    operator_decides: bool = False
    """Whether an operator decides instead of the step's rule, for example after a gateway's error.
    """
    condition_pending: bool = False
    """Whether a resubmit has to evaluate the condition and the start time again."""


# The way back


@dataclass(frozen=True, slots=True)
class UndoPending(State):
    """The step has to be undone. The field `wait` says why the undo has not started yet."""

    wait: Wait = field(default_factory=Waiting)


@dataclass(frozen=True, slots=True)
class Undoing(AtWork):
    """An agent has a request to undo the step."""


@dataclass(frozen=True, slots=True)
class UndoFailed(SettledStep):
    """No more attempts to undo the step are made. The effect of the step may remain (UND-4)."""

    cause: Cause
    operator_decides: bool = False


@dataclass(frozen=True, slots=True)
class NothingToUndo(SettledStep):
    """The undo failed, but the step was certainly not done, so no effect remains."""

    cause: Cause
    operator_decides: bool = False


@dataclass(frozen=True, slots=True)
class Undone(SettledStep):
    """The step was undone."""


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
"""The name of each state in the pattern's documentation. Rows, API and events show it beside the
exact state."""

STATES = tuple(PATTERN_STATE)
