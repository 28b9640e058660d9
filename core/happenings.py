"""The events of an order: a value for each event of its history, and its words.

An entry of the history holds what one transition did, in sequence. People read it in words, which
are made here and nowhere else. Programs read the values; none parses the words.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, get_args, get_type_hints

from pydantic import AwareDatetime, ConfigDict, Discriminator, TypeAdapter
from pydantic.alias_generators import to_camel

from core.life import MEANINGS, Mark, Situation
from core.orders import OUTSIDE
from engine.domain.causes import Cause, Code
from engine.words import last_answer, words_of

CLOCK = "%Y-%m-%d %H:%M:%S UTC"
"""How words tell a time; the console shows it in the reader's own zone."""

BESIDES, OF_STEP, STEP_GIVEN_UP, OF_ORDER = range(4)
"""The weights of events: the last event of the greatest weight names the entry."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AttemptEnd:
    """How an attempt at a step has ended."""

    word: str
    mark: Mark


@dataclass(frozen=True, kw_only=True, slots=True)
class EventMeaning:
    """The meaning of an event of the history for those who read it."""

    is_failure: bool
    changes_nothing: bool
    begins_attempt: bool
    ends_attempt: AttemptEnd | None


class OfHistory:
    """Base of all events: what they mean, unless a class says otherwise."""

    __slots__ = ()
    is_failure: ClassVar[bool] = False
    """Whether something went wrong."""
    changes_nothing: ClassVar[bool] = False
    """Whether it only reports: the order stayed as it was."""
    begins_attempt: ClassVar[bool] = False
    ends_attempt: ClassVar[AttemptEnd | None] = None
    """How the attempt at its step has ended by it; None if it has not."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OfOrder(OfHistory):
    """Base of the events of a whole order."""

    weight: ClassVar = OF_ORDER

    @property
    def words(self) -> str:
        """The event in words; empty where its name is enough."""
        return ""


@dataclass(frozen=True, kw_only=True, slots=True)
class OfStep(OfHistory):
    """Base of the events of an attempt at a step."""

    weight: ClassVar = OF_STEP
    step: str
    attempt: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Submitted(OfOrder):
    """The order was recorded (SUB-2)."""

    what: Literal["submitted"] = "submitted"
    workflow: str
    not_before: AwareDatetime | None = None
    """When its steps may begin; None for at once (SUB-9)."""

    @property
    def words(self) -> str:
        later = f", not before {self.not_before:{CLOCK}}" if self.not_before else ""
        return f"workflow {self.workflow}{later}"


@dataclass(frozen=True, kw_only=True, slots=True)
class SubmissionRefused(OfOrder):
    """A message would have overwritten the order (SUB-3)."""

    what: Literal["submission-refused"] = "submission-refused"
    cause: Cause

    @property
    def words(self) -> str:
        return words_of(self.cause)


@dataclass(frozen=True, kw_only=True, slots=True)
class Claimed(OfOrder):
    """A scheduler has taken the order (SCH-2)."""

    what: Literal["claimed"] = "claimed"


@dataclass(frozen=True, kw_only=True, slots=True)
class StepStarted(OfStep):
    """An attempt at a step began, and its request goes out (SCH-3)."""

    weight: ClassVar = BESIDES
    begins_attempt: ClassVar = True
    what: Literal["step-started"] = "step-started"
    capability: str
    agent: str
    complete_by: AwareDatetime
    undo: bool = False
    round: int | None = None
    """The number of the step's round; None for the first one (AGT-3)."""

    @property
    def words(self) -> str:
        if self.capability == OUTSIDE:
            until = f"{self.complete_by:{CLOCK}}"
            return f"the answer to {self.step} is awaited until {until}, attempt {self.attempt}"
        what = f"{'undo of ' if self.undo else ''}{self.step} attempt {self.attempt}"
        which = f" of round {self.round + 1}" if self.round else ""
        where = "" if self.agent == self.capability else f" at {self.agent}"
        return f"{what}{which} started{where}"


@dataclass(frozen=True, kw_only=True, slots=True)
class StepCompleted(OfStep):
    """An agent answered that the step is done (SCH-5)."""

    ends_attempt: ClassVar = AttemptEnd(word="completed", mark=Mark.PROCESSED)
    what: Literal["step-completed"] = "step-completed"

    @property
    def words(self) -> str:
        return f"{self.step} completed by attempt {self.attempt}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Answered(OfStep):
    """Somebody outside has answered the step, perhaps before the answer was awaited (ANS-1)."""

    ends_attempt: ClassVar = AttemptEnd(word="answered", mark=Mark.PROCESSED)
    what: Literal["step-answered"] = "step-answered"

    @property
    def words(self) -> str:
        return f"{self.step} was answered{'' if self.attempt else ' before its turn'}"


