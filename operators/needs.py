"""Whether an order can go on without what a step would have answered.

We ask the workflow itself: the requests of the steps that are still to come are made, with results that note who looks
at them. So no workflow has to declare what it needs, and none can declare it wrongly.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from core.orders import Snapshot, Step, StepState
from core.workflow import StepDefinition, Workflow

OVER = (StepState.COMPLETED, StepState.SKIPPED)


class _Noting(Mapping[str, Mapping[str, Any]]):
    """Results that remember whether that of one step was asked for, by whatever means."""

    def __init__(self, results: Mapping[str, Mapping[str, Any]], watched: str) -> None:
        self._results = results
        self._watched = watched
        self.asked = False

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        self.asked |= name == self._watched
        return self._results[name]

    def __iter__(self) -> Iterator[str]:
        self.asked = True  # who looks at all of them looks at this one too
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)


def who_needs(order: Snapshot, step: Step, workflow: Workflow) -> list[str]:
    """Return the steps still to come whose requests are made from this step's result."""
    to_come = [each.name for each in order.steps if each.name != step.name and each.state not in OVER]
    return [name for name in to_come if _needs(order, step, workflow.definition(name), workflow)]


def _needs(order: Snapshot, step: Step, definition: StepDefinition | None, workflow: Workflow) -> bool:
    if definition is None:
        return True  # its workflow was changed meanwhile, so nobody can tell
    results = _Noting({each.name: _result(each, workflow) for each in order.steps}, step.name)
    try:
        definition.request(order.order, results)
    except Exception:  # noqa: BLE001 - a workflow may raise anything
        return True  # it does not work with stand-ins, so nobody can tell
    return results.asked


def _result(step: Step, workflow: Workflow) -> Mapping[str, Any]:
    """Return what the step answered, or as long as it has not, a stand-in for what is kept of it."""
    definition = workflow.definition(step.name)
    return step.result if step.result is not None else dict.fromkeys(definition.keeps if definition else (), "")
