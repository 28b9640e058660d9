"""Cancel an order that is not finished: every step that was ever tried is undone (OPR-4, UND-1)."""

from datetime import datetime

from engine.decisions.actions.action import NoArguments, OperatorAction, OperatorCommand
from engine.decisions.drafts import NextVersion, next_version
from engine.domain.causes import Cause, Code
from engine.domain.events import ActionTaken
from engine.domain.orders import InError, OrderAggregate, Processed
from engine.domain.work_index import WorkItemKind
from engine.features.external_events.steps import cancel_requests

OPERATOR, CUSTOMER = "operator", "customer"
"""The parties that may cancel an order."""


class Cancel(OperatorAction[NoArguments]):
    """Request the undo of the order."""

    name = "cancel"
    rank = 50
    is_irreversible = True
    lists = (WorkItemKind.ERROR,)
    asks = NoArguments

    def why_not(self, order: OrderAggregate, now: datetime) -> Cause | None:
        return why_not_cancelled(order)

    def apply(
        self, order: OrderAggregate, command: OperatorCommand[NoArguments], now: datetime
    ) -> NextVersion:
        return cancelled(order, OPERATOR, command.note, now)


def why_not_cancelled(order: OrderAggregate) -> Cause | None:
    if isinstance(order.state, Processed):
        return Cause(Code.PROCESSED_ALREADY)
    if order.is_over:
        return Cause(Code.UNDONE_ALREADY)
    if order.is_undo:
        has_stopped = isinstance(order.state, InError)
        return Cause(Code.UNDO_REQUESTED_ALREADY, {"has_stopped": has_stopped})
    passed = [step.name for step in order.passed_pivots()]
    return Cause(Code.PIVOT_PASSED, {"steps": passed}) if passed else None


def cancelled(order: OrderAggregate, by: str, note: str, now: datetime) -> NextVersion:
    """Request the undo, regardless of the order's state.

    Agents that have a request reply first, or their attempts expire. Until then, a scheduler that
    handles the order keeps it (SCH-12).
    """
    without_requests, ended = cancel_requests(order)
    after = without_requests.request_undo(Cause(Code.CANCELLED, {"by": by}))
    taken = ActionTaken(action=Cancel.name, note=note)
    return next_version(order, after, now, (taken, *ended))


ACTION = Cancel()