@dataclass(frozen=True, kw_only=True, slots=True)
class RefusedEarly(OfHistory):
    """Somebody outside has refused a step that is not judged yet: it counts if that is needed."""

    weight: ClassVar = OF_STEP
    what: Literal["step-refused-early"] = "step-refused-early"
    step: str
    cause: Cause

    @property
    def words(self) -> str:
        return f"{self.step} was refused before its turn: {words_of(self.cause)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Withdrawn(OfStep):
    """The answer to the step is not awaited any more, because the order goes another way."""

    weight: ClassVar = BESIDES
    ends_attempt: ClassVar = AttemptEnd(word="withdrawn", mark=Mark.PENDING)
    what: Literal["step-withdrawn"] = "step-withdrawn"

    @property
    def words(self) -> str:
        return f"{self.step} is awaited no longer"


@dataclass(frozen=True, kw_only=True, slots=True)
class StepUndone(OfStep):
    """An agent answered that the step is undone (UND-1)."""

    ends_attempt: ClassVar = AttemptEnd(word="undone", mark=Mark.UNDO)
    what: Literal["step-undone"] = "step-undone"

    @property
    def words(self) -> str:
        return f"{self.step} undone by attempt {self.attempt}"


@dataclass(frozen=True, kw_only=True, slots=True)
class StepFailed(OfStep):
    """The step is given up: it was refused, had no valid request, or has reached its threshold."""

    weight: ClassVar = STEP_GIVEN_UP
    is_failure: ClassVar = True
    ends_attempt: ClassVar = AttemptEnd(word="failed", mark=Mark.ERROR)
    what: Literal["step-failed"] = "step-failed"
    cause: Cause

    @property
    def words(self) -> str:
        return f"{self.step}: {words_of(self.cause)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class PassedOver(OfHistory):
    """The order goes on without a step that failed for good (SCH-13)."""

    weight: ClassVar = BESIDES
    what: Literal["passed-over"] = "passed-over"
    step: str

    @property
    def words(self) -> str:
        return f"the order goes on without {self.step}"


@dataclass(frozen=True, kw_only=True, slots=True)
class NotNeeded(OfHistory):
    """A step is skipped, because a predicate of its workflow says no (SCH-14)."""

    weight: ClassVar = BESIDES
    what: Literal["not-needed"] = "not-needed"
    step: str
    predicate: str

    @property
    def words(self) -> str:
        return f"{self.step} is not needed: {self.predicate}"


@dataclass(frozen=True, kw_only=True, slots=True)
class BeginsLater(OfHistory):
    """A step begins at a time that its workflow says, and not before (SCH-15)."""

    weight: ClassVar = BESIDES
    what: Literal["begins-later"] = "begins-later"
    step: str
    until: AwareDatetime
    by: str
    """The function that says so."""

    @property
    def words(self) -> str:
        return f"{self.step} begins at {self.until:{CLOCK}}: {self.by}"


@dataclass(frozen=True, kw_only=True, slots=True)
class NotTried(OfStep):
    """An agent answered that it made no call; no failure is counted (AGT-8)."""

    is_failure: ClassVar = True
    ends_attempt: ClassVar = AttemptEnd(word="waited, not tried", mark=Mark.WAITED)
    what: Literal["not-tried"] = "not-tried"
    cause: Cause

    @property
    def words(self) -> str:
        return f"{self.step} was not tried: {words_of(self.cause)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Accepted(OfStep):
    """The service has accepted the call, and will do it later; no failure is counted (AGT-11)."""

    ends_attempt: ClassVar = AttemptEnd(word="accepted", mark=Mark.AGAIN)
    what: Literal["accepted"] = "accepted"
    agent: str
    until: AwareDatetime
    """When the service is asked again."""

    @property
    def words(self) -> str:
        again = f"{self.until:{CLOCK}}"
        return f"{self.agent} accepted {self.step}; it is asked again at {again}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Expired(OfStep):
    """The complete-by time of an attempt passed without a valid reply (SUP-3)."""

    is_failure: ClassVar = True
    ends_attempt: ClassVar = AttemptEnd(word="no answer in time", mark=Mark.AGAIN)
    what: Literal["expired"] = "expired"
    agent: str
    failure: int | None = None
    """The number of this failure; None if the agent may not have begun it, which is no failure."""
    threshold: int
    fault: str = ""
    """The fault that the agent reported of its last call, or empty."""

    @property
    def words(self) -> str:
        if self.failure is None:
            cause = Cause(Code.NOT_BEGUN, {"agent": self.agent})
            return f"{self.step} attempt {self.attempt} came to nothing: {words_of(cause)}"
        if self.agent == OUTSIDE:
            return f"nobody has answered {self.step} in time, {self.failure} of {self.threshold}"
        failure = f"failure {self.failure} of {self.threshold}"
        return f"{self.step} timed out, {failure}{last_answer(self.fault)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class CoolsDown(OfHistory):
    """The step has reached its threshold and cools down before it is tried again (SUP-3)."""

    weight: ClassVar = BESIDES
    what: Literal["cooldown"] = "cooldown"
    step: str
    number: int
    most: int
    until: AwareDatetime

    @property
    def words(self) -> str:
        return f"cooldown {self.number} of {self.most}, until {self.until:{CLOCK}}"


