"""The operators' queries and actions. Each action is written to the state first (OPR-6)."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import starmap
from typing import Any

from engine.concurrency import run_all
from engine.decisions import lists
from engine.decisions.actions.action import OperatorCommand
from engine.decisions.operator_actions import AnyAction, possible
from engine.decisions.results import kept_answer
from engine.decisions.transitions import HistoryEntry, Note, Transition
from engine.declarations.business import Payload
from engine.declarations.workflow import Workflows
from engine.domain import keys, work_index
from engine.domain.causes import Cause, Code
from engine.domain.errors import InputFault, InvalidError, RefusedError, UnreadableRowError
from engine.domain.events import PersonalDataRevealed
from engine.domain.orders import OrderAggregate
from engine.domain.work_index import IndexRow
from engine.ports import Clock
from engine.storage.agent_health import KEPT, AgentHealthLog
from engine.storage.archive import Archive
from engine.storage.orders import OrderStore
from engine.storage.unit_of_work import UnitOfWork
from engine.words.catalogue import text
from engine.words.errors import words_of_error
from operations.api import views
from operations.api.explain import Explanation, accepted, explain, unreadable
from operations.api.prospects import ActingRules
from operations.api.requests import (
    AuditPage,
    OperatorRequest,
    OrdersPage,
    Search,
)
from operations.api.views import (
    Acted,
    ActedView,
    AuditList,
    FoundOrders,
    ListedOrder,
    OrderList,
    OrderView,
    Revealed,
    cut,
    work_item_page,
)
from operations.api.vocabulary import NOWHERE, OutsideLinks, Vocabulary, vocabulary

log = logging.getLogger(__name__)

MAX_LOOKED_AT = 500
MAX_PAGES = 4
"""The most pages of orders that one call searches.

A page of the answer may be short or even empty without being the last one.
"""


Find = Callable[[str], Awaitable[OrderAggregate | datetime]]
"""Returns an order, or the time of its placement if it is accepted but not recorded yet.

