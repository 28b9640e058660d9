"""All actions of operators on an order, and the selection of those that are possible.

Each action is a module of `engine.decisions.actions`.
"""

from collections.abc import Mapping
from datetime import datetime
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from engine.decisions import actions
from engine.decisions.actions import cancel
from engine.decisions.actions.action import OperatorAction
from engine.decisions.transitions import Transition, transition_of
from engine.domain.causes import Cause, Code
from engine.domain.errors import RefusedError
from engine.domain.orders import InError, OrderAggregate
from engine.domain.states import Startable
from engine.domain.statuses import Outcome
from engine.domain.steps import Step

AnyAction = OperatorAction[Any]


def _in_modules() -> tuple[AnyAction, ...]:
    names = (found.name for found in iter_modules(actions.__path__, f"{actions.__name__}."))
    modules = map(import_module, names)
    found = [module.ACTION for module in modules if hasattr(module, "ACTION")]
    return tuple(sorted(found, key=lambda action: (action.rank, action.name)))


ACTIONS = _in_modules()
"""The actions on an order, in the sequence in which they are offered."""
BY_NAME: Mapping[str, AnyAction] = {action.name: action for action in ACTIONS}


def possible(order: OrderAggregate, now: datetime) -> list[str]:
    return [action.name for action in ACTIONS if not action.why_not(order, now)]


def possible_at(order: OrderAggregate, step: Step, now: datetime) -> list[str]:
    sensible = [action for action in ACTIONS if not action.why_not(order, now)]
    return [
        action.name
        for action in sensible
        if any(found.name == step.name for found in action.steps(order, now))
    ]


# The customer's cancel


def why_customer_cannot_cancel(order: OrderAggregate, until: str | None) -> Cause | None:
    """Return the reason why the customer cannot cancel the order, or None if it is possible.

    `until` names the step that must not have started. With None, customers can never cancel.
    """
    if until is None:
        return Cause(Code.CUSTOMERS_NEVER_CANCEL)
    was_undone = isinstance(order.state, InError) and order.state.outcome is Outcome.UNDONE
    if order.is_undo or was_undone:
        return Cause(Code.TAKEN_BACK_ALREADY)
    step = order.step(until)
    if step is None or step.counts.attempts or not isinstance(step.state, Startable):
        return Cause(Code.TOO_LATE_TO_CANCEL)
    if order.passed_pivots():
        return Cause(Code.TOO_LATE_TO_CANCEL)
    return Cause(Code.DONE_ALREADY) if cancel.why_not_cancelled(order) else None


def cancel_for_customer(order: OrderAggregate, until: str | None, now: datetime) -> Transition:
    """Cancel the order for its customer (SUB-8).

    Raises `RefusedError` if the step `until` has started, or if the order cannot be cancelled.
    """
    if why_not := why_customer_cannot_cancel(order, until):
        raise RefusedError(why_not)
    return transition_of(cancel.cancelled(order, cancel.CUSTOMER, "", now), "customer")


# Periodic work

RUNS = ("sweep", "poll", "relay", "stall-detector", "notify", "retention")
"""The periodic work that operators can run by hand (SUP-7)."""
