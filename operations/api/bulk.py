"""An action on many orders: first a dry run, then page by page (OPR-3, OPR-4).

The work index lists the open orders. A bulk action goes through the lists of its action, and acts
on each order like the action on one order, if the order has not changed since a fixed time. So it
needs no record of its own: the orders show what was done, and the same request, sent again, does
the rest.
"""

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from pydantic import ConfigDict

from engine.concurrency import run_all
from engine.decisions import lists
from engine.decisions.actions.action import OperatorCommand
from engine.decisions.actions.arguments import concerns_named_step
from engine.decisions.lists import LIST_OF
from engine.decisions.operator_actions import BY_NAME, AnyAction
from engine.decisions.results import kept_answer
from engine.decisions.transitions import Transition
from engine.declarations.workflow import Workflows
from engine.domain import exact_json, work_index
from engine.domain.errors import (
    ConflictError,
    InputFault,
    InvalidError,
    RefusedError,
    UnavailableError,
    UnknownOrderError,
    UnreadableRowError,
)
from engine.domain.keys import sortable
from engine.domain.messages import decode
from engine.domain.orders import OrderAggregate
from engine.domain.work_index import IndexRow, WorkItemKind, work_items
from engine.http.models import View
from engine.ports import Clock
from engine.storage.orders import OrderStore
from engine.storage.unit_of_work import UnitOfWork
from engine.words.catalogue import text
from engine.words.errors import words_of_error
from operations.api import views
from operations.api.requests import BulkRequest, Where, arguments_body
from operations.api.views import ListedOrder, work_item_page

log = logging.getLogger(__name__)

AT_ONCE = 16
"""The most orders that are changed at the same time."""


class BulkRefusal(View):
    """An order on which the action was refused, or that could not be read or written."""

    model_config = ConfigDict(title="NotDone")
    order_id: str
    why: str


class BulkPage(View):
    """The orders that one call found, and the outcome of each."""

    dry_run: bool
    until: datetime
    """The value of `until` for the next call, and for sending the request again."""
    matching: list[ListedOrder]
    """The orders of this page that match."""
    done: list[str]
    still_waiting: list[str]
    """The orders in `done` that still wait for an operator, because of another step or another
    action."""
    refused: list[BulkRefusal]
    changed: list[str]
    """Orders that changed in the meantime, so that they no longer match."""
    continuation: str | None = None


