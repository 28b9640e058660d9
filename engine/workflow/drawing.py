"""Draws a workflow as text for Mermaid."""

from collections.abc import Iterator

from engine.declarations.workflow import StepDefinition, WorkflowDefinition, name_of
from engine.domain.submitted_order import OnFailure

ON_FAILURE = {
    OnFailure.ERROR: "",
    OnFailure.UNDO: "on failure: undo the order",
    OnFailure.COOLDOWN: "on failure: cool down",
    OnFailure.CONTINUE: "on failure: continue without it",
}


def mermaid(workflow: WorkflowDefinition) -> str:
    """Draw the workflow as a Mermaid flow chart, with one box for each step.

    An arrow leads to a step from each step that it comes after.
    """
    return "\n".join(["flowchart LR", *_lines(workflow)])


def _lines(workflow: WorkflowDefinition) -> Iterator[str]:
    for step in workflow.steps:
        yield f'  {step.name}["{"<br/>".join(filter(None, _words(step)))}"]'
    for step in workflow.steps:
        yield from (f"  {before} --> {step.name}" for before in step.after)


WHOLE_DAYS = ", 0:00:00"


def _words(step: StepDefinition) -> Iterator[str]:
    yield f"<b>{step.name}</b>"
    if step.is_external:
        yield f"external event within {str(step.timeout).removesuffix(WHOLE_DAYS)}"
    else:
        yield f"{step.capability}: {step.operation}"
    if step.compensation:
        yield f"undo: {step.compensation}"
    yield f"condition: {name_of(step.condition)}" if step.condition else ""
    yield f"start_at: {name_of(step.start_at)}" if step.start_at else ""
    yield "point of no return" if step.pivot else ""
    yield ON_FAILURE[step.on_failure]
