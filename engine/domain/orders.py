"""The record of an order: its own facts, its steps, and the verbs that change it.

No verb sets a value that follows from the steps. `derive.py` computes these values once for each
transition.
"""

# The pattern in an hour, 3 of 23: the record of an order

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import Any, TypeVar

from pydantic import AwareDatetime

from engine.domain import verbs
from engine.domain.causes import Cause, Code
from engine.domain.deadlines import Deadline, DeadlineState
from engine.domain.errors import AppError
from engine.domain.states import (
    AtWork,
    AwaitingExternalEvent,
    Failed,
    Finished,
    Running,
    Startable,
    State,
    UnderWay,
    UndoFailed,
    Undoing,
    UndoPending,
)
from engine.domain.statuses import (
    STATUS_INFO,
    Direction,
    NotClaimable,
    OrderStatus,
    Outcome,
    ProcessState,
    StatusInfo,
    status_of,
)
from engine.domain.steps import Step, StepIn
from engine.domain.submitted_order import Order, Priority

# The state of an order


@dataclass(frozen=True, slots=True)
class Pending:
    """Any scheduler may claim the order when its turn and its start time have come."""


@dataclass(frozen=True, slots=True)
class Processing:
    """A scheduler handles the order, or the order waits for an external event."""

    instance: str
    """The scheduler that started the last attempt."""


@dataclass(frozen=True, slots=True)
class Processed:
    """Every step of the order is finished."""


@dataclass(frozen=True, slots=True)
class InError:
    """The order failed, or it was undone completely or in part."""

    outcome: Outcome


OrderState = Pending | Processing | Processed | InError

PROCESS_STATE: Mapping[type[OrderState], ProcessState] = {
    Pending: ProcessState.PENDING,
    Processing: ProcessState.PROCESSING,
    Processed: ProcessState.PROCESSED,
    InError: ProcessState.ERROR,
}
"""The name of each state in rows and in the API."""


class OrderEvent(StrEnum):
    """The events that change the state of an order."""

    CLAIM = "claim"
    REQUEUE = "requeue"
    COMPLETE = "complete"
    END = "end"
    REQUEST_UNDO = "request-undo"
    RESUME = "resume"


ORDER_TABLE: Mapping[OrderEvent, frozenset[tuple[type[OrderState], type[OrderState]]]] = {
    OrderEvent.CLAIM: frozenset({(Pending, Processing), (Processing, Processing)}),
    OrderEvent.REQUEUE: frozenset({(Pending, Pending), (Processing, Pending)}),
    OrderEvent.COMPLETE: frozenset({(Pending, Processed), (Processing, Processed)}),
    OrderEvent.END: frozenset({(Pending, InError), (Processing, InError)}),
    OrderEvent.REQUEST_UNDO: frozenset(
        {(Pending, Pending), (Processing, Pending), (Processing, Processing), (InError, Pending)}
    ),
    OrderEvent.RESUME: frozenset({(InError, Pending)}),
}
"""The allowed pairs of states, before and after each event."""


class InvalidOrderTransitionError(AppError):
    """The event is not allowed in the state of the order."""

    def __init__(self, event: OrderEvent, before: OrderState) -> None:
        super().__init__(f"{event} is not allowed for an order in {type(before).__name__}")
        self.event, self.before = event, before


# The record


