"""What can happen to an order: a value for each event of its history, and its words.

An entry of the history holds what one transition did, in the order in which it came about. People read it in words,
which are made here and nowhere else; whoever else wants to know reads the values, and nothing reads the words back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AwareDatetime, ConfigDict, Discriminator, TypeAdapter
from pydantic.alias_generators import to_camel

BESIDES, OF_STEP, STEP_GIVEN_UP, OF_ORDER = range(4)
"""How much an event says: of several in one entry the one that says most names it, and of these the last."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OfOrder:
    """Base of what became of the order."""

    weight: ClassVar = OF_ORDER

    @property
    def words(self) -> str:
        """How it reads; empty where its name says all."""
        return ""


@dataclass(frozen=True, kw_only=True, slots=True)
class OfStep:
    """Base of what became of an attempt at a step."""

    weight: ClassVar = OF_STEP
    step: str
    attempt: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Submitted(OfOrder):
    """The order was recorded (SUB-2)."""

    what: Literal["submitted"] = "submitted"
    workflow: str

    @property
    def words(self) -> str:
        return f"workflow {self.workflow}"


@dataclass(frozen=True, kw_only=True, slots=True)
class SubmissionRefused(OfOrder):
    """A message would have overwritten the order (SUB-3)."""

    what: Literal["submission-refused"] = "submission-refused"
    why: str

    @property
    def words(self) -> str:
        return self.why


@dataclass(frozen=True, kw_only=True, slots=True)
class Claimed(OfOrder):
    """A scheduler has taken the order (SCH-2)."""

    what: Literal["claimed"] = "claimed"


@dataclass(frozen=True, kw_only=True, slots=True)
class StepStarted(OfStep):
    """An attempt at a step began, and its request goes out (SCH-3)."""

    weight: ClassVar = BESIDES
    what: Literal["step-started"] = "step-started"
    capability: str
    agent: str
    complete_by: AwareDatetime
    undo: bool = False

    @property
    def words(self) -> str:
        where = "" if self.agent == self.capability else f" at {self.agent}"
        return f"{'undo of ' if self.undo else ''}{self.step} attempt {self.attempt} started{where}"


@dataclass(frozen=True, kw_only=True, slots=True)
class StepCompleted(OfStep):
    """An agent answered that the step is done (SCH-5)."""

    what: Literal["step-completed"] = "step-completed"

    @property
    def words(self) -> str:
        return f"{self.step} completed by attempt {self.attempt}"


@dataclass(frozen=True, kw_only=True, slots=True)
class StepUndone(OfStep):
    """An agent answered that the step is undone (UND-1)."""

    what: Literal["step-undone"] = "step-undone"

    @property
    def words(self) -> str:
        return f"{self.step} undone by attempt {self.attempt}"


@dataclass(frozen=True, kw_only=True, slots=True)
class StepFailed(OfStep):
    """The step is not tried again: it was refused, could not be asked for, or has reached its threshold."""

    weight: ClassVar = STEP_GIVEN_UP
    what: Literal["step-failed"] = "step-failed"
    reason: str

    @property
    def words(self) -> str:
        return f"{self.step}: {self.reason}"


@dataclass(frozen=True, kw_only=True, slots=True)
class NotTried(OfStep):
    """An agent answered that it made no call; no failure is counted (AGT-8)."""

    what: Literal["not-tried"] = "not-tried"
    reason: str | None = None

    @property
    def words(self) -> str:
        return f"{self.step} was not tried: {self.reason}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Expired(OfStep):
    """The time of an attempt was up, and no valid reply had come (SUP-3)."""

    what: Literal["expired"] = "expired"
    agent: str
    failure: int | None = None
    """Which failure of the step it was; None if the agent is not known to have begun it, which is no failure."""
    threshold: int
    fault: str = ""
    """What the agent said of its last call, if it said anything."""

    @property
    def words(self) -> str:
        if self.failure is None:
            return f"{self.step} attempt {self.attempt} came to nothing: {not_begun(self.agent)}"
        return f"{self.step} timed out, failure {self.failure} of {self.threshold}{last_answer(self.fault)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class CoolsDown:
    """The step has reached its threshold, and rests before it is tried again (SUP-3)."""

    weight: ClassVar = BESIDES
    what: Literal["cooldown"] = "cooldown"
    step: str
    number: int
    most: int
    until: AwareDatetime

    @property
    def words(self) -> str:
        return f"cooldown {self.number} of {self.most}, until {self.until:%H:%M:%S}"


@dataclass(frozen=True, kw_only=True, slots=True)
class PutBack(OfOrder):
    """No step of the order runs any more, and none can start now: it waits."""

    what: Literal["put-back"] = "put-back"
    until: AwareDatetime | None = None
    """Until the time of a step has come; None if it waits for an agent."""

    @property
    def words(self) -> str:
        return f"waits until {self.until:%H:%M:%S}" if self.until else "no agent has room"


