"""What operators see, as it goes over the wire, lists page by page. Nothing here shows personal data."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Annotated, Any, TypeVar

from pydantic import AliasGenerator, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel, to_pascal

from core.agenda import AgendaRow
from core.business import Payload
from core.changes import HistoryEntry
from core.errors import InvalidError
from core.happenings import as_data
from core.life import Direction, Outcome, ProcessState, StepState
from core.orders import OnFailure, Priority, Snapshot
from entrypoints.models import View
from stores.orders import OrderStore

Listed = TypeVar("Listed")


class StepView(View):
    """One step of an order."""

    name: str
    capability: str
    agent: str
    after: list[str]
    """The steps that have to be done before."""
    state: StepState
    complete_by: datetime | None
    not_before: datetime | None
    attempts: int
    failure_count: int
    threshold: int
    on_failure: OnFailure
    cooldowns: int
    undoable: bool
    reason: str | None
    result: dict[str, Any] | None


class EntryView(View):
    """One line of an order's history."""

    at: datetime
    actor: str
    event: str
    detail: str
    """What happened in words."""
    happened: list[dict[str, Any]]
    """Each of the things that happened as an object: `what` it was, and its fields."""


class StateView(View):
    """The state record, with the documented properties first."""

    order_id: str
    locked_by: str | None
    complete_by: datetime | None
    process_state: ProcessState
    failure_count: int
    direction: Direction
    outcome: Outcome | None
    reason: str | None
    priority: Priority
    workflow: str
    workflow_version: int
    version: int
    waits_since: datetime
    not_before: datetime | None
    updated_at: datetime
    situation: str
    """As the vocabulary explains it."""
    held_by: str | None
    held_because: str | None
    held_since: datetime | None


class OrderView(StateView):
    """Everything about one order but who the customer is (OPR-1)."""

    placed_at: datetime
    payload: dict[str, Any]
    """What was submitted, without personal data."""
    steps: list[StepView]
    history: list[EntryView]
    actions: list[str]
    """What an operator can do with the order as it is."""


def order_view(
    order: Snapshot, payload: Payload, history: Iterable[HistoryEntry], actions: Iterable[str]
) -> OrderView:
    """Return everything about an order but personal data (OPR-1)."""
    return OrderView(
        **dict(StateView.model_validate(order.state)),
        placed_at=order.order.placed_at,
        payload=dict(payload.erased(order.order.payload)),
        steps=[StepView.model_validate(step) for step in order.steps],
        history=[_entry(each) for each in history],
        actions=list(actions),
    )


def _entry(entry: HistoryEntry) -> EntryView:
    return EntryView(
        at=entry.at,
        actor=entry.actor,
        event=entry.event,
        detail=entry.detail,
        happened=as_data(entry.happened),
    )


class ListedOrder(View):
    """What a list shows of an order: what its agenda row holds."""

    model_config = ConfigDict(
        extra="ignore",
        alias_generator=AliasGenerator(validation_alias=to_pascal, serialization_alias=to_camel),
    )

    order_id: str
    process_state: ProcessState
    failure_count: int
    priority: Priority
    workflow: str
    situation: str
    """As the vocabulary explains it."""
    outcome: Outcome | None = None
    failed_steps: Annotated[list[str], BeforeValidator(str.split)] = Field(default_factory=list)
    reason: str | None = None
    updated_at: datetime | None
    """Null if its row cannot be read."""


def listed(row: AgendaRow, state: str) -> ListedOrder:
    """Return what this list shows of an order; if its row cannot be read, that."""
    try:
        return ListedOrder.model_validate({**row.data, "OrderId": row.order_id})
    except ValidationError:
        return ListedOrder(
            order_id=row.order_id,
            process_state=_state_of(state),
            failure_count=0,
            priority=Priority.NORMAL,
            workflow="unknown",
            situation=state.lower(),
            reason=f"row {row.key} cannot be read: {row.fault or 'it is no order of a list'}",
            updated_at=None,
        )


def _state_of(name: str) -> ProcessState:
    """Return the state of the orders in this list; some lists have orders in whatever state."""
    return ProcessState(name) if name in list(ProcessState) else ProcessState.PENDING


class OrderList(View):
    """One page of orders, the longest waiting first."""

    orders: list[ListedOrder]
    continuation: str | None = None
    """Where the next page begins; null on the last one."""


class FoundOrders(View):
    """The orders whose ids begin so, the oldest first."""

    orders: list[StateView]
    unreadable: list[str]
    """Those of them that nobody can read: *explain* says why."""
    more: bool
    """Whether there are more: give more of the id."""


class Acted(View):
    """What was done to an order."""

    http_status = 202  # what follows from it is done later
    order_id: str
    status: str


def cut(
    found: Sequence[Listed], limit: int, key: Callable[[Listed], str]
) -> tuple[Sequence[Listed], str | None]:
    """Return one page of what was found, which is one more than that if there are more, and where the next begins."""
    return found[:limit], key(found[limit - 1]) if len(found) > limit else None


async def agenda_page(
    store: OrderStore, start: str, end: str, limit: int, continuation: str | None
) -> tuple[Sequence[AgendaRow], str | None]:
    """Return one page of what is owed in all buckets from `start` to `end`, oldest first, and where the next begins.

    Raises `InvalidError` if that page cannot have said so.
    """
    if continuation:
        if not start <= continuation < end:
            raise InvalidError(["continuation: expected what the page before said"])
        start = f"{continuation} "
    pages = await store.agendas(start, end, limit + 1)
    rows = sorted((row for page in pages for row in page), key=lambda row: row.key)
    return cut(rows, limit, lambda row: row.key)