@dataclass(frozen=True, slots=True)
class Hold:
    """An operator's hold. No step of the order starts until an operator releases it (OPR-7)."""

    by: str
    note: str
    since: AwareDatetime


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkItem:
    """A row of the work index: work that is due for an order, or the list in which the order is."""

    key: str
    not_before: AwareDatetime | None = None
    """The time at which a claim may start the step, if it is in the future."""
    is_first: bool = True
    """Whether the row may list the order: it is the first of its kind, and the kind has a list."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Derived:
    """The values that follow from the rest of the order. Only `derive.py` makes them."""

    complete_by: AwareDatetime | None = None
    """The first complete-by time of the running attempts. For a pending order, the complete-by time
    of the next attempts. None if no attempt has one."""
    locked_by: str | None = None
    """The scheduler that handles the order, or None while no agent has a request of the order."""
    not_before: AwareDatetime | None = None
    """The time at which the first step may start, if it is in the future."""
    ready_since: AwareDatetime
    """The time from which the order's age in the queue counts. If a start time was chosen, it is
    that time."""
    work_items: tuple[WorkItem, ...] = ()


T_co = TypeVar("T_co", bound=State, covariant=True)


@dataclass(frozen=True, kw_only=True)
class OrderAggregate:
    """An order with its steps, as loaded under one ETag."""

    submitted: Order
    workflow: str
    workflow_version: int
    reply_to: str | None = None
    priority: Priority = Priority.NORMAL
    deadline: Deadline | None = None
    """The deadline, if the workflow sets one. An undo has no deadline (SCH-17)."""
    direction: Direction = Direction.FORWARD
    state: OrderState = field(default_factory=Pending)
    cause: Cause | None = None
    """The cause of the failure or of the undo, or None if the order neither failed nor is
    undone."""
    hold: Hold | None = None
    failures: int = 0
    """The number of recoveries with a counted failure since the last fresh start."""
    steps: tuple[Step, ...]
    version: int = 1
    """The number of transitions. The submission is the first."""
    updated_at: AwareDatetime
    derived: Derived
    etag: str | None = field(default=None, compare=False)
    """The ETag under which the order may be changed, or None for a new order."""
    unknown: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """Columns that a newer version of the app has added. They are written back unchanged
    (FLT-12)."""

    # Its steps

    @property
    def order_id(self) -> str:
        return self.submitted.order_id

    def step(self, name: str) -> Step | None:
        return next((step for step in self.steps if step.name == name), None)

    def in_state(self, state: type[T_co]) -> tuple[StepIn[T_co], ...]:
        """Return the steps in this state, or in a state of this group."""
        # A list is cheaper than a generator, and a decision comes here a dozen times.
        found = [step for step in self.steps if isinstance(step.state, state)]
        return tuple(found)  # type: ignore[arg-type]  # a step has the type of its state

    def has_any(self, *states: type[State]) -> bool:
        return bool([step for step in self.steps if isinstance(step.state, states)])

    def overdue(self, now: datetime, tolerance: timedelta) -> tuple[StepIn[UnderWay], ...]:
        """Return the steps whose complete-by time plus the tolerance has passed (SUP-2)."""
        return tuple(step for step in self.with_deadline() if step.is_expired(now, tolerance))

    def with_deadline(self) -> tuple[StepIn[UnderWay], ...]:
        """Return the steps that a supervisor checks after their complete-by time (SUP-2)."""
        # While the order is on hold, no external event can be late: the release moves its deadline
        # (OPR-7).
        return self.in_state(AtWork) if self.hold else self.in_state(UnderWay)

    def passed_pivots(self) -> tuple[Step, ...]:
        """Return the pivots that were done or may have been done (UND-6)."""
        return tuple(step for step in self.steps if step.rules.pivot and step.may_be_done)

    @cached_property
    def dependencies(self) -> Mapping[str, frozenset[str]]:
        """The steps before each step, directly or indirectly."""
        return _closure(tuple((step.name, step.rules.after) for step in self.steps))

    # What it is

    @property
    def process_state(self) -> ProcessState:
        """The name of the state in rows and in the API."""
        return PROCESS_STATE[type(self.state)]

    @property
    def outcome(self) -> Outcome | None:
        """The outcome of an order in `Error`, or None in any other state."""
        return self.state.outcome if isinstance(self.state, InError) else None

    @property
    def status(self) -> OrderStatus:
        """The state as people see it.

        An order that waits only for external events has a status of its own (ANS-1).
        """
        found = status_of(
            self.process_state,
            self.outcome,
            self.direction,
            failed_before=self.failures > 0,
            is_held=self.hold is not None,
        )
        is_handled = self.derived.locked_by is not None
        is_free = isinstance(self.state, Processing) and not is_handled
        under_way = (OrderStatus.PROCESSING, OrderStatus.AGAIN)
        return OrderStatus.AWAITING if is_free and found in under_way else found

    @property
    def status_info(self) -> StatusInfo:
        return STATUS_INFO[self.status]

    @property
    def is_undo(self) -> bool:
        """Whether the steps are being undone, or were undone."""
        return self.direction is Direction.UNDO

    @property
    def has_ended(self) -> bool:
        """Whether no scheduler handles the order any more.

        Work may still be due, for example for an operator.
        """
        return isinstance(self.state, Processed | InError)

    @property
    def is_over(self) -> bool:
        """Whether no more work is due for the order."""
        was_undone = isinstance(self.state, InError) and self.state.outcome is Outcome.UNDONE
        return was_undone or isinstance(self.state, Processed)

    @property
    def is_late(self) -> bool:
        """Whether the deadline has passed, and its rule decides what follows (SCH-17)."""
        deadline = self.deadline
        return bool(deadline and deadline.state is DeadlineState.PASSED and not self.is_undo)

    @property
    def is_stopping(self) -> bool:
        """Whether no further step is done: a step failed, or the deadline has passed (SCH-12)."""
        return not self.is_undo and (self.is_late or self.has_any(Failed))

    @property
    def is_finished(self) -> bool:
        return all(isinstance(step.state, Finished) for step in self.steps)

    @property
    def pending_deadline(self) -> Deadline | None:
        """The deadline while the order continues, until a supervisor records that it passed."""
        deadline = self.deadline
        counts = deadline and deadline.is_ahead and not self.is_undo and not self.has_ended
        return deadline if counts else None

    @property
    def attempts_end_by(self) -> datetime | None:
        """The time by which every attempt has to end, or None if the deadline sets none."""
        deadline = self.pending_deadline
        return deadline.due_by if deadline and deadline.cuts_short else None

    # What may start

    @cached_property
    def ready(self) -> tuple[Step, ...]:
        """The steps that may be done or undone next (SCH-10, SCH-12).

        The start times are not considered. `may_start` checks them.

        There are no steps after a supervisor has recorded that the deadline has passed. Before
        that, `may_start` checks the deadline (SCH-17).
        """
        if self.hold:
            return ()
        if self.is_undo:
            return self._ready_to_be_undone()
        if self.is_stopping:
            return ()
        before = self.dependencies
        # All earlier steps have to be finished, and not only the direct ones: an external event may
        # come before its turn.
        finished = {step.name for step in self.in_state(Finished)}
        return tuple(step for step in self.in_state(Startable) if before[step.name] <= finished)

    def _ready_to_be_undone(self) -> tuple[Step, ...]:
        """Return the steps whose undo may start.

        There are none while a step is still being done.
        """
        if self.has_any(Running, AwaitingExternalEvent):
            return ()
        pending = self.in_state(UndoPending)
        later = (*pending, *self.in_state(Undoing), *self.in_state(UndoFailed))
        needed = self._before(later)
        return tuple(step for step in pending if step.name not in needed)

    def still_to_undo(self) -> bool:
        """Return whether a step of the undo is under way or has to start before the order can end.

        A step stays as it is if a step that depends on it could not be undone (UND-4).
        """
        if self.has_any(UnderWay):
            return True
        kept = self._before(self.in_state(UndoFailed))
        return any(step.name not in kept for step in self.in_state(UndoPending))

    def _before(self, steps: Iterable[Step]) -> frozenset[str]:
        before = self.dependencies
        return frozenset().union(*(before[step.name] for step in steps))

    def starts_at(self, step: Step) -> datetime | None:
        """Return the earliest start of the step, or None if no time has to pass.

        The start time of the order applies to each of its steps, but not to its undo (SUB-9).
        """
        own = None if self.is_undo else self.submitted.not_before
        return max(filter(None, (step.not_before, own)), default=None)

    def may_start(self, step: Step, now: datetime) -> bool:
        """Return whether start time and deadline let a ready step start now."""
        return (self.starts_at(step) or now) <= now and not self.is_out_of_time(now)

    def is_out_of_time(self, now: datetime) -> bool:
        """Return whether no step may start any more, because the deadline has passed (SCH-17)."""
        end = self.attempts_end_by
        return end is not None and now >= end

    def next_start(self, now: datetime) -> datetime | None:
        """Return the first start of a ready step, if it is in the future.

        Returns None if a step may start now, or if no step is ready.
        """
        first = min((self.starts_at(step) or now for step in self.ready), default=now)
        return first if first > now else None

    def blocked(self) -> NotClaimable | None:
        """Return the reason why no claim can start a step or end the order, at any time."""
        if self.has_ended:
            return NotClaimable.ENDED
        if self.hold:
            return NotClaimable.HELD
        # After a failure no external event is awaited any more: the claim ends or undoes the order.
        if self.has_any(AtWork if self.is_stopping else UnderWay) and not self.ready:
            return NotClaimable.RUNS
        return None

    def not_claimable(self, now: datetime) -> NotClaimable | None:
        """Return the reason why a scheduler does not claim the order now, or None if it may."""
        not_before = self.derived.not_before
        is_early = not_before is not None and not_before > now
        return self.blocked() or (NotClaimable.NOT_YET if is_early else None)

    # The verbs

    def with_steps(self, *changed: Step) -> "OrderAggregate":
        """Return the order with these steps in place of the steps with the same names."""
        if not changed:
            return self
        by_name = {step.name: step for step in changed}
        return replace(self, steps=tuple(by_name.get(step.name, step) for step in self.steps))

    def claimed_by(self, instance: str) -> "OrderAggregate":
        """Let this scheduler handle the order (SCH-2)."""
        return self._with_state(OrderEvent.CLAIM, Processing(instance))

    def requeue(self) -> "OrderAggregate":
        """Let any scheduler claim the order."""
        return self._with_state(OrderEvent.REQUEUE, Pending())

    def complete(self) -> "OrderAggregate":
        """Set the order to `Processed` (SCH-5)."""
        return self._with_state(OrderEvent.COMPLETE, Processed())

    def end(self, outcome: Outcome, cause: Cause | None) -> "OrderAggregate":
        """Set the order to `Error` (SCH-8, UND-5).

        Raises `InvalidOrderTransitionError` while an attempt is under way (SCH-12).
        """
        if self.has_any(UnderWay):
            raise InvalidOrderTransitionError(OrderEvent.END, self.state)
        return replace(self._with_state(OrderEvent.END, InError(outcome)), cause=cause)

    def request_undo(self, cause: Cause) -> "OrderAggregate":
        """Undo every step that was done or may have been done (UND-1).

        A step that an agent has ends first, and `verbs.request_undo` is applied to it then. Until
        all such steps have ended, a scheduler that handles the order keeps it (SCH-12).
        """
        steps = tuple(
            step if isinstance(step.state, AtWork) else verbs.request_undo(step)
            for step in self.steps
        )
        is_handled = isinstance(self.state, Processing) and self.has_any(AtWork)
        state = self.state if is_handled else Pending()
        after = self._with_state(OrderEvent.REQUEST_UNDO, state)
        return replace(after, steps=steps, direction=Direction.UNDO, cause=cause)

    def resume(self, *fresh: Step) -> "OrderAggregate":
        """Continue after an operator's action, with these steps and a fresh count (OPR-3)."""
        after = self._with_state(OrderEvent.RESUME, Pending()).with_steps(*fresh)
        steps = tuple(map(verbs.without_retry_by, after.steps))
        cause = Cause(Code.UNDO_RESUMED) if self.is_undo else None
        return replace(after, steps=steps, cause=cause, failures=0)

    def put_on_hold(self, hold: Hold) -> "OrderAggregate":
        """Let no step start until the order is released (OPR-7)."""
        return replace(self, hold=hold)

    def release(self) -> "OrderAggregate":
        """Let steps start again (OPR-7)."""
        return replace(self, hold=None)

    def _with_state(self, event: OrderEvent, state: OrderState) -> "OrderAggregate":
        if (type(self.state), type(state)) not in ORDER_TABLE[event]:
            raise InvalidOrderTransitionError(event, self.state)
        return replace(self, state=state)


_Graph = tuple[tuple[str, tuple[str, ...]], ...]


@lru_cache(maxsize=1024)
def _closure(graph: _Graph) -> Mapping[str, frozenset[str]]:
    before: dict[str, frozenset[str]] = {}
    # A step is defined below those that it comes after, so one pass is enough.
    for name, after in graph:
        before[name] = frozenset(after).union(*(before[earlier] for earlier in after))
    return before
