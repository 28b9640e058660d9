"""The question of an external step and the content of its event, as the workflow declares them."""

from collections.abc import Mapping
from typing import Any

from engine.decisions.requests import results_for
from engine.decisions.results import definition_of, kept
from engine.declarations.workflow import StepDefinition, Workflows
from engine.domain.causes import Cause, Code
from engine.domain.errors import InvalidError, RefusedError
from engine.domain.orders import OrderAggregate
from engine.features.external_events.decide import ExternalEvent


def question(order: OrderAggregate, definition: StepDefinition) -> Mapping[str, Any]:
    """Return the question to the external party.

    Raises `RefusedError` if the workflow cannot make it.
    """
    try:
        return definition.request(order.submitted, results_for(order, definition))
    except Exception as error:
        raise RefusedError(Cause(Code.QUESTION_BROKEN, {"step": definition.name})) from error


def read(
    order: OrderAggregate,
    step: str,
    workflows: Workflows,
    content: Mapping[str, Any] | None,
    refusal: str | None,
) -> ExternalEvent:
    """Return the event with its result as it is kept, or with a refusal instead of a result.

    If the recorded result has the same values, it is returned (ANS-3). Raises `InvalidError` with
    every fault, and the errors of `definition_of`.
    """
    if content is None:
        return ExternalEvent(step=step, refusal=refusal)
    definition = definition_of(order, step, workflows)
    result, found = kept(definition, content), order.step(step)
    recorded = found.result if found else None
    is_same = _is_same(definition, recorded, result)
    return ExternalEvent(step=step, result=recorded if is_same else result)


def _is_same(
    definition: StepDefinition, recorded: Mapping[str, Any] | None, result: Mapping[str, Any]
) -> bool:
    """Return whether the recorded result of a step has the same values as this result."""
    if recorded is None:
        return False
    try:
        # An agent's reply is recorded as its service wrote it, without defaults and with times as
        # text. So it is read like an event.
        return kept(definition, recorded) == result
    except InvalidError:  # it was erased, or recorded by another version of the app
        return False
