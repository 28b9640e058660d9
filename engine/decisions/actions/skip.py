"""Skip a failed step, because it was done, or undone, by other means (OPR-4)."""

from datetime import datetime

from engine.decisions.drafts import NextVersion
from engine.decisions.errors import ActionRefusedError
from engine.decisions.repair import chosen, failed_steps, resumed_or_left, why_not_repaired
from engine.domain import verbs
from engine.domain.causes import Cause, Code
from engine.domain.events import Action, StepActionTaken
from engine.domain.orders import OrderAggregate
from engine.domain.states import Finished
from engine.domain.steps import Step


def refusal(order: OrderAggregate) -> Cause | None:
    """Return why no failed step can be skipped; None if one can."""
    if cause := why_not_repaired(order, Action.SKIP):
        return cause
    failed = failed_steps(order)
    if not failed:
        return Cause(Code.NO_SUCH_STEP, {"action": Action.SKIP, "steps": []})
    needed = {step.name: _needing(order, step) for step in failed}
    return Cause(Code.RESULT_NEEDED, {"needed": needed}) if all(needed.values()) else None


def step_of(order: OrderAggregate, name: str | None) -> Step:
    """Return the failed step of this name, or the only one; raises `ActionRefusedError`."""
    step = chosen(failed_steps(order), name, Action.SKIP)
    if needing := _needing(order, step):
        raise ActionRefusedError(Cause(Code.RESULT_NEEDED, {"needed": {step.name: needing}}))
    return step


def steps_of(order: OrderAggregate) -> tuple[Step, ...]:
    """Return the failed steps that can be skipped."""
    return tuple(step for step in failed_steps(order) if not _needing(order, step))


def _needing(order: OrderAggregate, failed: Step) -> list[str]:
    """Return the steps that cannot be done without the result of this one; none in an undo."""
    if order.is_undo:
        return []
    to_come = (step for step in order.steps if not isinstance(step.state, Finished))
    return [step.name for step in to_come if failed.name in step.rules.uses]


def decide(order: OrderAggregate, step: Step, note: str, now: datetime) -> NextVersion:
    """Leave the step out; the order goes on unless another step has failed too.

    If the order is undone later, a skipped step that was ever tried is undone too (UND-2).
    """
    after = order.with_steps(verbs.skip(step))
    taken = StepActionTaken(action=Action.SKIP, step=step.name, note=note)
    return resumed_or_left(order, after, now, taken)
