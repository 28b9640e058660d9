"""Judges a step when its turn comes: whether it is needed, and when it begins (SCH-14, SCH-15)."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

from core.errors import AppError
from core.happenings import Happening, NotNeeded
from core.life import StepState
from core.orders import Order, Snapshot, Step
from core.workflow import Results, StepDefinition, name_of


class JudgingError(AppError):
    """A function of the workflow cannot judge a step."""

    def __init__(self, what: str, cause: Exception) -> None:
        super().__init__(what)
        self.cause = cause


def results_for(order: Snapshot, definition: StepDefinition) -> Results:
    """Return what the functions of a step get: the results of the steps that it uses."""
    used = (each for each in order.steps if each.name in definition.uses)
    return {each.name: each.result for each in used if each.result is not None}


def is_its_turn(order: Snapshot, step: Step, now: datetime) -> bool:
    """Whether the step has to be judged now: it may begin, and has not been judged."""
    has_come = step.not_before is None or step.not_before <= now
    return bool(step.unjudged) and has_come and step in order.ready()


def judge(
    order: Snapshot, step: Step, definition: StepDefinition
) -> tuple[Step, tuple[Happening, ...]]:
    """Return the step as it is judged, and what came of it; raises `JudgingError`.

    If nothing comes of it, since the step may begin now, it is returned as it was.
    """
    results = results_for(order, definition)
    when = definition.when
    if when is None or _answer("when", when, bool, order.order, results):
        return step, ()
    name = name_of(when)
    skipped = replace(step, state=StepState.SKIPPED, unjudged=None, reason=f"not needed: {name}")
    return skipped, (NotNeeded(step=step.name, predicate=name),)


def _answer(
    what: str,
    function: Callable[[Order, Results], Any],
    kind: type[Any],
    order: Order,
    results: Results,
) -> Any:
    """Return what a function of the workflow answers; raises `JudgingError`."""
    try:
        answer = function(order, results)
        if not isinstance(answer, kind):
            raise TypeError(f"it returned {type(answer).__name__}, not {kind.__name__}")  # noqa: TRY301
    except Exception as error:  # any error of a workflow fails its step
        raise JudgingError(f"{what} {name_of(function)}", error) from error
    return answer