@dataclass(frozen=True, kw_only=True)
class BulkService:
    """Acts on the matching orders in the lists of an action."""

    unit_of_work: UnitOfWork
    store: OrderStore
    workflows: Workflows
    """The workflows, which check the answers of steps that were done."""
    clock: Clock
    clock_tolerance: timedelta

    async def run(self, request: BulkRequest) -> BulkPage:
        """Act on the orders of a list, page by page.

        The arguments of an action on a step are about this step, so `where` has to name it. Raises
        `InvalidError`.
        """
        until = self._until(request)
        action = BY_NAME[request.action]
        command = None if request.dry_run and not request.arguments else command_of(request)
        if concerns_named_step(action.asks) and request.where.step is None:
            acted_on = text(f"action.{action.name}.done")
            facts = {"acted_on": acted_on}
            raise InvalidError([InputFault("where.step", "step-missing", facts)])
        start, end = _lists(action, until, request.where)
        rows, continuation = await work_item_page(
            self.store, start, end, request.limit, request.continuation
        )
        found = (_matching(row, action, request.where, until) for row in rows)
        # An order that changes between two looks may be listed twice.
        matching = list({order.order_id: order for order in found if order}.values())
        page = BulkPage(
            dry_run=request.dry_run,
            until=until,
            matching=matching,
            done=[],
            still_waiting=[],
            refused=[],
            changed=[],
            continuation=continuation,
        )
        if request.dry_run or command is None:
            return page
        orders, refused = await self._act_on(matching, request, command, until)
        done = [order.order_id for order in orders]
        waiting = [order.order_id for order in orders if order.status_info.waits_for_operator]
        handled = {*done, *(refusal.order_id for refusal in refused)}
        changed = [order.order_id for order in matching if order.order_id not in handled]
        return page.model_copy(
            update={
                "done": done,
                "still_waiting": waiting,
                "refused": refused,
                "changed": changed,
            }
        )

    def _until(self, request: BulkRequest) -> datetime:
        """Return the time before which orders must have changed last.

        It is so far in the past that no machine, even with a slow clock, still writes such a time
        to the lists.
        """
        latest = self.clock() - self.clock_tolerance
        if request.until is None and not request.dry_run:
            raise InvalidError([InputFault("until", "until-missing")])
        if request.until and request.until > latest:
            facts = {"latest": latest.isoformat()}
            raise InvalidError([InputFault("until", "not-over", facts)])
        return request.until or latest

    async def _act_on(
        self,
        matching: list[ListedOrder],
        request: BulkRequest,
        command: OperatorCommand[Any],
        until: datetime,
    ) -> tuple[list[OrderAggregate], list[BulkRefusal]]:
        outcomes = await run_all(
            (self._one(row.order_id, request, command, until) for row in matching), at_most=AT_ONCE
        )
        done = [outcome for outcome in outcomes if isinstance(outcome, OrderAggregate)]
        log.info(
            "operators.bulk_page",
            extra={"action": request.action, "done": len(done), "matching": len(matching)},
        )
        return done, [outcome for outcome in outcomes if isinstance(outcome, BulkRefusal)]

    async def _one(
        self, order_id: str, request: BulkRequest, command: OperatorCommand[Any], until: datetime
    ) -> OrderAggregate | BulkRefusal | None:
        """Act on one order that still matches. Return the new order, or why it was refused."""
        action, where = BY_NAME[request.action], request.where
        kept = partial(kept_answer, self.workflows)

        def decide(order: OrderAggregate, now: datetime) -> Transition | None:
            if not matches(order, action, where, until):
                return None
            return action.act(order, action.checked(order, command, kept), now)

        try:
            decision = await self.unit_of_work.run(order_id, decide)
        except UnknownOrderError:
            return None
        except UnavailableError:
            raise
        except (InvalidError, RefusedError, UnreadableRowError, ConflictError) as refusal:
            return BulkRefusal(order_id=order_id, why=words_of_error(refusal))
        except Exception as fault:  # one order's error does not stop the others
            log.exception("operators.bulk_failed", extra={"order_id": order_id})
            why = text("error.unexpected", error=type(fault).__name__)
            return BulkRefusal(order_id=order_id, why=why)
        return decision.after if isinstance(decision, Transition) else None


def command_of(request: BulkRequest) -> OperatorCommand[Any]:
    """Return the command for each order. Raises `InvalidError` with all faults."""
    action, given = BY_NAME[request.action], dict(request.arguments)
    if "step" in given:
        raise InvalidError([InputFault("arguments.step", "step-belongs-to-where")])
    if "step" in action.asks.model_fields and request.where.step:
        given["step"] = request.where.step
    try:
        arguments = decode(arguments_body(action), exact_json.write(given))
    except InvalidError as error:
        raise InvalidError(error.within("arguments")) from None
    return OperatorCommand(operator=request.operator, note=request.note, arguments=arguments)


def _lists(action: AnyAction, until: datetime, where: Where) -> tuple[str, str]:
    """Return the range of row keys, from start to before end, of the lists of an action.

    The list of the orders in `Error` is sorted by time, which narrows its range.
    """
    first, last = work_index.all_of(min(action.lists))[0], work_index.all_of(max(action.lists))[1]
    if action.lists == (WorkItemKind.ERROR,):
        since = sortable(where.since) if where.since else ""
        return f"{first}{since}", f"{first}{sortable(until)}"
    return first, last


def _matching(
    row: IndexRow, action: AnyAction, where: Where, until: datetime
) -> ListedOrder | None:
    """Return the order in the row if it matches and has not changed since `until`.

    If an order has several rows in the lists of the action, only the row that lists it counts.
    """
    kind = row.key.partition("|")[0]
    if kind not in action.lists or not lists.is_first(row):
        return None
    order = views.listed(row, LIST_OF[WorkItemKind(kind)])
    if order.in_list != LIST_OF[WorkItemKind(kind)] and order.in_list in map(
        LIST_OF.get, action.lists
    ):
        return None
    at = order.updated_at
    in_time = at is None or (at < until and (where.since is None or where.since <= at))
    return order if in_time and where.fits(order) else None


def matches(order: OrderAggregate, action: AnyAction, where: Where, until: datetime) -> bool:
    """Whether the order, in its present state, would match in the lists of the action."""
    start, end = _lists(action, until, where)
    items = work_items(order, order.updated_at, order.derived.ready_since)
    rows = lists.index_rows(order, items)
    in_range = (row for key, row in rows.items() if start <= key < end)
    return any(_matching(row, action, where, until) for row in in_range)
