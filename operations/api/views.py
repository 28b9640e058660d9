"""The operators' views of orders, as the API returns them, without personal data."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    AliasGenerator,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel, to_pascal

from engine.decisions.lists import state_in, status_in, summary
from engine.decisions.operator_actions import possible, possible_at
from engine.decisions.transitions import HistoryEntry
from engine.declarations.business import Payload
from engine.domain import exact_json
from engine.domain.causes import Cause, Code, cause_in
from engine.domain.deadlines import DeadlineState, WhenLate
from engine.domain.errors import InputFault, InvalidError
from engine.domain.events import Action, ActionTaken, HistoryEvent, UndoRequested, UnknownEvent
from engine.domain.history import name_of, read_events, to_data
from engine.domain.keys import key_in, made_at
from engine.domain.orders import OrderAggregate
from engine.domain.states import STATES, LateEffectsPossible, State, Wait
from engine.domain.statuses import Direction, Outcome, ProcessState, StepState
from engine.domain.steps import Step
from engine.domain.submitted_order import OnFailure, Priority
from engine.domain.work_index import IndexRow
from engine.features.external_events.decide import why_closed
from engine.features.external_events.steps import without_personal_data
from engine.http.models import View
from engine.storage.orders import OrderStore
from engine.words.catalogue import text
from engine.words.causes import words_of
from engine.words.history import in_words, words_of_event
from operations.api.vocabulary import ACCEPTED

WAITS = (*(state for state in STATES if issubclass(state, Wait)), LateEffectsPossible)
"""The states in which a step waits. The last one belongs to an undo."""

MAX_SHOWN = 200
"""The most characters of a step's last answer in a list."""

Listed = TypeVar("Listed")


def _names(states: Iterable[type[State]]) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "enum": [state.__name__ for state in states]})


class StepStateView(View):
    """The state of a step."""

    name: str
    state: StepState
    exact_state: Annotated[str, _names(STATES)]
    """The exact state of the step. Several exact states can have the same `state`."""
    wait: Annotated[str, _names(WAITS)] | None
    """Why the next attempt to do or undo the step has not started; null if there is no such
    attempt."""


class StepView(StepStateView):
    """A step of an order."""

    title: str
    """The title that the author gave the step; may be empty."""
    capability: str
    agent: str
    after: list[str]
    """The steps that have to be done first."""
    complete_by: datetime | None
    not_before: datetime | None
    attempts: int
    key_generation: int
    """The number of the idempotency key that its attempts share, from 0."""
    failure_count: int
    threshold: int
    on_failure: OnFailure
    optional: bool
    """Whether the order continues without the step if the step fails."""
    pivot: bool
    """Whether the step is a point of no return: once it may be done, the order is not undone by
    itself."""
    cooldowns: int
    undoable: bool
    reason: str | None
    result: dict[str, Any] | None
    """The part of the answer that is kept, without personal data."""
    effects_final_at: datetime | None
    """The time after which no call of the step can take effect; null if this time is unknown."""
    takes_answer: bool
    """Whether the step accepts an external event now."""
    actions: list[str]
    """The actions that an operator can take on this step now."""


class EntryView(View):
    """An entry of an order's history."""

    at: datetime
    actor: str
    event: str
    detail: str
    """What happened, in words."""
    events: list[dict[str, Any]]
    """Each event with its name, `event`, its fields, and its cause in words as `reason`."""


class StateView(View):
    """The state record, with the documented properties first."""

    order_id: str
    locked_by: str | None
    complete_by: datetime | None
    process_state: ProcessState | Literal["Accepted"]
    """`Accepted` while the order is only in the queue. No recorded order has this state."""
    failure_count: int
    direction: Direction
    outcome: Outcome | None
    reason: str | None
    priority: Priority
    workflow: str
    workflow_version: int
    version: int
    ready_since: datetime
    not_before: datetime | None
    due_by: datetime | None
    """The deadline of the order; null if its workflow has none."""
    when_late: WhenLate | None
    """What happens if the order is still open at its deadline."""
    deadline_state: DeadlineState | None
    updated_at: datetime
    situation: str
    """The status, which the vocabulary explains."""
    held_by: str | None
    held_because: str | None
    held_since: datetime | None


