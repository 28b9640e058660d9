"""The records of an order: the order itself, its state, its steps (pattern.md, 2).

All records are immutable; a transition makes new ones with `dataclasses.replace`. All times are in
UTC.
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
from engine.domain.causes import Cause
from engine.words import words_of


class Priority(StrEnum):
    """The priority of an order: high ones are claimed first (SCH-11)."""

    HIGH = "high"
    NORMAL = "normal"


class OnFailure(StrEnum):
    """The rule for an order when one of its steps has reached its failure threshold (SUP-3)."""

    ERROR = "error"
    """The order waits for an operator; completed steps stay completed."""
    UNDO = "undo"
    """The whole order is undone (UND-1)."""
    COOLDOWN = "cooldown"
    """The step cools down and is retried, up to a limit; then the order waits for an operator."""
    GO_ON = "go-on"
    """The step is skipped, and the order goes on without it."""


MAX_KEPT = 10_000
"""Maximum length, as JSON, of the result that a step keeps; a row takes 32 Ki characters."""

ERASED = "erased"
"""The text in place of erased personal data."""

OUTSIDE = "outside"
"""The capability of a step that asks no agent: somebody outside answers, or its time is up."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """The order as it was submitted; except for an erasure it never changes."""

    order_id: str
    placed_at: AwareDatetime
    payload: Mapping[str, Any]
    """A JSON object that only the business understands."""
    not_before: AwareDatetime | None = None
    """The time before which none of its steps begins, as it was submitted (SUB-9)."""
    submission_digest: str
    """The digest of what was submitted besides the payload, such as the priority (SUB-3).

    A repeated message is compared with it, since an operator may have changed the state.
    """
    key_rows: tuple[str, ...] = ()
    """The row keys of its business keys as they were written.

    So an app that knows another model of the payload removes the rows too.
    """
    more: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """Columns that a newer version of the app has added, written back unchanged (FLT-12)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OrderState:
    """The state record with the documented properties, and those that this system adds."""

    order_id: str
    workflow: str
    workflow_version: int
    process_state: ProcessState = ProcessState.PENDING
    locked_by: str | None = None
    complete_by: AwareDatetime | None = None
    failure_count: int = 0
    version: int = 1
    """The number of transitions; the submission is the first."""
    priority: Priority = Priority.NORMAL
    waits_since: AwareDatetime
    """The time since which the order has waited: its place in the queue, and its age.

    While the order waits for a time that the workflow or an operator chose, it is that time, which
    is still to come: such a wait is no delay.
    """
    not_before: AwareDatetime | None = None
    """The time before which no step can start, if it is in the future: a chosen one, or a pause."""
    updated_at: AwareDatetime
    direction: Direction = Direction.FORWARD
    outcome: Outcome | None = None
    cause: Cause | None = None
    """Why the order is undone, or has ended."""
    held_by: str | None = None
    """The operator who holds the order: none of its steps starts until it is released."""
    held_because: str | None = None
    held_since: AwareDatetime | None = None
    reply_to: str | None = None
    agenda: tuple[str, ...] = field(default=(), compare=False)
    """The row keys of the order's obligations as they were written; empty for a new order.

    The keys follow from the other fields, but another version of the app may derive other keys.
    """
    more: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """As in `Order`."""

    @property
    def reason(self) -> str | None:
        """The cause in words."""
        return words_of(self.cause) if self.cause else None

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
        """The order's state as people see it; nobody holds one that awaits an answer (ANS-1)."""
        found = situation_of(
            self.process_state,
            self.outcome,
            self.direction,
            failed_before=self.failure_count > 0,
            is_held=self.is_held,
        )
        is_free = self.process_state is ProcessState.PROCESSING and self.locked_by is None
        under_way = (Situation.PROCESSING, Situation.AGAIN)
        return Situation.AWAITING if is_free and found in under_way else found

    @property
    def meaning(self) -> Meaning:
        """The meaning of that situation."""
        return MEANINGS[self.situation]


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One workflow step, with a copy of its rules, so that the supervisor needs no workflow."""

    name: str
    title: str = ""
    """What operators read beside the name; empty for the name alone."""
    capability: str
    """The capability that the step needs; one or several agents offer it (AGT-10)."""
    agent: str
    """The agent of the last attempt."""
    provider: str | None = None
    """The provider that alone may know the key of this round (AGT-3); None if none does.

    None does before the first attempt of the round, for a step that is answered from outside, and
    for a restored step that one of several may have.
    """
    timeout: timedelta
    """How long one attempt may take."""
    threshold: int
    """The step is given up once `failure_count` reaches this number."""
    on_failure: OnFailure
    goes_on: bool = False
    """Whether the order goes on without the step, once that has failed for good (SCH-13)."""
    pivot: bool = False
    """Whether the order cannot be undone by itself any more once the step may be done (UND-6)."""
    unjudged: bool = False
    """Whether its definition says when it is needed or begins, and has not been asked (SCH-14)."""
    after: tuple[str, ...] = ()
    """The steps that have to be done before this one."""
    uses: tuple[str, ...] = ()
    """The steps without whose results its request cannot be made."""
    personal: tuple[str, ...] = ()
    """The fields of its result that are personal data; only answers from outside have some."""
    right: str | None = field(default=None, repr=False)
    """What the link to answer it carries, which is a secret (ANS-6); None without a link."""
    undoable: bool = False
    """Whether the step has an effect to undo once it was done."""
    late_effect_window: timedelta = timedelta()
    """How long after its timeout a call may still take effect (UND-2).

    It is zero for a service that refuses undone keys.
    """
    cooldown: timedelta = timedelta()
    """With the rule `cooldown`: how long the step waits after it has reached its threshold."""
    max_cooldowns: int = 0
    """With the rule `cooldown`: how many there are before the step is given up."""
    cooldowns: int = 0
    """How often the step has cooled down."""
    fingerprint: str = ""
    """The fingerprint of the definition that the order started with, to detect a later change."""
    state: StepState = StepState.NOT_STARTED
    complete_by: AwareDatetime | None = None
    """The time at which the running attempt, to do or to undo the step, is up."""
    settled_at: AwareDatetime | None = None
    """The time after which no attempt to do the step can take effect (UND-2).

    It is None if the service refuses undone keys.
    """
    not_before: AwareDatetime | None = None
    """The earliest time at which the waiting step may start, to be done or undone."""
    retry_by: AwareDatetime | None = None
    """The time by which its next attempt should be over, once a supervisor asked for one (SUP-3).

    It is None unless the step waits for that attempt.
    """
    attempts: int = 0
    """The number of attempts, which never shrinks: it distinguishes stale replies."""
    failure_count: int = 0
    uncounted: int = 0
    """The number of its last attempts, one after another, that counted as no failure (SCH-16).

    The next attempt begins after a pause that grows with them.
    """
    cause: Cause | None = None
    """Why the last attempt came to nothing, or why the step is failed or skipped.

    A step that an operator skipped has none.
    """
    result: Mapping[str, Any] | None = None
    """The agent's answer, which an undo needs too."""
    in_doubt: bool = False
    """Whether an attempt ended without an answer, so that its effect is unknown (UND-2).

    What the service has accepted is not in doubt for that: see `effect_unknown`.
    """
    answer_by: AwareDatetime | None = None
    """When the service has to have done what it accepted; None if no final answer is due."""
    round: int = 0
    """The number of the round, whose attempts share an idempotency key (AGT-3)."""
    refused_for_good: bool = False
    """Whether the service has refused the round, and would refuse its key again."""
    key_known_until: AwareDatetime | None = None
    """Until when the service knows the key of what it may have done; None if it never forgets."""
    for_operator: bool = False
    """Whether the failure did not come from the service: an operator decides, not `on_failure`."""
    more: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """As in `Order`, for the column `Steps`."""

    @property
    def reason(self) -> str | None:
        """The cause in words."""
        return words_of(self.cause) if self.cause else None

    @property
    def runs(self) -> bool:
        """Whether an attempt to do or to undo the step is under way."""
        return self.complete_by is not None and self.state in (StepState.RUNNING, StepState.UNDOING)

    @property
    def waits(self) -> bool:
        """Whether an answer from outside is awaited, so that no agent works on it (ANS-1)."""
        return self.runs and self.capability == OUTSIDE

    @property
    def started_at(self) -> datetime | None:
        """The time at which the running attempt was recorded and its request issued."""
        return self.complete_by and self.complete_by - self.timeout

    @property
    def waits_for_undo(self) -> bool:
        """Whether the step has to be undone, and no attempt to do so is under way."""
        return self.state is StepState.UNDOING and self.complete_by is None

    @property
    def effect_unknown(self) -> bool:
        """Whether the step is in doubt, or accepted by its service without a final answer yet."""
        return self.in_doubt or self.answer_by is not None

    @property
    def effects_final_at(self) -> datetime | None:
        """The time after which no call of the step takes effect; None if none is known.

        Until then a late call may (UND-2), or the service may do what it accepted (AGT-11).
        """
        return max(filter(None, (self.settled_at, self.answer_by)), default=None)

    @property
    def undo_failed(self) -> bool:
        """Whether the step may have an effect that could not be undone.

        If a service refuses to do the step, and then to undo it, there is no such effect.
        """
        return (
            self.state is StepState.FAILED
            and self.undoable
            and (self.in_doubt or self.result is not None)
        )

    @property
    def skipped_as_done(self) -> bool:
        """Whether an operator skipped the step, which says that it was done.

        What is skipped otherwise has a cause.
        """
        return self.state is StepState.SKIPPED and self.cause is None

    @property
    def may_be_done(self) -> bool:
        """Whether the step was done, or may have been; while it is being done it may be."""
        done = self.state in (StepState.COMPLETED, StepState.RUNNING)
        return done or self.skipped_as_done or self.effect_unknown

    @property
    def pauses(self) -> bool:
        """Whether its date, if it has one, is a pause between two attempts, and no chosen time."""
        return self.uncounted > 0 and self.answer_by is None

    def expired(self, now: datetime, tolerance: timedelta) -> bool:
        """Whether the complete-by time plus the clock tolerance has passed (SUP-2, SCH-6)."""
        return self.runs and self.complete_by is not None and now > self.complete_by + tolerance


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """One order as it was loaded, with the ETag under which it may be changed."""

    order: Order
    state: OrderState
    steps: tuple[Step, ...]
    etag: str | None = None
    """The ETag of the state row, which every transition replaces; None for a new order."""

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

    def at_work(self) -> tuple[Step, ...]:
        """Return the steps that agents are doing or undoing."""
        return tuple(step for step in self.running() if not step.waits)

    def with_deadline(self) -> tuple[Step, ...]:
        """Return the running steps that fall due.

        While the order is held, no answer from outside does: its release moves the deadline
        (OPR-7).
        """
        return self.at_work() if self.state.is_held else self.running()

    def overdue(self, now: datetime, tolerance: timedelta) -> tuple[Step, ...]:
        """Return the steps whose time is up, so that a supervisor gives them back (SUP-2)."""
        return tuple(step for step in self.with_deadline() if step.expired(now, tolerance))

    def awaited(self) -> tuple[Step, ...]:
        """Return the steps for which an answer from outside is awaited."""
        return tuple(step for step in self.steps if step.waits)

    def needs(self) -> str | None:
        """Return the capability that the order waits for, and which names its claim lane.

        None means that the claim needs no agent: it ends the order, or begins to wait for an answer
        from outside. A scheduler that claims the order decides by the steps themselves.
        """

        def turn(step: Step) -> tuple[datetime, bool]:
            return step.not_before or self.state.waits_since, step.capability != OUTSIDE

        first = min(self.ready(), key=turn, default=None)
        return None if first is None or first.capability == OUTSIDE else first.capability

    def waiting(self) -> tuple[Step, ...]:
        """Return the steps that wait for an attempt, ready or not.

        After a failure for good none does on the way forward (SCH-12).
        """
        if self.state.direction is Direction.UNDO:
            return tuple(step for step in self.steps if step.waits_for_undo)
        return () if self.in_state(StepState.FAILED) else self.in_state(StepState.NOT_STARTED)

    def ready(self) -> tuple[Step, ...]:
        """Return the steps that may be done or undone next, also before their chosen time.

        An order that is held has none. An answer from outside may come before its turn, so all
        steps before one have to be done, and not only those right before it.
        """
        if self.state.is_held:
            return ()
        if self.state.direction is Direction.UNDO:
            return self._ready_to_be_undone()
        if self.in_state(StepState.FAILED):  # no new step starts (SCH-12)
            return ()
        done = {step.name for step in self.in_state(*DONE)}
        return tuple(
            step
            for step in self.in_state(StepState.NOT_STARTED)
            if done.issuperset(self._before(step))
        )

    def _ready_to_be_undone(self) -> tuple[Step, ...]:
        """Return the steps whose undo may begin; none while a step still runs."""
        if self.in_state(StepState.RUNNING):
            return ()
        owed = [step for step in self.steps if step.state is StepState.UNDOING or step.undo_failed]
        needed = set[str]().union(*map(self._before, owed))
        return tuple(step for step in self.steps if step.waits_for_undo and step.name not in needed)

    def _before(self, step: Step) -> set[str]:
        """Return the steps on which this one depends, directly or not; all are defined above it."""
        before = set(step.after)
        for each in reversed(self.steps):
            if each.name in before:
                before.update(each.after)
        return before

    @property
    def can_go_on(self) -> bool:
        """Whether a claim could start a step or end the order, now or at a chosen time."""
        return self.why_not_now() in (None, WhyNot.NOT_YET)

    def why_not_now(self, now: datetime | None = None) -> WhyNot | None:
        """Return why a claim cannot start a step or end the order then; None if it can."""
        if self.state.process_state in ENDED:
            return WhyNot.ENDED
        if self.state.is_held:
            return WhyNot.HELD
        # After a failure no answer from outside is awaited any more (SCH-12).
        undo = self.state.direction is Direction.UNDO
        has_failed = not undo and self.in_state(StepState.FAILED)
        if (self.at_work() if has_failed else self.running()) and not self.ready():
            return WhyNot.RUNS
        not_before = self.state.not_before
        return WhyNot.NOT_YET if now and not_before and not_before > now else None

    def passed_pivots(self) -> tuple[Step, ...]:
        """Return the steps by which the order is past its point of no return (UND-6)."""
        return tuple(step for step in self.steps if step.pivot and step.may_be_done)

    def begins_at(self, step: Step) -> datetime | None:
        """Return the time before which the step does not start; None if it may start now.

        The order's own time holds for every step, and for none of its undo (SUB-9).
        """
        forward = self.state.direction is Direction.FORWARD
        times = (step.not_before, self.order.not_before if forward else None)
        return max(filter(None, times), default=None)

    def chosen_time(self, now: datetime) -> datetime | None:
        """Return when the first ready step may begin; None if one may now, or none is ready."""
        times = [self.begins_at(step) or now for step in self.ready()]
        earliest = min(times, default=now)
        return earliest if earliest > now else None

    @property
    def is_pausing(self) -> bool:
        """Whether the order waits for a pause between two attempts, and for no chosen time.

        Such a wait is a delay: the order keeps its place in the queue and its age (SCH-16).
        """
        until = self.state.not_before
        return until is not None and any(
            step.pauses and self.begins_at(step) == until for step in self.ready()
        )

    def with_steps(self, *changed: Step) -> "Snapshot":
        """Return a snapshot in which these steps replace those of the same name."""
        by_name = {step.name: step for step in changed}
        return replace(self, steps=tuple(by_name.get(step.name, step) for step in self.steps))

    def with_state(self, **changes: Any) -> "Snapshot":
        """Return a snapshot whose state record has these properties replaced."""
        return replace(self, state=replace(self.state, **changes))

    # The verbs of the order. All else in its state follows, in `core.changes.transition`.

    def requeued(self) -> "Snapshot":
        """Return the order in `Pending`, for any scheduler to claim."""
        return self.with_state(process_state=ProcessState.PENDING, outcome=None)

    def resumed(self) -> "Snapshot":
        """Return an order that had ended, in `Pending` with a fresh failure count (OPR-3)."""
        afresh = (replace(step, retry_by=None) for step in self.steps if step.retry_by)
        return self.with_steps(*afresh).requeued().with_state(failure_count=0, cause=None)

    def ended(self, outcome: Outcome, cause: Cause | None) -> "Snapshot":
        """Return the order in `Error`, with this end and cause."""
        return self.with_state(process_state=ProcessState.ERROR, outcome=outcome, cause=cause)

    def put_on_hold(self, by: str, because: str, since: datetime) -> "Snapshot":
        """Return the order with the hold of an operator (OPR-7)."""
        return self.with_state(held_by=by, held_because=because, held_since=since)

    def released(self) -> "Snapshot":
        """Return the order without a hold."""
        return self.with_state(held_by=None, held_because=None, held_since=None)

    def earliest_complete_by(self) -> datetime | None:
        """Return the complete-by time of the first running step to be due; None if none runs."""
        return min((step.complete_by for step in self.running() if step.complete_by), default=None)

    def latest_retry_by(self) -> datetime | None:
        """Return the latest `retry_by` of the steps that are retried; None if none is (SUP-3)."""
        return max((step.retry_by for step in self.waiting() if step.retry_by), default=None)