Raises `UnknownOrderError`.
"""


@dataclass(frozen=True, kw_only=True)
class OperatorService:
    """Shows orders to operators, and acts on single orders."""

    unit_of_work: UnitOfWork
    store: OrderStore
    archive: Archive
    clock: Clock
    payload: Payload
    workflows: Workflows
    acting: ActingRules
    agent_health: AgentHealthLog
    find: Find
    links: OutsideLinks = NOWHERE

    async def probe(self) -> None:
        """Read one row from the state store.

        Raises `UnavailableError` if the store is unavailable.
        """
        await self.store.work_items(
            self.store.buckets[0], *work_index.all_of(work_index.WorkItemKind.ERROR), limit=1
        )

    async def list(self, page: OrdersPage) -> OrderList:
        """List open orders, the most urgent first, or ended orders, the newest first.

        Failed and held orders that wait longest are the most urgent. Processing and waiting orders
        are sorted by the complete-by time of their steps, and pending orders by priority, agent and
        age. With a key, list the orders with this key.
        """
        return await (self._of_state(page) if page.key is None else self._of_key(page, page.key))

    async def _of_state(self, page: OrdersPage) -> OrderList:
        found: list[tuple[str, ListedOrder]] = []
        state = page.state or "Error"
        continuation, ends = page.continuation, lists.of_list(state, page.since, page.until)
        looked_at = MAX_LOOKED_AT if page.filters else page.limit
        for _ in range(MAX_PAGES):  # a row may be that of an order of another list
            rows, continuation = await work_item_page(self.store, *ends, looked_at, continuation)
            listed = ((row.key, views.listed(row, state)) for row in rows)
            found += [(key, order) for key, order in listed if page.fits(order)]
            if continuation is None or len(found) >= page.limit:
                break
            looked_at = MAX_LOOKED_AT
        shown, next_one = cut(found, page.limit, lambda pair: pair[0])
        return OrderList(
            orders=[order for _, order in shown], continuation=next_one or continuation
        )

    async def _of_key(self, page: OrdersPage, key: str) -> OrderList:
        """Return orders whose key begins with this text.

        The first page begins with exact matches.
        """
        start, end = keys.business_keys(key)
        # Keys may differ in length, such as 20 and 200, and the shorter one would come last.
        exact: list[str] = []
        if page.continuation is None:
            same = await self.store.key_rows(*keys.same_business_keys(key), page.limit)
            exact = [row for row in same if keys.key_in(row) == key]
        elif start <= page.continuation < end:
            start = f"{page.continuation} "
        else:
            raise InvalidError([InputFault("continuation", "unknown-page")])
        rows = await self.store.key_rows(start, end, page.limit + 1)
        shown, continuation = cut(rows, page.limit, str)
        row_of = {keys.order_keyed(row): row for row in (*exact, *shown)}
        found = await run_all(starmap(self._found, row_of.items()))
        return OrderList(
            orders=[order for order in found if order and page.fits(order)],
            continuation=continuation,
        )

    async def _found(self, order_id: str, row: str) -> ListedOrder | None:
        """Return the order as a list shows it, even if it is unreadable.

        None if it no longer exists.
        """
        try:
            order = await self.store.load(order_id)
        except UnreadableRowError as fault:
            unreadable = IndexRow(key=row, order_id=order_id, fault=words_of_error(fault))
            return views.listed(unreadable, "Error")
        return views.found(order) if order else None

    async def audit(self, page: AuditPage) -> AuditList:
        """List operators' actions on orders, newest first, including views of personal data."""
        ends = f"{work_index.ACTED_PREFIX}", f"{work_index.ACTED_PREFIX}{keys.LAST}"
        rows, continuation = await work_item_page(self.store, *ends, page.limit, page.continuation)
        entries, unreadable = [], []
        for row in rows:
            try:
                entries.append(ActedView.of(row))
            except ValueError:  # also of pydantic
                unreadable.append(row.key)
        return AuditList(entries=entries, unreadable=unreadable, continuation=continuation)

    async def search(self, query: Search) -> FoundOrders:
        """Find orders in any state by the beginning of their ids.

        This reads one range of rows.
        """
        beginning = query.id
        page = await self.archive.oldest(keys.bucket_of(beginning), None, beginning)
        found = [order for order in page.orders if order.order_id.startswith(beginning)]
        return FoundOrders(
            orders=[views.state_view(order.record) for order in found if order.record],
            unreadable=[order.order_id for order in found if order.fault],
            more=page.continuation.startswith(beginning),
        )

    async def inspect(self, order_id: str) -> OrderView:
        """Show an order with its steps and its whole history, if it is recorded.

        Raises `UnknownOrderError`.
        """
        order = await self.find(order_id)
        if isinstance(order, datetime):
            return views.accepted_view(order_id, order)
        # The order may have changed since: no event is shown of which the state knows nothing.
        history = await self.store.history(order_id, order.version)
        return views.order_view(order, self.payload, history, self.clock())

    async def explain(self, order_id: str) -> Explanation:
        """Explain why an order is where it is, who acts next and when.

        Implements OPR-2. Raises `UnknownOrderError`.
        """
        try:
            order, now = await self.find(order_id), self.clock()
        except UnreadableRowError as fault:
            return unreadable(order_id, fault)
        if isinstance(order, datetime):
            return accepted(order_id)
        acting = replace(self.acting, agent_health=await self.agent_health.since(now - KEPT))
        return explain(order, possible(order, now), acting, now)

    async def act(self, action: AnyAction, order_id: str, request: OperatorRequest) -> Acted:
        """Carry out an action on an order (OPR-3, OPR-4).

        Raises `InvalidError`, `RefusedError` or `UnknownOrderError`.
        """
        command, kept = command_of(action, request), partial(kept_answer, self.workflows)
        if isinstance(await self.find(order_id), datetime):
            raise RefusedError(Cause(Code.NOT_RECORDED_YET))

        def decide(order: OrderAggregate, now: datetime) -> Transition:
            return action.act(order, action.checked(order, command, kept), now)

        decision = await self.unit_of_work.run(order_id, decide)
        if isinstance(decision, Transition):
            log.info("operators.acted", extra={"order_id": order_id, "event": decision.entry.event})
        return Acted(order_id=order_id, status=text(f"action.{action.name}.done"))

    async def reveal(self, order_id: str, request: OperatorRequest) -> Revealed:
        """Show the personal data of an order, and record in its history who looked and why (OPR-1).

        The history is written before the data is shown.

        Raises `RefusedError` if there is nothing to show, or `UnknownOrderError`.
        """
        order = await self.find(order_id)
        if isinstance(order, datetime):
            raise RefusedError(Cause(Code.NOT_RECORDED_YET))
        submitted = order.submitted.payload
        if not views.hides(submitted, self.payload):
            raise RefusedError(Cause(Code.NO_PERSONAL_DATA))
        await self.unit_of_work.commit(_looked(order, request, self.clock()))
        log.info("operators.revealed", extra={"order_id": order_id})
        return Revealed(order_id=order_id, payload=dict(submitted))

    async def vocabulary(self) -> Vocabulary:
        """List all states of orders and steps with their words and symbols, and all actions."""
        return vocabulary(self.links)


def _looked(order: OrderAggregate, request: OperatorRequest, now: datetime) -> Note:
    """Return the note that an operator looked at the personal data of an order."""
    actor = f"operator/{request.operator}"
    events = (PersonalDataRevealed(note=request.note),)
    entry = HistoryEntry(at=now, actor=actor, events=events)
    note_id = f"{actor} {keys.sortable(now)}"
    return Note(note_id=note_id, order_id=order.order_id, version=order.version, entry=entry)


def command_of(action: AnyAction, request: OperatorRequest) -> OperatorCommand[Any]:
    """Return the command in a request for the action.

    Its body also holds the action's arguments.
    """
    given = action.asks.model_fields.keys() & request.model_fields_set
    arguments = action.asks(**{name: getattr(request, name) for name in given})
    return OperatorCommand(operator=request.operator, note=request.note, arguments=arguments)