class OrderView(StateView):
    """Everything about one order except personal data (OPR-1)."""

    placed_at: datetime
    payload: dict[str, Any]
    """The submitted payload. Personal data is shown as `hidden`, or as `erased` after its erasure.
    """
    undone_because: str | None
    """Why the order is being undone, or was undone; null otherwise."""
    hides: bool
    """Whether there is personal data that an operator may ask to see."""
    erased: bool
    """Whether an operator has erased the personal data."""
    keys: list[str]
    """The business keys by which the order is found."""
    steps: list[StepView]
    history: list[EntryView]
    actions: list[str]
    """The actions that an operator can take on the order now."""


def state_view(order: OrderAggregate) -> StateView:
    derived, hold, deadline = order.derived, order.hold, order.deadline
    return StateView(
        order_id=order.order_id,
        locked_by=derived.locked_by,
        complete_by=derived.complete_by,
        process_state=order.process_state,
        failure_count=order.failures,
        direction=order.direction,
        outcome=order.outcome,
        reason=words_of(order.cause) if order.cause else None,
        priority=order.priority,
        workflow=order.workflow,
        workflow_version=order.workflow_version,
        version=order.version,
        ready_since=derived.ready_since,
        not_before=derived.not_before,
        due_by=deadline and deadline.due_by,
        when_late=deadline and deadline.when_late,
        deadline_state=deadline and deadline.state,
        updated_at=order.updated_at,
        situation=order.status,
        held_by=hold and hold.by,
        held_because=hold and hold.note,
        held_since=hold and hold.since,
    )


def order_view(
    order: OrderAggregate, payload: Payload, history: Iterable[HistoryEntry], now: datetime
) -> OrderView:
    """Return everything about an order except personal data (OPR-1)."""
    entries, submitted = list(history), order.submitted.payload
    events = list(chain.from_iterable(entry.events for entry in entries))
    return OrderView(
        **dict(state_view(order)),
        placed_at=order.submitted.placed_at,
        payload=dict(payload.hidden(submitted)),
        undone_because=_undone_because(events),
        hides=hides(submitted, payload),
        erased=any(name_of(event) == "erased" for event in events),
        keys=[key_in(row) for row in order.submitted.key_rows],
        steps=[_step(order, step, now) for step in order.steps],
        history=[_entry(entry) for entry in entries],
        actions=possible(order, now),
    )


def _undone_because(events: Iterable[HistoryEvent]) -> str | None:
    """Return why an order is being undone. The reason of a failed undo does not say it."""
    reason = None
    for event in events:
        match event:
            case UndoRequested():
                reason = words_of_event(event)
            case ActionTaken(action=Action.CANCEL):
                reason = text("order.cancelled", note=words_of_event(event))
    return reason


def hides(submitted: Mapping[str, Any], payload: Payload) -> bool:
    return bool(payload.erased(submitted) != submitted)


def accepted_view(order_id: str, placed_at: datetime) -> OrderView:
    """Return what is known about an order that is accepted but not recorded yet."""
    return OrderView(
        order_id=order_id,
        locked_by=None,
        complete_by=None,
        process_state="Accepted",
        failure_count=0,
        direction=Direction.FORWARD,
        outcome=None,
        reason=None,
        priority=Priority.NORMAL,
        workflow="unknown",
        workflow_version=0,
        version=0,
        ready_since=placed_at,
        not_before=None,
        due_by=None,
        when_late=None,
        deadline_state=None,
        updated_at=placed_at,
        situation=ACCEPTED,
        held_by=None,
        held_because=None,
        held_since=None,
        placed_at=placed_at,
        payload={},
        undone_because=None,
        hides=False,
        erased=False,
        keys=[],
        steps=[],
        history=[],
        actions=[],
    )


def step_state_view(step: Step) -> StepStateView:
    return StepStateView(
        name=step.name,
        state=step.pattern_state,
        exact_state=type(step.state).__name__,
        wait=type(step.wait).__name__ if step.wait else None,
    )


