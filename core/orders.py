"""What the system knows of an order: the order itself, its state, its steps (pattern.md, 2).

All records are immutable; a transition makes new ones with `dataclasses.replace`. All times are in UTC.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from pydantic import AwareDatetime

from core.life import (
    DONE,
    ENDED,
    MEANINGS,
    Direction,
    Meaning,
    Outcome,
    ProcessState,
    Situation,
    StepState,
    WhyNot,
    situation_of,
)


class Priority(StrEnum):
    """Which orders are claimed first (SCH-11)."""

    HIGH = "high"
    NORMAL = "normal"


class OnFailure(StrEnum):
    """What happens to an order when one of its steps has reached its failure threshold (SUP-3)."""

    ERROR = "error"
    """The order waits for an operator; what was done stays done."""
    UNDO = "undo"
    """The whole order is undone (UND-1)."""
    COOLDOWN = "cooldown"
    """The step cools down and is tried again, a bounded number of times; then the order waits for an operator."""


MAX_REASON = 300
"""Characters that a step keeps of why it failed; the history has all of them."""

ERASED = "erased"
"""Stands for personal data that was erased."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """What was submitted; never changes, but that personal data may be erased."""

    order_id: str
    placed_at: AwareDatetime
    payload: Mapping[str, Any]
    """A JSON object that only the business understands."""
    more: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """Columns that a newer version of the app has added; they are written back as they were read (FLT-12)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OrderState:
    """The state record with the documented properties, and what more the system needs to say."""

    order_id: str
    workflow: str
    workflow_version: int
    process_state: ProcessState = ProcessState.PENDING
    locked_by: str | None = None
    complete_by: AwareDatetime | None = None
    failure_count: int = 0
    version: int = 1
    """Counts the transitions, the submission being the first."""
    priority: Priority = Priority.NORMAL
    waits_since: AwareDatetime
    """Since when nothing has come of the order although it could have gone on: its place in the queue, and its age.

    A time that the workflow or an operator chose is no delay: before it, this is that time.
    """
    not_before: AwareDatetime | None = None
    """The earliest time at which a scheduler can make something of the order, if one was chosen that is to come."""
    updated_at: AwareDatetime
    direction: Direction = Direction.FORWARD
    outcome: Outcome | None = None
    reason: str | None = None
    held_by: str | None = None
    """The operator who holds the order: nothing of it starts until it is released."""
    held_because: str | None = None
    held_since: AwareDatetime | None = None
    reply_to: str | None = None
    agenda: tuple[str, ...] | None = field(default=None, compare=False)
    """Under which row keys it was written what the order owes; None if the record does not say.

    The keys follow from the rest, but another version of the app may have made others of it.
    """
    more: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """As in `Order`."""

    @property
    def is_held(self) -> bool:
        """Whether an operator holds the order."""
        return self.held_since is not None

    @property
    def shown_reason(self) -> str | None:
        """Why the order is where it is: for a held order, who holds it and why."""
        return f"held by {self.held_by}: {self.held_because}" if self.is_held else self.reason

    @property
    def situation(self) -> Situation:
        """Where the order stands."""
        return situation_of(
            self.process_state,
            self.outcome,
            self.direction,
            failed_before=self.failure_count > 0,
            is_held=self.is_held,
        )

    @property
    def meaning(self) -> Meaning:
        """What that means."""
        return MEANINGS[self.situation]


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One workflow step, with a copy of the rules that hold for it, so that the supervisor needs no workflow."""

    name: str
    capability: str
    """What the step needs done; one or several agents offer it (AGT-10)."""
    agent: str
    """The agent that was asked last."""
    timeout: timedelta
    """How long one attempt may take."""
    threshold: int
    """The step is given up once `failure_count` reaches this number."""
    on_failure: OnFailure
    after: tuple[str, ...] = ()
    """The steps that have to be done before."""
    uses: tuple[str, ...] = ()
    """The steps whose answers go into its request: without them it cannot be done."""
    undoable: bool = False
    """Whether there is anything to undo once it was done."""
    late_effect_window: timedelta = timedelta()
    """How long after its time a call may still take effect, at a service that does not refuse undone keys (UND-2)."""
    cooldown: timedelta = timedelta()
    """With the rule `cooldown`: how long the step waits once its threshold is reached."""
    max_cooldowns: int = 0
    """With the rule `cooldown`: how often, before the cause is held to be lasting."""
    cooldowns: int = 0
    """How often the step has cooled down."""
    fingerprint: str = ""
    """Of its definition, as the order knows it; a workflow that was changed in place has another one."""
    state: StepState = StepState.NOT_STARTED
    complete_by: AwareDatetime | None = None
    """While an attempt runs, to do the step or to undo it: when its time is up."""
    settled_at: AwareDatetime | None = None
    """From when on no call of any attempt to do the step can take effect; None if undone keys are refused (UND-2)."""
    not_before: AwareDatetime | None = None
    """While the step waits, to be done or to be undone: the earliest time at which that may begin."""
    attempts: int = 0
    """Only ever grows: it tells a stale reply from a current one."""
    failure_count: int = 0
    reason: str | None = None
    result: Mapping[str, Any] | None = None
    """What the agent answered, which is also what an undo needs."""
    in_doubt: bool = False
    """Whether an attempt ended without an answer: its effect may have happened, or may still come (UND-2)."""
    for_operator: bool = False
    """Whether it failed for what is no word of its service: then an operator decides, whatever `on_failure` says."""
    more: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """As in `Order`, in the column `Steps`."""

    @property
    def runs(self) -> bool:
        """Whether an attempt is under way, to do the step or to undo it."""
        return self.complete_by is not None and self.state in (StepState.RUNNING, StepState.UNDOING)

    @property
    def started_at(self) -> datetime | None:
        """When the attempt that is under way was recorded, and its request issued."""
        return self.complete_by and self.complete_by - self.timeout

    @property
    def waits_for_undo(self) -> bool:
        """Whether the step has to be undone, and no attempt at that is under way."""
        return self.state is StepState.UNDOING and self.complete_by is None

    @property
    def undo_failed(self) -> bool:
        """Whether something may stand that could not be taken back.

        A service that refused to do the step, and then refuses to undo it, says that there is nothing.
        """
        return (
            self.state is StepState.FAILED
            and self.undoable
            and (self.in_doubt or self.result is not None)
        )

    def expired(self, now: datetime, tolerance: timedelta) -> bool:
        """Whether the running attempt's complete-by time, plus the clock tolerance, has passed (SUP-2, SCH-6)."""
        return self.runs and self.complete_by is not None and now > self.complete_by + tolerance


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """One order as it was loaded, and the ETag under which it may be changed."""

    order: Order
    state: OrderState
    steps: tuple[Step, ...]
    etag: str | None = None
    """Of the state row, which every transition replaces; None for an order that is not recorded yet."""

    @property
    def order_id(self) -> str:
        """The order's id, which names its rows and its bucket."""
        return self.order.order_id

    def step(self, name: str) -> Step | None:
        """Return the step of this name, if the order has one."""
        return next((step for step in self.steps if step.name == name), None)

    def in_state(self, *states: StepState) -> tuple[Step, ...]:
        """Return the steps that are in one of these states."""
        return tuple(step for step in self.steps if step.state in states)

    def running(self) -> tuple[Step, ...]:
        """Return the steps that are being done or undone."""
        return tuple(step for step in self.steps if step.runs)

    def needs(self) -> str | None:
        """Return the capability that the order waits for, so that it waits apart from orders with other needs.

        None if nothing waits, and whoever claims the order ends it. A hint to find the order by: whoever claims it
        goes by the steps themselves.
        """
        ready = self.ready()
        return (
            min(ready, key=lambda step: step.not_before or self.state.waits_since).capability
            if ready
            else None
        )

    def ready(self) -> tuple[Step, ...]:
        """Return the steps whose turn it is, to be done or to be undone, whether or not their time has come.

        Of an order that is held that is none.
        """
        if self.state.is_held:
            return ()
        if self.state.direction is Direction.UNDO:
            return self._ready_to_be_undone()
        if self.in_state(StepState.FAILED):  # no new step starts (SCH-12)
            return ()
        done = {step.name for step in self.in_state(*DONE)}
        return tuple(
            step for step in self.in_state(StepState.NOT_STARTED) if done.issuperset(step.after)
        )

    def _ready_to_be_undone(self) -> tuple[Step, ...]:
        """Return the steps on which nothing depends that is not undone yet, once nothing moves forward any more."""
        if self.in_state(StepState.RUNNING):
            return ()
        owed = [step for step in self.steps if step.state is StepState.UNDOING or step.undo_failed]
        standing = {name for step in owed for name in self._before(step)}
        return tuple(
            step for step in self.steps if step.waits_for_undo and step.name not in standing
        )

    def still_to_undo(self) -> tuple[Step, ...]:
        """Return what an undo still has to wait for, or to begin, before the order can end.

        A step on which one depends that could not be undone is none of them: it stays as it is (UND-4).
        """
        stuck = (step for step in self.steps if step.undo_failed)
        stays = {name for step in stuck for name in self._before(step)}
        moving = self.in_state(StepState.RUNNING, StepState.UNDOING)
        return tuple(step for step in moving if step.runs or step.name not in stays)

    def _before(self, step: Step) -> set[str]:
        """Return the steps on which this one depends, directly or not; all of them stand above it."""
        before = set(step.after)
        for each in reversed(self.steps):
            if each.name in before:
                before.update(each.after)
        return before

    @property
    def can_go_on(self) -> bool:
        """Whether anything of the order could start or end, at once or at a time that was chosen."""
        return self.why_not_now() in (None, WhyNot.NOT_YET)

    def why_not_now(self, now: datetime | None = None) -> WhyNot | None:
        """Return why nothing of the order could start or end at this time; None if something could."""
        if self.state.process_state in ENDED:
            return WhyNot.ENDED
        if self.state.is_held:
            return WhyNot.HELD
        if self.running() and not self.ready():
            return WhyNot.RUNS
        not_before = self.state.not_before
        return WhyNot.NOT_YET if now and not_before and not_before > now else None

    def chosen_time(self, now: datetime) -> datetime | None:
        """Return when the first of the steps whose turn it is may begin; None if one may now, or there is none."""
        times = [step.not_before or now for step in self.ready()]
        earliest = min(times, default=now)
        return earliest if earliest > now else None

    def with_steps(self, *changed: Step) -> "Snapshot":
        """Return a snapshot in which these steps replace those of the same name."""
        by_name = {step.name: step for step in changed}
        return replace(self, steps=tuple(by_name.get(step.name, step) for step in self.steps))

    def with_state(self, **changes: Any) -> "Snapshot":
        """Return a snapshot whose state record has these properties replaced."""
        return replace(self, state=replace(self.state, **changes))

    def earliest_complete_by(self) -> datetime | None:
        """Return when the first of the running steps is due; None when none runs."""
        return min((step.complete_by for step in self.running() if step.complete_by), default=None)
