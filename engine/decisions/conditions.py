"""Evaluation of the condition and the start time of a step when its turn comes (SCH-14, SCH-15)."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

from engine.decisions.drafts import Draft, failure_of
from engine.decisions.requests import Personal, in_workflow, results_for, shown
from engine.declarations.workflow import StepDefinition, WorkflowDefinition, name_of
from engine.domain import verbs
from engine.domain.causes import Cause, Code
from engine.domain.errors import AppError
from engine.domain.events import SkippedByCondition, StepScheduled
from engine.domain.orders import OrderAggregate
from engine.domain.states import ConditionPending
from engine.domain.steps import Step
from engine.domain.submitted_order import Order
from engine.features import conditions

# Tables and calendars can hold these times.
EARLIEST, LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
"""The range of the times at which a step may start."""

Result = TypeVar("Result")


class EvaluationError(AppError):
    """A function of the workflow raised an error, or returned a value of a wrong type."""

    def __init__(self, function: str, error: Exception) -> None:
        self.function, self.error = function, error


def evaluate(draft: Draft, workflow: WorkflowDefinition, personal: Personal) -> Draft:
    """Evaluate each step whose turn has come. A step that is skipped lets other steps follow.

    A step that may start now keeps its state. `met` records the evaluation when the order is
    written.
    """
    for name in [step.name for step in draft.order.in_state(ConditionPending)]:
        step, definition = draft.order.step(name), workflow.definition(name)
        if step is None or definition is None or step not in draft.order.ready:
            continue
        try:
            draft = _evaluated(draft, step, definition)
        except EvaluationError as fault:
            facts = {
                **in_workflow(workflow, name),
                "function": fault.function,
                "error": shown(fault.error, personal()),
            }
            cause = Cause(Code.CONDITION_FAILED, facts)
            failed = verbs.fail(step, cause)
            draft = draft.but(draft.order.with_steps(failed), *failure_of(failed, cause))
    return draft


def met(order: OrderAggregate) -> OrderAggregate:
    """Return the order with each pending condition of a ready step recorded as met."""
    pending = (step for step in order.ready if isinstance(step.state, ConditionPending))
    return order.with_steps(*map(conditions.condition_met, pending))


def _evaluated(draft: Draft, step: Step, definition: StepDefinition) -> Draft:
    order = draft.order
    results = results_for(order, definition)
    condition, start_at = definition.condition, definition.start_at
    if condition and not _call("condition", condition, _is_true, order.submitted, results):
        name = name_of(condition)
        skipped = conditions.skip_by_condition(step, name)
        event = SkippedByCondition(step=step.name, condition=name)
        return draft.but(order.with_steps(skipped), event)
    if refusal := step.cause:  # somebody outside has refused it already (ANS-3)
        refused = verbs.refuse(step, refusal)
        return draft.but(order.with_steps(refused), *failure_of(refused, refusal))
    at = start_at and _call("start_at", start_at, _time, order.submitted, results)
    if start_at and at and at > draft.now:
        scheduled = StepScheduled(step=step.name, until=at, by=name_of(start_at))
        return draft.but(order.with_steps(conditions.schedule(step, at)), scheduled)
    return draft


def _call(
    what: str,
    function: Callable[[Order, Mapping[str, Mapping[str, Any]]], Any],
    read: Callable[[Any], Result],
    order: Order,
    results: Mapping[str, Mapping[str, Any]],
) -> Result:
    """Return the value that a function of the workflow returns.

    Raises `EvaluationError` if the function fails or returns an invalid value.
    """
    try:
        return read(function(order, results))
    except Exception as error:  # any error of a workflow fails its step
        raise EvaluationError(f"{what} {name_of(function)}", error) from error


def _is_true(returned: Any) -> bool:
    if isinstance(returned, bool):
        return returned
    raise TypeError(f"it returned {type(returned).__name__}, not bool")


def _time(returned: Any) -> datetime | None:
    if returned is None:
        return None
    if not isinstance(returned, datetime):
        raise TypeError(f"it returned {type(returned).__name__}, not datetime")
    if returned.tzinfo is None:
        raise TypeError("it returned a time without a time zone")
    if not EARLIEST <= returned < LATEST:
        raise TypeError(f"it returned a time that is not from {EARLIEST:%Y} to {LATEST:%Y}")
    return returned.astimezone(UTC)