def _step(order: OrderAggregate, step: Step, now: datetime) -> StepView:
    rules, counts = step.rules, step.counts
    shown = without_personal_data(step).result
    return StepView(
        **dict(step_state_view(step)),
        title=rules.title,
        capability=rules.capability,
        agent=step.agent,
        after=list(rules.after),
        complete_by=step.complete_by,
        not_before=_not_before(order, step, now),
        attempts=counts.attempts,
        key_generation=step.key.generation if step.key else 0,
        failure_count=counts.failures,
        threshold=rules.threshold,
        # Its own field says that the order goes on without the step.
        on_failure=OnFailure.ERROR if rules.on_failure is OnFailure.CONTINUE else rules.on_failure,
        optional=rules.on_failure is OnFailure.CONTINUE,
        pivot=rules.pivot,
        cooldowns=counts.cooldowns,
        undoable=rules.undoable,
        reason=words_of(step.cause) if step.cause else None,
        result=None if shown is None else dict(shown),
        effects_final_at=step.effects_final_at,
        takes_answer=step.is_external and why_closed(order, step) is None,
        actions=possible_at(order, step, now),
    )


def _not_before(order: OrderAggregate, step: Step, now: datetime) -> datetime | None:
    """Return the earliest start of the step.

    For a step not started, this includes the order's own time.
    """
    starts_at = order.starts_at(step)
    is_to_be_done = step.pattern_state is StepState.NOT_STARTED
    return starts_at if is_to_be_done and starts_at and starts_at > now else step.not_before


def _entry(entry: HistoryEntry) -> EntryView:
    return EntryView(
        at=entry.at,
        actor=entry.actor,
        event=entry.event,
        detail=in_words(entry.events),
        events=list(_events(entry.events)),
    )


def _events(events: Sequence[HistoryEvent]) -> Iterator[dict[str, Any]]:
    """Yield the events as data, each with its name, and with its cause in words."""
    known = [event for event in events if not isinstance(event, UnknownEvent)]
    for event, data in zip(known, to_data(known), strict=True):
        cause = data.get("cause")
        reason = {"reason": words_of(cause_in(cause))} if cause else {}
        yield data | {"event": name_of(event)} | reason


class ListedOrder(View):
    """An order in a list, from its index row."""

    model_config = ConfigDict(
        extra="ignore",
        alias_generator=AliasGenerator(validation_alias=to_pascal, serialization_alias=to_camel),
    )

    order_id: str
    in_list: Annotated[str | None, Field(validation_alias="List", exclude=True)] = None
    """The list that contains the order. None if another row lists it."""
    process_state: ProcessState
    failure_count: int
    priority: Priority
    workflow: str
    situation: str
    """The status, which the vocabulary explains."""
    outcome: Outcome | None = None
    step: str | None = None
    """The step at which an open order is. If there are several, it is the step that failed most
    often."""
    attempt: int | None = None
    """The number of the attempt at that step, from 1, of `threshold`."""
    threshold: int | None = None
    last_answer: str | None = None
    """Why the last attempt at that step ended without a result."""
    complete_by: datetime | None = None
    """When an answer is due, if the step is running."""
    not_before: datetime | None = None
    """The earliest time of the next attempt, if the order waits for one."""
    due_by: datetime | None = None
    """The deadline of the order, if its workflow has one."""
    placed_at: datetime | None = None
    """When the id of the order was made."""
    failed_steps: Annotated[list[str], BeforeValidator(str.split)] = Field(default_factory=list)
    agents: Annotated[list[str], BeforeValidator(str.split)] = Field(default_factory=list)
    """The agents that have a request of the order and have not answered it."""
    waits_for: Annotated[list[str], BeforeValidator(str.split)] = Field(default_factory=list)
    """The steps that wait for an external event."""
    failed_agents: Annotated[list[str], BeforeValidator(str.split)] = Field(default_factory=list)
    """The agents of those steps."""
    cause: str | None = None
    """The name of the group of its cause, such as `refused: card declined`."""
    reason: str | None = None
    updated_at: datetime | None
    """The time of the last change. Null if the row cannot be read."""


def found(order: OrderAggregate) -> ListedOrder:
    """Return an order in any state as a list shows it."""
    return _listed(order.order_id, summary(order))


def listed(row: IndexRow, state: str) -> ListedOrder:
    """Return an order as this list shows it, or a placeholder for an unreadable row."""
    try:
        return _listed(row.order_id, row.data)
    except ValueError:  # also of pydantic
        return ListedOrder(
            order_id=row.order_id,
            process_state=state_in(state),
            failure_count=0,
            priority=Priority.NORMAL,
            workflow="unknown",
            situation=status_in(state),
            reason=words_of(_unreadable(row)),
            updated_at=None,
            placed_at=made_at(row.order_id),
            in_list=state,
        )


