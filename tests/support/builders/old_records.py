"""Lets tests that build the records of today use functions on the new ones.

It is temporary, and goes with the builders' records of today. Each function named here takes either
kind of record, and returns the kind that it was given. An order that a test itself loads or makes
is one of today.
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial, wraps
from importlib import import_module
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

from core.changes import Change
from core.orders import OrderState, Snapshot
from core.orders import Step as StepToday
from engine.conversion.records import _new_step, old_step, to_new, to_old
from engine.domain.orders import Order
from engine.domain.steps import StepIn

TESTS = str(Path(__file__).parents[2])

FUNCTIONS = (
    "core.actions:Action.act",
    "core.actions:cancel_for_customer",
    "core.actions:possible",
    "core.actions:possible_at",
    "core.actions:step_to_settle",
    "core.actions:why_customer_cannot_cancel",
    "core.alerts:of",
    "core.answers:answered",
    "core.answers:awaiting",
    "core.answers:checked",
    "core.answers:definition_of",
    "core.answers:extended",
    "core.answers:question",
    "core.answers:read",
    "core.answers:reminded",
    "core.answers:why_closed",
    "core.answers:with_new_link",
    "core.changes:Change.obligations",
    "core.changes:Change.seconds",
    "core.changes:amendment",
    "core.links:Links.of",
    "core.links:Links.with_right",
    "core.links:step_of",
    "core.messages:request_id_of",
    "engine.features.key_generations:is_forgotten",
    "engine.features.external_events:without_personal_data",
    "operators.bulk:meant_by",
    "operators.copies:restored",
    "operators.explain:_recovery",
    "operators.explain:explain",
    "operators.explain:what_comes",
    "operators.explain:what_comes_otherwise",
    "operators.retention:erase",
    "operators.views:order_view",
    "scheduler.rules:SchedulerRules.claim",
    "scheduler.rules:SchedulerRules.receive",
    "shop.rules:status",
    "shop.words:of_order",
    "shop.words:of_step",
    "shop.words:trying_again",
    "stores.figures:Tally.count",
    "stores.figures:figures_of",
    "stores.orders:OrderStore.commit",
    "stores.orders:OrderStore.committed",
    "stores.orders:of_change",
    "stores.outbox:notices_of",
    "stores.transitions:Transitions.carry_out",
    "submission.rules:refusal_of",
    "submission.rules:same_submission",
    "supervisor.rules:SupervisorRules.asked_in_vain",
    "supervisor.rules:SupervisorRules.recover",
)

FOR_TESTS = ("stores.orders:OrderStore.load", "submission.rules:new_order")
"""These return records of today where a test calls them itself."""


def new_change(change: Change) -> Change:
    """Return the change with the new records."""
    before, after = _new(change.before), _new(change.after)
    return Change(before=before, after=after, entry=change.entry, messages=change.messages)


def old_change(change: Change, given: Snapshot | None = None) -> Any:
    """Return the change with the records of today; a step that stays keeps the given record."""
    before = given or (to_old(change.before) if change.before else None)
    after: Any = to_old(change.after)
    if before and change.before:
        steps = tuple(
            record if step == was else old_step(step)
            for step, was, record in zip(
                change.after.steps, change.before.steps, before.steps, strict=True
            )
        )
        after = replace(
            before,
            order=change.after.submitted,
            state=replace(after.state, agenda=before.state.agenda),
            steps=steps,
        )
    return replace(change, before=before, after=after)  # type: ignore[arg-type] # of today


def _is_old(value: Any) -> bool:
    if isinstance(value, Change):
        return isinstance(value.after, Snapshot)
    return isinstance(value, Snapshot | StepToday)


def _new(value: Any, order: Any = None) -> Any:
    if isinstance(value, Snapshot):
        return to_new(value)
    if isinstance(value, StepToday):
        return _new_step(value, order.state if order else _NO_ORDER)
    return new_change(value) if isinstance(value, Change) else value


def _old(value: Any, given: Any) -> Any:
    if isinstance(value, Change):
        return old_change(value, given)
    if isinstance(value, Order):
        return to_old(value)
    if isinstance(value, StepIn):
        return old_step(value)
    return tuple(_old(each, given) for each in value) if isinstance(value, tuple) else value


_NO_ORDER = OrderState(
    order_id="",
    workflow="",
    workflow_version=1,
    waits_since=None,  # type: ignore[arg-type]
    updated_at=None,  # type: ignore[arg-type]
)


def _taking_either(function: Any) -> Any:
    @wraps(function)
    def wrapped(*args: Any, **named: Any) -> Any:
        given = [*args, *named.values()]
        if not any(map(_is_old, given)):
            return function(*args, **named)
        order = next((each for each in given if isinstance(each, Snapshot)), None)
        call = partial(
            function,
            *(_new(each, order) for each in args),
            **{name: _new(each, order) for name, each in named.items()},
        )
        return _later(call, order) if iscoroutinefunction(function) else _old(call(), order)

    return wrapped


async def _later(call: Callable[[], Any], order: Any) -> Any:
    return _old(await call(), order)


def as_old(order: Any) -> Any:
    """Return an order of either kind as one of today."""
    return _old(order, None)


def as_new(order: Any) -> Any:
    """Return an order of either kind as a new one."""
    return _new(order)


def _old_for_tests(function: Any) -> Any:
    @wraps(function)
    def wrapped(*args: Any) -> Any:
        if not sys._getframe(1).f_code.co_filename.startswith(TESTS):
            return function(*args)
        call = partial(function, *args)
        return _later(call, None) if iscoroutinefunction(function) else _old(call(), None)

    return wrapped


def let_tests_use_them() -> None:
    """Let each of these functions take the records of today too."""
    for named in FUNCTIONS:
        _wrap(named, _taking_either)
    for named in FOR_TESTS:
        _wrap(named, _old_for_tests)


def _wrap(named: str, wrapper: Any) -> None:
    module, _, path = named.partition(":")
    owner: Any = import_module(module)
    *outer, name = path.split(".")
    for each in outer:
        owner = getattr(owner, each)
    setattr(owner, name, wrapper(getattr(owner, name)))