@dataclass(frozen=True, kw_only=True, slots=True)
class Recovered(OfOrder):
    """The supervisor took the order from its scheduler, whose time was up (SUP-3)."""

    what: Literal["recovered"] = "recovered"


@dataclass(frozen=True, kw_only=True, slots=True)
class UndoRequested(OfOrder):
    """The whole order is to be undone, because a step failed (UND-1)."""

    what: Literal["undo-requested"] = "undo-requested"
    step: str
    reason: str

    @property
    def words(self) -> str:
        return f"{self.step}: {self.reason}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Processed(OfOrder):
    """Every step is done."""

    what: Literal["processed"] = "processed"


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended(OfOrder):
    """The order is in `Error` (SCH-8, UND-5)."""

    what: Literal["failed", "undone", "undo-incomplete"]
    step: str | None = None
    """The step that is to blame, if one is."""
    reason: str | None = None

    @property
    def words(self) -> str:
        return f"{self.step}: {self.reason}" if self.step else str(self.reason)


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkflowChanged(OfOrder):
    """The order's version of its workflow was changed while the order was on it."""

    weight: ClassVar = BESIDES
    what: Literal["workflow-changed"] = "workflow-changed"
    workflow: str
    version: int
    steps: str
    """Which of its steps, and what they are now."""

    @property
    def words(self) -> str:
        return f"{self.workflow} v{self.version} was changed without a new version: {self.steps}"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplyRefused(OfOrder):
    """A reply came that counts for nothing (SCH-6)."""

    what: Literal["reply-refused"] = "reply-refused"
    step: str
    attempt: int
    why: str

    @property
    def words(self) -> str:
        return self.why


@dataclass(frozen=True, kw_only=True, slots=True)
class ActedOn(OfOrder):
    """What an operator did to the order (OPR-3, OPR-4); the names are those of `core.actions`."""

    what: Literal["resubmitted", "cancelled", "held", "released", "hurried", "erased"]
    note: str

    @property
    def words(self) -> str:
        return self.note


@dataclass(frozen=True, kw_only=True, slots=True)
class Skipped(OfOrder):
    """An operator left a step out (OPR-4); after `step-skipped` the order waits, since another one has failed."""

    what: Literal["skipped", "step-skipped"]
    step: str
    note: str

    @property
    def words(self) -> str:
        return f"{self.step}: {self.note}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Unknown(OfOrder):
    """What only another version of the app can tell of, in its own words (FLT-12)."""

    what: str
    words: str


Happening = (
    Submitted
    | SubmissionRefused
    | Claimed
    | StepStarted
    | StepCompleted
    | StepUndone
    | StepFailed
    | NotTried
    | Expired
    | CoolsDown
    | PutBack
    | Recovered
    | UndoRequested
    | Processed
    | Ended
    | WorkflowChanged
    | ReplyRefused
    | ActedOn
    | Skipped
)

_ALL: TypeAdapter[Any] = TypeAdapter(
    tuple[Annotated[Happening, Discriminator("what")], ...],
    config=ConfigDict(alias_generator=to_camel),
)


def name_of(happened: Sequence[Happening | Unknown]) -> str:
    """Return the name of an entry: what became of the order, or else of its step."""
    return max(reversed(happened), key=lambda each: each.weight).what


def in_words(happened: Sequence[Happening | Unknown]) -> str:
    """Return what happened as people read it; why a step failed is said once."""
    ends = any(isinstance(each, Ended | UndoRequested) for each in happened)
    failed = {each.step for each in happened if isinstance(each, StepFailed)}

    def is_said_again(each: Happening | Unknown) -> bool:
        return (isinstance(each, StepFailed) and ends) or (
            isinstance(each, Expired) and each.step in failed
        )

    return "; ".join(each.words for each in happened if each.words and not is_said_again(each))


def as_data(happened: Sequence[Happening | Unknown]) -> list[dict[str, Any]]:
    """Return what JSON says of it: an object for each, with its fields in camelCase."""
    data: list[dict[str, Any]] = _ALL.dump_python(
        tuple(each for each in happened if not isinstance(each, Unknown)),
        mode="json",
        by_alias=True,
        exclude_none=True,
    )
    return data


def from_data(data: Any) -> tuple[Happening, ...]:
    """Return what happened; raises `pydantic.ValidationError` for what this version of the app does not know."""
    happened: tuple[Happening, ...] = _ALL.validate_python(data)
    return happened


def not_begun(agent: str) -> str:
    """Return why an attempt counts as no failure."""
    return f"{agent} is not known to have begun it"


def last_answer(fault: str) -> str:
    """Return what is added to a sentence for what the agent said of its last call."""
    if not fault:
        return ""
    return f"; {fault}" if fault.startswith("no answer") else f"; last answer: {fault}"
