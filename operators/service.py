"""Reads for operators, and their actions: each is written to the state first, messages only wake (OPR-6)."""

import logging
from dataclasses import dataclass, replace

from core import agenda, keys
from core.business import Payload
from core.changes import Change
from core.errors import UnknownOrderError, UnreadableRowError
from core.orders import ProcessState, Snapshot
from core.ports import Clock
from core.workflow import Workflows
from operators import rules, views
from operators.explain import ActingRules, Explanation, explain, unreadable
from operators.requests import OperatorRequest, SkipRequest
from operators.views import FoundOrder, FoundOrders, OrderList, OrderView
from stores.agent_health import AgentHealthLog
from stores.archive import Archive
from stores.orders import OrderStore
from stores.transitions import Decide, Transitions

log = logging.getLogger(__name__)

AGENDA_OF = {
    ProcessState.PENDING: agenda.Kind.PENDING,
    ProcessState.PROCESSING: agenda.Kind.RUNNING,
    ProcessState.ERROR: agenda.Kind.ERROR,
}
"""Where the orders of each open state are listed. Processed ones owe nothing and are found by their id only."""


@dataclass(frozen=True, kw_only=True)
class OperatorService:
    """What an operator sees of orders, and does to one of them."""

    transitions: Transitions
    store: OrderStore
    archive: Archive
    clock: Clock
    workflows: Workflows
    payload: Payload
    acting: ActingRules
    agent_health: AgentHealthLog

    async def probe(self) -> None:
        """Ask the state store for next to nothing; raises `UnavailableError` when it is away."""
        await self.store.agenda(self.store.buckets[0], *agenda.all_of(agenda.Kind.ERROR), limit=1)

    async def list(self, state: ProcessState, limit: int, continuation: str | None) -> OrderList:
        """Return up to `limit` open orders of all buckets, oldest first; `continuation` is the last key seen."""
        start, end = agenda.all_of(AGENDA_OF[state])
        start = max(start, f"{continuation} ") if continuation else start
        pages = await self.store.agendas(start, end, limit + 1)
        rows = sorted((row for page in pages for row in page), key=lambda row: row.key)
        shown = [views.listed(row, state) for row in rows[:limit]]
        return OrderList(
            orders=[order for order in shown if order.process_state is state],
            continuation=rows[limit - 1].key if len(rows) > limit else None,
        )

    async def search(self, beginning: str) -> FoundOrders:
        """Return the first orders whose ids begin so, in any state: one range of one partition."""
        page = await self.archive.oldest(keys.bucket_of(beginning), None, beginning)
        found = [each for each in page.orders if each.order_id.startswith(beginning)]
        return FoundOrders(
            orders=[FoundOrder.model_validate(each.state) for each in found if each.state],
            unreadable=[each.order_id for each in found if each.fault],
            more=page.continuation.startswith(beginning),
        )

    async def load(self, order_id: str) -> Snapshot:
        """Return the order; raises `UnknownOrderError`."""
        order = await self.store.load(order_id)
        if order is None:
            raise UnknownOrderError
        return order

    async def inspect(self, order_id: str) -> OrderView:
        """Return everything about one order, its whole history included; raises `UnknownOrderError`."""
        order = await self.load(order_id)
        actions = rules.possible(order, self.workflows, self.clock())
        return views.order_view(order, self.payload, await self.store.history(order_id), actions)

    async def explain(self, order_id: str) -> Explanation:
        """Return why the order is where it is (OPR-2); raises `UnknownOrderError`."""
        try:
            order, now = await self.load(order_id), self.clock()
        except UnreadableRowError as fault:
            return unreadable(order_id, fault)
        acting = replace(self.acting, agent_health=await self.agent_health.since(now - self.acting.fresh))
        return explain(order, rules.possible(order, self.workflows, now), acting, now)

    async def resubmit(self, order_id: str, request: OperatorRequest) -> None:
        """Let a failed order go on (OPR-3); raises `RefusedError` or `UnknownOrderError`."""
        await self._act(order_id, lambda order, now: rules.resubmit(order, request, now))

    async def skip(self, order_id: str, request: SkipRequest) -> None:
        """Leave out a failed step (OPR-4); raises `RefusedError` or `UnknownOrderError`."""
        await self._act(order_id, lambda order, now: rules.skip(order, request, self.workflows, now))

    async def cancel(self, order_id: str, request: OperatorRequest) -> None:
        """Ask for the undo of an order (OPR-4); raises `RefusedError` or `UnknownOrderError`."""
        await self._act(order_id, lambda order, now: rules.cancel(order, request, now))

    async def _act(self, order_id: str, decide: Decide) -> None:
        decision = await self.transitions.apply(order_id, decide)
        if isinstance(decision, Change):
            log.info("operators.acted", extra={"order_id": order_id, "event": decision.entry.event})
