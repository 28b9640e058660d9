"""Settle a step in doubt: an operator found out at the service whether it was done (OPR-12)."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from pydantic import ConfigDict, ValidationInfo, field_validator
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError

from engine.decisions.actions.action import (
    KeptAnswer,
    OperatorAction,
    OperatorCommand,
    StepArguments,
)
from engine.decisions.drafts import NextVersion, next_version
from engine.decisions.repair import chosen, resumed_or_left, why_not_chosen, why_not_repaired
from engine.domain import verbs
from engine.domain.causes import Cause, Code
from engine.domain.effects import Doubt
from engine.domain.errors import RefusedError
from engine.domain.events import StepSettled
from engine.domain.orders import OrderAggregate
from engine.domain.steps import Step
from engine.domain.work_index import WorkItemKind

ONLY_IF: JsonDict = {
    "not": {
        "anyOf": [
            {
                "properties": {"wasDone": {"const": False}, "answer": {"type": "object"}},
                "required": ["wasDone", "answer"],
            },
            {
                "properties": {"wasDone": {"const": True}, "confirmLateEffect": {"const": True}},
                "required": ["wasDone", "confirmLateEffect"],
            },
        ]
    }
}
"""The two rules of `SettleArguments` as JSON Schema, for the body of a request."""


class SettleArguments(StepArguments):
    """The operator's finding about a step in doubt."""

    model_config = ConfigDict(json_schema_extra=ONLY_IF)
    was_done: bool
    answer: dict[str, Any] | None = None
    """The answer of a step that was done. It may be omitted if no field of the answer is
    required."""
    confirm_late_effect: bool = False
    """Settle the step as not done even though a call may still take effect."""

    @field_validator("answer")
    @classmethod
    def _answers_if_done(cls, answer: object, info: ValidationInfo) -> object:
        if answer is not None and info.data.get("was_done") is False:
            raise PydanticCustomError("only-if-done", "allowed only if the step was done")
        return answer

    @field_validator("confirm_late_effect")
    @classmethod
    def _confirms_if_not_done(cls, confirms: bool, info: ValidationInfo) -> bool:  # noqa: FBT001 - of pydantic
        if confirms and info.data.get("was_done"):
            raise PydanticCustomError("only-if-not-done", "allowed only if the step was not done")
        return confirms


class Settle(OperatorAction[SettleArguments]):
    """End the doubt about a step.

    If the step was done, it is completed, and the order continues unless another step has failed.
    If it was not done, the order stays in `Error` and can take another action.
    """

    name = "settle"
    rank = 40
    is_irreversible = True
    lists = (WorkItemKind.ERROR,)
    asks = SettleArguments

    def why_not(self, order: OrderAggregate, now: datetime) -> Cause | None:
        if order.is_undo:
            return Cause(Code.BEING_UNDONE)
        if cause := why_not_repaired(order, self.name):
            return cause
        return None if steps_in_doubt(order) else Cause(Code.NOTHING_IN_DOUBT)

    def steps(self, order: OrderAggregate, now: datetime) -> Sequence[Step]:
        return steps_in_doubt(order)

    def why_not_now(
        self, order: OrderAggregate, arguments: SettleArguments, now: datetime
    ) -> Cause | None:
        """Return the reason why this step, or the only one, cannot be settled with these arguments.

        While a call may still take effect, a step can be settled as not done only if the operator
        confirms the risk.
        """
        in_doubt = steps_in_doubt(order)
        if cause := why_not_chosen(in_doubt, arguments.step, self.name):
            return cause
        step = chosen(in_doubt, arguments.step)
        until = step.effects_final_at
        confirmed = arguments.was_done or arguments.confirm_late_effect
        if confirmed or until is None or now >= until:
            return None
        facts = {"step": step.name, "until": until.isoformat()}
        return Cause(Code.LATE_EFFECT_POSSIBLE, facts)

    def checked(
        self,
        order: OrderAggregate,
        command: OperatorCommand[SettleArguments],
        kept: KeptAnswer,
    ) -> OperatorCommand[SettleArguments]:
        """Return the command with the answer of the completed step as the workflow keeps it.

        Raises `RefusedError` if no such step is in doubt, and the errors of `kept`.
        """
        arguments = command.arguments
        if not arguments.was_done:
            return command
        in_doubt = steps_in_doubt(order)
        if cause := why_not_chosen(in_doubt, arguments.step, self.name):
            raise RefusedError(cause)
        step = chosen(in_doubt, arguments.step).name
        answer = dict(kept(order, step, arguments.answer or {}))
        return replace(command, arguments=arguments.model_copy(update={"answer": answer}))

    def apply(
        self, order: OrderAggregate, command: OperatorCommand[SettleArguments], now: datetime
    ) -> NextVersion:
        found, note = command.arguments, command.note
        step = chosen(steps_in_doubt(order), found.step)
        if found.was_done:
            done = order.with_steps(verbs.settle_done(step, found.answer or {}))
            return resumed_or_left(order, done, now, self._settled(step, note, was_done=True))
        until = step.effects_final_at
        is_early = until is not None and now < until
        not_done = order.with_steps(verbs.settle_not_done(step))
        settled = self._settled(step, note, was_done=False, late_effect_possible=is_early)
        return next_version(order, not_done, now, (settled,))

    def _settled(
        self, step: Step, note: str, *, was_done: bool, late_effect_possible: bool = False
    ) -> StepSettled:
        return StepSettled(
            action=self.name,
            step=step.name,
            note=note,
            was_done=was_done,
            late_effect_possible=late_effect_possible,
        )


def steps_in_doubt(order: OrderAggregate) -> tuple[Step, ...]:
    """Return the steps in doubt, including those that have not failed."""
    return tuple(step for step in order.steps if isinstance(step.effect, Doubt))


ACTION = Settle()
