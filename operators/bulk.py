"""One action on many orders: a dry run first, then page by page (OPR-3, OPR-4).

The orders in `Error` are listed in the agenda by the time at which they went there. A bulk action goes through that
list up to a fixed time and acts on each order as on a single one, if it still is as the list said. So it needs no
record of its own: what was done shows in the orders, and the same request again does the rest.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from core import agenda
from core.agenda import Kind
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
from core.orders import ProcessState, Snapshot
from entrypoints.models import View
from operators import rules, views
from operators.requests import BulkRequest, SkipRequest, Where
from operators.service import OperatorService
from operators.views import ListedOrder, agenda_page

log = logging.getLogger(__name__)

AT_ONCE = 16

Action = Callable[[Snapshot, datetime], Change]


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
    """Acts on the orders in `Error` that are meant."""

    orders: OperatorService

    async def run(self, request: BulkRequest) -> BulkPage:
        """Resubmit, skip a step of, or cancel many orders in Error, page by page; raises `InvalidError`."""
        until = self._until(request)
        start, end = _listed_until(until, request.where)
        rows, continuation = await agenda_page(self.orders.store, start, end, request.limit, request.continuation)
        listed = [views.listed(row, ProcessState.ERROR) for row in rows]
        meant = [order for order in listed if request.where.fits(order)]
        done, refused = ([], []) if request.dry_run else await self._act_on(meant, request, until)
        handled = {*done, *(each.order_id for each in refused)}
        return BulkPage(
            dry_run=request.dry_run,
            until=until,
            matching=meant,
            done=done,
            refused=refused,
            changed=[] if request.dry_run else [each.order_id for each in meant if each.order_id not in handled],
            continuation=continuation,
        )

    def _until(self, request: BulkRequest) -> datetime:
        """Return up to which time to act: none that a machine with a slow clock could still write into the list."""
        latest = self.orders.clock() - self.orders.acting.clock_tolerance
        if request.until is None and not request.dry_run:
            raise InvalidError(["until: a dry run says up to which time to act; name it"])
        if request.until and request.until > latest:
            raise InvalidError([f"until: expected a time that is over, {latest.isoformat()} at the latest"])
        return request.until or latest

    async def _act_on(
        self, meant: list[ListedOrder], request: BulkRequest, until: datetime
    ) -> tuple[list[str], list[NotDone]]:
        action = _action_of(request)
        outcomes = await run_all(
            (self._one(each.order_id, action, request.where, until) for each in meant), at_most=AT_ONCE
        )
        done = [outcome for outcome in outcomes if isinstance(outcome, str)]
        log.info("operators.bulk_page", extra={"action": request.action, "done": len(done), "meant": len(meant)})
        return done, [outcome for outcome in outcomes if isinstance(outcome, NotDone)]

    async def _one(self, order_id: str, action: Action, where: Where, until: datetime) -> str | NotDone | None:
        """Act on one order, if it is still meant; None if it is not."""

        def decide(order: Snapshot, now: datetime) -> Change | None:
            return action(order, now) if meant_by(order, where, until) else None

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


def _action_of(request: BulkRequest) -> Action:
    skipping = SkipRequest(operator=request.operator, note=request.note, step=request.where.step)
    actions: Mapping[str, Action] = {
        "resubmit": lambda order, now: rules.resubmit(order, request, now),
        "skip": lambda order, now: rules.skip(order, skipping, now),
        "cancel": lambda order, now: rules.cancel(order, request, now),
    }
    return actions[request.action]


def _listed_until(until: datetime, where: Where) -> tuple[str, str]:
    """Row-key range [from, to) of the orders that went to `Error` before that time, and not too early."""
    first, _ = agenda.all_of(Kind.ERROR)
    return f"{first}{sortable(where.since)}" if where.since else first, f"{first}{sortable(until)}"


def meant_by(order: Snapshot, where: Where, until: datetime) -> bool:
    """Whether the list would show the order, as it is now, among those that are meant."""
    start, end = _listed_until(until, where)
    rows = [row for key, row in agenda.obligations(order).items() if start <= key < end]
    return any(where.fits(views.listed(row, ProcessState.ERROR)) for row in rows)