@dataclass(frozen=True, kw_only=True, slots=True)
class PutBack(OfOrder):
    """No step of the order runs or can start now, so the order waits."""

    is_failure: ClassVar = True
    what: Literal["put-back"] = "put-back"
    until: AwareDatetime | None = None
    """When the next step may start; None if the order waits for an agent."""

    @property
    def words(self) -> str:
        return f"waits until {self.until:{CLOCK}}" if self.until else "no agent has room"


@dataclass(frozen=True, kw_only=True, slots=True)
class Waits(OfOrder):
    """No step of the order runs, and it waits for a chosen time or for its release (SCH-15)."""

    what: Literal["waits"] = "waits"
    until: AwareDatetime | None = None
    """The chosen time; None if an operator holds the order."""
    held_by: str | None = None

    @property
    def words(self) -> str:
        return f"waits until {self.until:{CLOCK}}" if self.until else f"{self.held_by} holds it"


@dataclass(frozen=True, kw_only=True, slots=True)
class Recovered(OfOrder):
    """The supervisor took the order from its scheduler after the complete-by time (SUP-3)."""

    is_failure: ClassVar = True
    what: Literal["recovered"] = "recovered"


@dataclass(frozen=True, kw_only=True, slots=True)
class UndoRequested(OfOrder):
    """The whole order is to be undone, because a step failed (UND-1)."""

    is_failure: ClassVar = True
    what: Literal["undo-requested"] = "undo-requested"
    step: str
    cause: Cause

    @property
    def words(self) -> str:
        return f"{self.step}: {words_of(self.cause)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Processed(OfOrder):
    """Every step is done."""

    what: Literal["processed"] = "processed"


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended(OfOrder):
    """The order is in `Error` (SCH-8, UND-5)."""

    what: Literal["failed", "undone", "undo-incomplete"]
    step: str | None = None
    """The step that caused the end, if one did."""
    cause: Cause | None = None

    @property
    def reason(self) -> str | None:
        """The cause in words."""
        return words_of(self.cause) if self.cause else None

    @property
    def words(self) -> str:
        return f"{self.step}: {self.reason}" if self.step else str(self.reason)


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkflowChanged(OfOrder):
    """The order's version of its workflow was changed while the order followed it."""

    weight: ClassVar = BESIDES
    what: Literal["workflow-changed"] = "workflow-changed"
    workflow: str
    version: int
    steps: str
    """The changed steps, and their new definitions."""

    @property
    def words(self) -> str:
        return f"{self.workflow} v{self.version} was changed without a new version: {self.steps}"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplyRefused(OfOrder):
    """A reply was not valid, and changed nothing (SCH-6)."""

    is_failure: ClassVar = True
    changes_nothing: ClassVar = True
    what: Literal["reply-refused"] = "reply-refused"
    step: str
    attempt: int
    cause: Cause

    @property
    def words(self) -> str:
        return words_of(self.cause)


@dataclass(frozen=True, kw_only=True, slots=True)
class ActedOn(OfOrder):
    """An operator, or its customer, acted on the order; the names are those of `core.actions`."""

    what: Literal["resubmitted", "cancelled", "held", "released", "hurried", "erased"]
    note: str

    @property
    def words(self) -> str:
        return self.note


@dataclass(frozen=True, kw_only=True, slots=True)
class Revealed(OfOrder):
    """An operator looked at who the customer is (OPR-1)."""

    changes_nothing: ClassVar = True
    what: Literal["revealed"] = "revealed"
    note: str

    @property
    def words(self) -> str:
        return self.note