def _unreadable(row: IndexRow) -> Cause:
    if row.fault:
        return Cause(Code.ROW_UNREADABLE, {"row": row.key, "error": row.fault})
    return Cause(Code.ROW_NOT_OF_LIST, {"row": row.key})


def _listed(order_id: str, shown: Mapping[str, Any]) -> ListedOrder:
    """Return the order. Raises ValueError if its columns cannot be read."""
    last_answer = _words_in(shown.get("LastAnswer"))
    own = {
        "OrderId": order_id,
        "PlacedAt": made_at(order_id),
        "Reason": _words_in(shown.get("Reason")),
        "LastAnswer": last_answer and last_answer[:MAX_SHOWN],
    }
    return ListedOrder.model_validate({**shown, **own})


def _words_in(column: Any) -> str | None:
    """Return the words for the cause in a column. Raises ValueError if it holds no cause."""
    if column is None:
        return None
    try:
        return words_of(cause_in(exact_json.read(column)))
    except (LookupError, TypeError, AttributeError) as fault:
        raise ValueError("expected a cause") from fault


class OrderList(View):
    """A page of orders: the longest waiting first, or in the sequence of their keys."""

    orders: list[ListedOrder]
    continuation: str | None = None
    """The value that returns the next page. Null on the last page."""


class ActedView(View):
    """An operator's action on one order, or on all orders."""

    model_config = ConfigDict(
        extra="ignore",
        alias_generator=AliasGenerator(validation_alias=to_pascal, serialization_alias=to_camel),
    )

    at: datetime
    order_id: str | None
    """Null for an action on all orders, such as an export."""
    operator: Annotated[str, Field(validation_alias="Actor")]
    event: str
    detail: str

    @classmethod
    def of(cls, row: IndexRow) -> Self:
        """Return the action in the row. Raises ValueError if it cannot be read."""
        data = row.data
        facts = exact_json.read(str(data.get("Data")))
        detail = in_words(read_events(str(data.get("Event")), str(data.get("Detail")), facts))
        return cls.model_validate({**data, "OrderId": row.order_id or None, "Detail": detail})


class AuditList(View):
    """One page of the operators' actions, the newest first."""

    entries: list[ActedView]
    unreadable: list[str]
    """The keys of the rows on this page that cannot be read."""
    continuation: str | None = None


class FoundOrders(View):
    """The orders whose ids or keys begin with the given text, the oldest first."""

    orders: list[StateView]
    unreadable: list[str]
    """Matching orders that cannot be read. *explain* says why."""
    more: bool
    """Whether there are more orders. Then enter more of the id."""


class Revealed(View):
    """The personal data of an order's customer."""

    order_id: str
    payload: dict[str, Any]
    """The complete submitted payload."""


class Count(View):
    """A number of rows, which may be incomplete."""

    count: int
    at_least: bool
    """Whether there are more rows, which were not counted."""


class Acted(View):
    """The outcome of an action on an order."""

    http_status = 202  # its consequences come later
    order_id: str
    status: str


def cut(
    found: Sequence[Listed], limit: int, key: Callable[[Listed], str]
) -> tuple[Sequence[Listed], str | None]:
    """Return the first `limit` items, and the key after which the next page begins.

    The key is None if there are no more items. `found` needs at least one item more than `limit` if
    there are more.
    """
    has_more = len(found) > limit
    return found[:limit], key(found[limit - 1]) if has_more else None


async def work_item_page(
    store: OrderStore, start: str, end: str, limit: int, continuation: str | None
) -> tuple[Sequence[IndexRow], str | None]:
    """Return a page of the work index of all buckets, and where the next page begins.

    The page has rows with keys from `start` to before `end`, sorted by key. Raises `InvalidError`
    if `continuation` is outside this range.
    """
    if continuation:
        if not start <= continuation < end:
            raise InvalidError([InputFault("continuation", "unknown-page")])
        start = f"{continuation} "
    pages = await store.work_items_by_bucket(start, end, limit + 1)
    rows = sorted(chain.from_iterable(pages), key=lambda row: row.key)
    return cut(rows, limit, lambda row: row.key)
