"""Results that did not come by an agent's reply, read and kept as the workflow declares them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from engine.decisions.operator_actions import OperatorCommand, step_to_settle
from engine.declarations.workflow import StepDefinition, Workflows
from engine.domain.errors import InvalidError, RefusedError, UnavailableError
from engine.domain.messages import json_text
from engine.domain.orders import OrderAggregate
from engine.domain.submitted_order import MAX_KEPT


def definition_of(order: OrderAggregate, step: str, workflows: Workflows) -> StepDefinition:
    """Return the definition of a step; raises `RefusedError` if this app has none.

    Raises `UnavailableError` if only a newer version of the app knows the order's workflow.
    """
    name, version = order.workflow, order.workflow_version
    workflow = workflows.find(name, version)
    if workflow is None and not workflows.was_retired(name, version):
        raise UnavailableError(f"only a newer version of the app knows {name} {version}")
    definition = workflow.definition(step) if workflow else None
    if definition is None:
        raise RefusedError(f"{name} version {version} has no step {step} in this app")
    return definition


def kept(definition: StepDefinition, content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a result that are kept; raises `InvalidError` with every fault."""
    try:
        found = definition.read_answer(content) if definition.read_answer else content
    except InvalidError as error:
        raise InvalidError([f"answer.{fault}" for fault in error.faults]) from None
    result = {name: value for name, value in found.items() if name in definition.result_fields}
    if (length := len(json_text(result))) > MAX_KEPT:
        raise InvalidError([f"answer: it has {length} characters; it can have {MAX_KEPT}"])
    return result


def checked(
    order: OrderAggregate, command: OperatorCommand, workflows: Workflows
) -> OperatorCommand:
    """Return the request with the answer of its step as it is kept, if the step was done (OPR-12).

    Raises `InvalidError` with every fault, `RefusedError` if no such step is in doubt, and as
    `definition_of` does.
    """
    if not command.was_done:
        return command
    step = step_to_settle(order, command.step)
    definition = definition_of(order, step.name, workflows)
    return replace(command, answer=kept(definition, command.answer or {}))
