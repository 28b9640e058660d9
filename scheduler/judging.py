"""Judges a step when its turn comes: whether it is needed, and when it begins (SCH-14, SCH-15)."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from core.compensation import failures_of
from core.errors import AppError
from core.happenings import BeginsLater, Happening, NotNeeded
from core.life import StepState
from core.orders import Order, Snapshot, Step
from core.workflow import Results, StepDefinition, name_of, results_for
from engine.domain.causes import Cause, Code

Answer = TypeVar("Answer")

EARLIEST, LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
"""Limits of the times at which a step may begin: tables and calendars hold these."""


class JudgingError(AppError):
    """A function of the workflow cannot judge a step."""

    def __init__(self, what: str, cause: Exception) -> None:
        super().__init__(what)
        self.cause = cause


def is_its_turn(order: Snapshot, step: Step) -> bool:
    """Whether the step of a claimed order has to be judged: it may begin, and was not judged."""
    return step.unjudged and step in order.ready()


def judge(
    order: Snapshot, step: Step, definition: StepDefinition, now: datetime
) -> tuple[Step, tuple[Happening, ...]]:
    """Return the step as it is judged, and what came of it; raises `JudgingError`.

    If nothing comes of it, since the step may begin now, it is returned as it was.
    """
    results = results_for(order, definition)
    when, begins = definition.when, definition.begins
    if when and not _answered("when", when, _yes_or_no, order.order, results):
        name = name_of(when)
        cause = Cause(Code.CONDITION_NOT_MET, {"condition": name})
        skipped = replace(step, state=StepState.SKIPPED, cause=cause)
        return replace(skipped, unjudged=False), (NotNeeded(step=step.name, predicate=name),)
    if step.early_refusal is not None:
        refused = step.refused(step.early_refusal, for_good=False)
        return refused, failures_of(refused, step.early_refusal)
    until = begins and _answered("begins", begins, _moment, order.order, results)
    if begins and until and until > now:
        later = BeginsLater(step=step.name, until=until, by=name_of(begins))
        return replace(step, not_before=until, unjudged=False), (later,)
    return step, ()


def _answered(
    what: str,
    function: Callable[[Order, Results], Any],
    read: Callable[[Any], Answer],
    order: Order,
    results: Results,
) -> Answer:
    """Return what a function of the workflow answers; raises `JudgingError`."""
    try:
        return read(function(order, results))
    except Exception as error:  # any error of a workflow fails its step
        raise JudgingError(f"{what} {name_of(function)}", error) from error


def _yes_or_no(answer: Any) -> bool:
    if isinstance(answer, bool):
        return answer
    raise TypeError(f"it returned {type(answer).__name__}, not bool")


def _moment(answer: Any) -> datetime | None:
    if answer is None:
        return None
    if not isinstance(answer, datetime):
        raise TypeError(f"it returned {type(answer).__name__}, not datetime")
    if answer.tzinfo is None:
        raise TypeError("it returned a time without a time zone")
    if not EARLIEST <= answer < LATEST:
        raise TypeError(f"it returned a time that is not from {EARLIEST:%Y} to {LATEST:%Y}")
    return answer.astimezone(UTC)
