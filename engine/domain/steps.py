r"""The record of a workflow step.

A step has four parts:
- `rules`: a frozen copy of its definition, so that the supervisor needs no workflow
- `counts`: attempts, failures and cooldowns
- `effect`: what is known of its effect at the service (`effects.py`)
- `state`: its state, with only the data that this state needs (`states.py`)

Only the verbs change a step (`verbs.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Generic, TypeVar

from engine.domain.causes import Cause
from engine.domain.effects import Doubt, Effect, NothingSent, RequestKey, Sent, WithResult
from engine.domain.states import (
    PATTERN_STATE,
    BackingOff,
    Completed,
    ConditionPending,
    CoolingDown,
    Deferred,
    Delayed,
    Failed,
    LateEffectsPossible,
    NothingToUndo,
    Running,
    Scheduled,
    Skipped,
    SkipReason,
    State,
    UnderWay,
    UndoFailed,
    UndoPending,
    Wait,
    Waiting,
)
from engine.domain.statuses import StepState
from engine.domain.submitted_order import OnFailure

MAX_RETRY_PAUSE = timedelta(minutes=5)
"""The longest pause between two counted attempts, unless the step sets another limit."""


class StepKind(StrEnum):
    """The party that completes a step."""

    SERVICE = "service"
    """A service that an agent calls."""
    EXTERNAL = "external"
    """An external event. No agent has a request (ANS-1)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepRules:
    """The rules of a step, copied from its definition when the order is recorded."""

    kind: StepKind = StepKind.SERVICE
    """`service` if an agent calls a service, `external` if an external event completes the step."""
    capability: str
    """The capability that an agent must offer (AGT-10). For an external step it is `outside`."""
    title: str = ""
    """The title that operators see beside the name, or empty for the name alone."""
    timeout: timedelta
    """The maximum duration of one attempt."""
    threshold: int
    """The step fails, or cools down, when its failures reach this number (SUP-3)."""
    on_failure: OnFailure = OnFailure.ERROR
    """The rule for the order when the step has failed: `error`, `undo`, `cooldown` or
    `continue`."""
    after: tuple[str, ...] = ()
    """The steps that have to be finished before this step starts."""
    uses: tuple[str, ...] = ()
    """The steps whose results the request of this step needs."""
    undoable: bool = False
    """Whether the step, once done, has an effect to undo."""
    pivot: bool = False
    """Whether the order is no longer undone automatically once the step may have been done
    (UND-6)."""
    cooldown: timedelta = timedelta()
    """How long the step cools down each time that it reaches its threshold (SUP-3)."""
    max_cooldowns: int = 0
    """How often the step cools down before it fails."""
    max_retry_pause: timedelta = MAX_RETRY_PAUSE
    """The longest pause before a retry that the supervisor requests (SUP-3)."""
    late_effect_window: timedelta = timedelta()
    """How long after its time-out a call may still take effect (UND-2)."""
    personal: tuple[str, ...] = ()
    """The fields of the step's result that are personal data (ANS-5)."""
    fingerprint: str = ""
    """A hash of the step's definition in the workflow with which the order started."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Counts:
    """The counts of a step's attempts and failures.

    `attempts` never shrinks, because it identifies stale replies (SCH-6).
    """

    attempts: int = 0
    failures: int = 0
    """The failures since the last fresh start. The threshold limits them."""
    uncounted: int = 0
    """The number of the latest consecutive attempts that counted as no failure (SCH-16)."""
    unbegun: int = 0
    """The number of the latest consecutive requests that no agent is known to have begun
    (SUP-9)."""
    cooldowns: int = 0
    overloaded: int = 0
    """The attempts since the last fresh start that timed out at an overloaded agent (SUP-3)."""

    def without_uncounted(self) -> "Counts":
        """Return the counts after an attempt that counted as a failure or had an answer."""
        return replace(self, uncounted=0, unbegun=0)

    def afresh(self) -> "Counts":
        return Counts(attempts=self.attempts)


NOTHING_SENT = NothingSent()

S_co = TypeVar("S_co", bound=State, covariant=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class StepIn(Generic[S_co]):
    """A step in a state: `StepIn[Failed]` has a cause. `Step` is a step in any state."""

    name: str
    rules: StepRules
    counts: Counts = Counts()
    effect: Effect = NOTHING_SENT
    state: S_co
    callback_token: str | None = field(default=None, repr=False)
    """The secret in its callback URL (ANS-6), or None without a URL."""
    unknown: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """Columns that a newer version of the app has added. They are written back unchanged
    (FLT-12)."""

    @property
    def pattern_state(self) -> StepState:
        """The name of the state in the pattern's documentation."""
        return PATTERN_STATE[type(self.state)]

    @property
    def is_external(self) -> bool:
        """Whether an external event completes the step, and no agent."""
        return self.rules.kind is StepKind.EXTERNAL

    @property
    def key(self) -> RequestKey | None:
        """The idempotency key under which requests were sent, or None before the first request."""
        return self.effect.key if isinstance(self.effect, Sent) else None

    @property
    def agent(self) -> str:
        """The agent of the last request. Before the first request, the name of the capability."""
        key = self.key
        return key.agent if key else self.rules.capability

    @property
    def wait(self) -> Wait | None:
        """The reason why the next attempt has not started, or None if there is no next attempt."""
        state = self.state.wait if isinstance(self.state, UndoPending) else self.state
        return state if isinstance(state, Wait) else None

    @property
    def not_before(self) -> datetime | None:
        """The earliest start of the next attempt, or None if no time has to pass."""
        match self.wait:
            case (
                Delayed(until) | BackingOff(until) | CoolingDown(until) | LateEffectsPossible(until)
            ):
                return until
            case Scheduled(at) | Deferred(at):
                return at
        return None

    @property
    def complete_by(self) -> datetime | None:
        """The complete-by time of the running attempt, or None if no attempt runs."""
        return self.state.complete_by if isinstance(self.state, UnderWay) else None

    @property
    def started_at(self) -> datetime | None:
        """The time at which the running attempt was recorded, or None if no attempt runs."""
        if not isinstance(self.state, UnderWay):
            return None
        return self.state.started_at or self.state.complete_by - self.rules.timeout

    @property
    def retry_by(self) -> datetime | None:
        """The complete-by time that the supervisor gave to the next attempt (SUP-3), or None."""
        match self.wait:
            case Waiting() | Delayed() | BackingOff() | CoolingDown() | LateEffectsPossible() as it:
                return it.retry_by
        return None

    @property
    def result(self) -> Mapping[str, Any] | None:
        """The result of the step, or None if it is unknown."""
        return self.effect.result if isinstance(self.effect, WithResult) else None

    @property
    def answer_by(self) -> datetime | None:
        """The time by which the service has to finish the work that it accepted, or None."""
        return self.effect.answer_by if isinstance(self.effect, Doubt) else None

    @property
    def effects_final_at(self) -> datetime | None:
        """The time after which no call takes effect (UND-2, AGT-11), or None if unknown."""
        key = self.key
        own = key.effects_final_at if key else None
        return max(filter(None, (own, self.answer_by)), default=None)

    @property
    def cause(self) -> Cause | None:
        """Why the last attempt ended without a result, or why the step is in its state."""
        match self.wait or self.state:
            case Waiting() | Delayed() | BackingOff() | CoolingDown() as wait:
                return wait.cause
            case ConditionPending(refusal):
                return refusal
            case Skipped() | Failed() | UndoFailed() | NothingToUndo() as settled:
                return settled.cause
        return None

    @property
    def is_backing_off(self) -> bool:
        """Whether the step waits for the end of a pause and keeps its place (SCH-16)."""
        return isinstance(self.wait, BackingOff) and self.answer_by is None

    @property
    def skipped_as_done(self) -> bool:
        """Whether an operator reported that the step was done by other means (OPR-4)."""
        return isinstance(self.state, Skipped) and self.state.reason is SkipReason.OPERATOR

    @property
    def may_be_done(self) -> bool:
        """Whether the step was done or may have been done (UND-6)."""
        is_done = self.skipped_as_done or isinstance(self.state, Running | Completed)
        return is_done or isinstance(self.effect, Doubt)

    def is_expired(self, now: datetime, tolerance: timedelta) -> bool:
        """Return whether the complete-by time plus the tolerance has passed (SUP-2, SCH-6)."""
        return self.complete_by is not None and now > self.complete_by + tolerance


Step = StepIn[State]