@dataclass(frozen=True, kw_only=True, slots=True)
class Skipped(OfOrder):
    """An operator left a step out (OPR-4).

    After `step-skipped` the order waits, since another step has failed too.
    """

    what: Literal["skipped", "step-skipped"]
    step: str
    note: str

    @property
    def words(self) -> str:
        return f"{self.step}: {self.note}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Renewed(OfOrder):
    """An operator found that a step was not done, and lets it begin a new round (AGT-12).

    After `step-renewed` the order waits, since another step has failed too.
    """

    what: Literal["renewed", "step-renewed"]
    step: str
    note: str

    @property
    def words(self) -> str:
        return f"{self.step}: {self.note}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Settled(OfOrder):
    """An operator found out whether a step in doubt was done (OPR-12).

    After `step-settled` the order waits for an operator.
    """

    what: Literal["settled", "step-settled"]
    step: str
    was_done: bool
    late_effect: bool = False
    """Whether the operator confirmed that a call may still take effect."""
    note: str

    @property
    def words(self) -> str:
        outcome = "was done" if self.was_done else "was not done"
        late = ", though a call may still take effect" if self.late_effect else ""
        return f"{self.step} {outcome}{late}: {self.note}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Restored(OfOrder):
    """An operator restored the order from a copy; what happened to it since is not known."""

    what: Literal["restored"] = "restored"
    copied_at: AwareDatetime
    note: str

    @property
    def words(self) -> str:
        return f"from a copy of {self.copied_at:{CLOCK}}: {self.note}"


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedOtherwise(OfOrder):
    """An operator changed how, or for how long, an answer from outside is awaited (ANS-7)."""

    what: Literal["link-renewed", "wait-extended", "reminded"]
    step: str
    note: str
    until: AwareDatetime | None = None
    """The new deadline; None for the one that was."""

    @property
    def words(self) -> str:
        until = f" until {self.until:{CLOCK}}" if self.until else ""
        return f"{self.step}{until}: {self.note}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Unknown(OfOrder):
    """An event that only another version of the app knows, in that version's words (FLT-12)."""

    what: str
    words: str


Happening = (
    Submitted
    | SubmissionRefused
    | Claimed
    | StepStarted
    | StepCompleted
    | Answered
    | RefusedEarly
    | Withdrawn
    | StepUndone
    | StepFailed
    | PassedOver
    | NotNeeded
    | BeginsLater
    | NotTried
    | Accepted
    | Expired
    | CoolsDown
    | PutBack
    | Waits
    | Recovered
    | UndoRequested
    | Processed
    | Ended
    | WorkflowChanged
    | ReplyRefused
    | ActedOn
    | Revealed
    | Skipped
    | Renewed
    | Settled
    | Restored
    | AskedOtherwise
)


def meanings() -> dict[str, EventMeaning]:
    """Return the meaning of each event of the history, by its name."""
    kinds: tuple[type[OfHistory], ...] = get_args(Happening)
    return {name: _meaning(kind, name) for kind in kinds for name in _names(kind)}


def _names(kind: type[OfHistory]) -> tuple[str, ...]:
    return get_args(get_type_hints(kind)["what"])


def _meaning(kind: type[OfHistory], name: str) -> EventMeaning:
    """Return the meaning of an event; an end is a failure if it waits for an operator."""
    waits = kind is Ended and MEANINGS[Situation(name)].waits_for_operator
    return EventMeaning(
        is_failure=kind.is_failure or waits,
        changes_nothing=kind.changes_nothing,
        begins_attempt=kind.begins_attempt,
        ends_attempt=kind.ends_attempt,
    )


_ALL: TypeAdapter[Any] = TypeAdapter(
    tuple[Annotated[Happening, Discriminator("what")], ...],
    config=ConfigDict(alias_generator=to_camel),
)


def name_of(happened: Sequence[Happening | Unknown]) -> str:
    """Return the name of an entry: an event of the order, or else of its step."""
    return max(reversed(happened), key=lambda each: each.weight).what


def in_words(happened: Sequence[Happening | Unknown]) -> str:
    """Return what happened as people read it; the reason of a failed step appears once."""
    ends = any(isinstance(each, Ended | UndoRequested) for each in happened)
    failed = {each.step for each in happened if isinstance(each, StepFailed)}

    def is_repeated(each: Happening | Unknown) -> bool:
        if isinstance(each, StepFailed):
            return ends
        return isinstance(each, Expired) and each.step in failed

    return "; ".join(each.words for each in happened if each.words and not is_repeated(each))


def as_data(happened: Sequence[Happening | Unknown]) -> list[dict[str, Any]]:
    """Return the events as JSON objects with camelCase fields; unknown events are left out."""
    data: list[dict[str, Any]] = _ALL.dump_python(
        tuple(each for each in happened if not isinstance(each, Unknown)),
        mode="json",
        by_alias=True,
        exclude_none=True,
    )
    return data


def from_data(data: Any) -> tuple[Happening, ...]:
    """Return the events; raises `pydantic.ValidationError` for one that is not known here."""
    happened: tuple[Happening, ...] = _ALL.validate_python(data)
    return happened
