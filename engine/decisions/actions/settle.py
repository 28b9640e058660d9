"""Settle a step in doubt: an operator found out at its service whether it was done (OPR-12)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from engine.decisions.drafts import NextVersion, next_version
from engine.decisions.errors import ActionRefusedError
from engine.decisions.repair import chosen, resumed_or_left, why_not_repaired
from engine.domain import verbs
from engine.domain.causes import Cause, Code
from engine.domain.effects import Doubt
from engine.domain.events import Action, StepSettled
from engine.domain.orders import OrderAggregate
from engine.domain.steps import Step


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What an operator found out at the service of a step."""

    result: Mapping[str, Any] | None = None
    """The result of the step, as it is kept; None if the step was not done."""
    confirms_late_effect: bool = False
    """Whether the step counts as not done although a call may still take effect."""


def refusal(order: OrderAggregate) -> Cause | None:
    """Return why no step can be settled; None if one can."""
    if order.is_undo:
        return Cause(Code.BEING_UNDONE)
    if cause := why_not_repaired(order, Action.SETTLE):
        return cause
    return None if steps_of(order) else Cause(Code.NOTHING_IN_DOUBT)


def steps_of(order: OrderAggregate) -> tuple[Step, ...]:
    """Return the steps in doubt, also those that have not failed."""
    return tuple(step for step in order.steps if isinstance(step.effect, Doubt))


def step_of(order: OrderAggregate, name: str | None) -> Step:
    """Return the step in doubt of this name, or the only one; raises `ActionRefusedError`."""
    return chosen(steps_of(order), name, Action.SETTLE)


def decide(
    order: OrderAggregate, step: Step, finding: Finding, note: str, now: datetime
) -> NextVersion:
    """End the doubt about the step.

    If it was done, it is completed, and the order goes on unless another step has failed. If it was
    not done, the order stays in `Error`, for another action. Raises `ActionRefusedError` while a
    call may still take effect, unless the operator confirms that it may.
    """
    if finding.result is not None:
        done = order.with_steps(verbs.settle_done(step, finding.result))
        settled = _settled(step, note, was_done=True)
        return resumed_or_left(order, done, now, settled)
    until = step.effects_final_at
    is_early = until is not None and now < until
    if until and is_early and not finding.confirms_late_effect:
        facts = {"step": step.name, "until": until.isoformat()}
        raise ActionRefusedError(Cause(Code.LATE_EFFECT_POSSIBLE, facts))
    not_done = order.with_steps(verbs.settle_not_done(step))
    settled = _settled(step, note, was_done=False, late_effect_possible=is_early)
    return next_version(order, not_done, now, (settled,))


def _settled(
    step: Step, note: str, *, was_done: bool, late_effect_possible: bool = False
) -> StepSettled:
    return StepSettled(
        action=Action.SETTLE,
        step=step.name,
        note=note,
        was_done=was_done,
        late_effect_possible=late_effect_possible,
    )
