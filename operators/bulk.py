"""One action on many orders: a dry run first, then page by page (OPR-3, OPR-4).

The agenda lists the orders that are in `Error`, wait, run, or are held. A bulk action goes through the lists that it
names and acts on each order as on a single one, if that has been as the list said since before a fixed time. So it
needs no record of its own: what was done shows in the orders, and the same request again does the rest.
"""

import logging
from dataclasses import dataclass
from datetime import datetime

from core import agenda
from core.actions import BY_NAME, Action, Asked
from core.agenda import LISTS, AgendaRow, Kind
from core.changes import Change
from core.errors import (
    ConflictError,
    InvalidError,
    RefusedError,
    UnavailableError,
    UnknownOrderError,
    UnreadableRowError,
)
from core.gathering import run_all
from core.keys import sortable
from core.orders import Snapshot
from entrypoints.models import View
from operators import views
from operators.requests import BulkRequest, Where
from operators.service import OperatorService
from operators.views import ListedOrder, agenda_page

log = logging.getLogger(__name__)

AT_ONCE = 16

LIST_OF = {kind: name for name, kind in LISTS.items()}


class NotDone(View):
    """An order on which the action makes no sense, or nobody can act."""

    order_id: str
    why: str


class BulkPage(View):
    """What one call found, and did."""

    dry_run: bool
    until: datetime
    """What to name as `until` in the next call, and when it is all sent again."""
    matching: list[ListedOrder]
    """The orders of this page that are meant."""
    done: list[str]
    refused: list[NotDone]
    changed: list[str]
    """Orders that somebody else changed meanwhile, and that are not meant any more."""
    continuation: str | None = None


@dataclass(frozen=True, kw_only=True)
class BulkService:
    """Acts on the orders that are meant, of the lists that the action names."""

    orders: OperatorService

    async def run(self, request: BulkRequest) -> BulkPage:
        """Act on the orders of a list, page by page; raises `InvalidError`."""
        until = self._until(request)
        action = BY_NAME[request.action]
        start, end = _lists(action, until, request.where)
        rows, continuation = await agenda_page(
            self.orders.store, start, end, request.limit, request.continuation
        )
        found = (_meant(row, action, request.where, until) for row in rows)
        meant = [
            *{order.order_id: order for order in found if order}.values()
        ]  # what waits and runs is listed twice
        done, refused = ([], []) if request.dry_run else await self._act_on(meant, request, until)
        handled = {*done, *(each.order_id for each in refused)}
        return BulkPage(
            dry_run=request.dry_run,
            until=until,
            matching=meant,
            done=done,
            refused=refused,
            changed=[]
            if request.dry_run
            else [each.order_id for each in meant if each.order_id not in handled],
            continuation=continuation,
        )

    def _until(self, request: BulkRequest) -> datetime:
        """Return up to which time to act: none that a machine with a slow clock could still write into the list."""
        latest = self.orders.clock() - self.orders.acting.clock_tolerance
        if request.until is None and not request.dry_run:
            raise InvalidError(["until: a dry run says up to which time to act; name it"])
        if request.until and request.until > latest:
            raise InvalidError(
                [f"until: expected a time that is over, {latest.isoformat()} at the latest"]
            )
        return request.until or latest

    async def _act_on(
        self, meant: list[ListedOrder], request: BulkRequest, until: datetime
    ) -> tuple[list[str], list[NotDone]]:
        outcomes = await run_all(
            (self._one(each.order_id, request, until) for each in meant), at_most=AT_ONCE
        )
        done = [outcome for outcome in outcomes if isinstance(outcome, str)]
        log.info(
            "operators.bulk_page",
            extra={"action": request.action, "done": len(done), "meant": len(meant)},
        )
        return done, [outcome for outcome in outcomes if isinstance(outcome, NotDone)]

    async def _one(
        self, order_id: str, request: BulkRequest, until: datetime
    ) -> str | NotDone | None:
        """Act on one order, if it is still meant; None if it is not."""
        action, where = BY_NAME[request.action], request.where
        asked = Asked(
            operator=request.operator,
            note=request.note,
            step=where.step if action.of_step else None,
        )

        def decide(order: Snapshot, now: datetime) -> Change | None:
            return action.act(order, asked, now) if meant_by(order, action, where, until) else None

        try:
            decision = await self.orders.transitions.apply(order_id, decide)
        except UnknownOrderError:
            return None
        except UnavailableError:
            raise
        except (RefusedError, UnreadableRowError, ConflictError) as refusal:
            return NotDone(order_id=order_id, why=str(refusal))
        except Exception as fault:  # whatever it is, it keeps none of the others
            log.exception("operators.bulk_failed", extra={"order_id": order_id})
            return NotDone(order_id=order_id, why=f"an unexpected error: {type(fault).__name__}")
        return order_id if decision else None


def _lists(action: Action, until: datetime, where: Where) -> tuple[str, str]:
    """Row-key range [from, to) of the lists of an action; the orders in `Error` stand by the time they went there."""
    first, last = agenda.all_of(min(action.lists))[0], agenda.all_of(max(action.lists))[1]
    if action.lists == (Kind.ERROR,):
        return (
            f"{first}{sortable(where.since)}" if where.since else first,
            f"{first}{sortable(until)}",
        )
    return first, last


def _meant(row: AgendaRow, action: Action, where: Where, until: datetime) -> ListedOrder | None:
    """Return what the list shows of an order if it is meant, and has been as it is since before then."""
    kind = row.key.partition("|")[0]
    if kind not in action.lists:
        return None
    order = views.listed(row, LIST_OF[Kind(kind)])
    at = order.updated_at
    in_time = at is None or (at < until and (where.since is None or where.since <= at))
    return order if in_time and where.fits(order) else None


def meant_by(order: Snapshot, action: Action, where: Where, until: datetime) -> bool:
    """Whether the lists of the action would show the order, as it is now, among those that are meant."""
    start, end = _lists(action, until, where)
    rows = (row for key, row in agenda.obligations(order).items() if start <= key < end)
    return any(_meant(row, action, where, until) for row in rows)
