"""Results that did not come in an agent's reply, read and kept as the workflow declares them."""

from collections.abc import Mapping
from typing import Any

from engine.declarations.workflow import StepDefinition, Workflows
from engine.domain import exact_json
from engine.domain.causes import Cause, Code
from engine.domain.errors import InputFault, InvalidError, RefusedError, UnavailableError
from engine.domain.messages import utf16_units
from engine.domain.orders import OrderAggregate
from engine.domain.submitted_order import MAX_KEPT


def definition_of(order: OrderAggregate, step: str, workflows: Workflows) -> StepDefinition:
    """Return the definition of a step.

    Raises `RefusedError` if this app has no such step. Raises `UnavailableError` if only a newer
    version of the app knows the order's workflow.
    """
    name, version = order.workflow, order.workflow_version
    workflow = workflows.find(name, version)
    if workflow is None and not workflows.was_retired(name, version):
        raise UnavailableError(f"only a newer version of the app knows {name} {version}")
    definition = workflow.definition(step) if workflow else None
    if definition is None:
        facts = {"workflow": name, "version": version, "step": step}
        raise RefusedError(Cause(Code.STEP_NOT_IN_APP, facts))
    return definition


def length_of(result: Mapping[str, Any]) -> int:
    """Return the length of a result in the unit of `MAX_KEPT`."""
    return utf16_units(exact_json.write(result))


def kept(definition: StepDefinition, content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a result that are kept.

    Raises `InvalidError` with every fault.
    """
    try:
        found = definition.read_answer(content) if definition.read_answer else content
    except InvalidError as error:
        raise InvalidError(error.within("answer")) from None
    result = {name: value for name, value in found.items() if name in definition.result_fields}
    if (length := length_of(result)) > MAX_KEPT:
        facts = {"length": length, "limit": MAX_KEPT}
        raise InvalidError([InputFault("answer", "answer-too-long", facts)])
    return result


def kept_answer(
    workflows: Workflows, order: OrderAggregate, step: str, content: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the kept fields of an answer to a step of the order.

    Raises `InvalidError` with every fault, and the errors of `definition_of`.
    """
    return kept(definition_of(order, step, workflows), content)
