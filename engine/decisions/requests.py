"""The request of an attempt: the content that the workflow makes for the agent (SCH-4).

Any error of a workflow's function fails its step. The cause names the error, without personal data.
"""

import re
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from engine.declarations.business import Payload
from engine.declarations.workflow import StepDefinition, WorkflowDefinition
from engine.domain.causes import Cause, Code
from engine.domain.effects import Done
from engine.domain.errors import AppError, CausedError, InputFault, InvalidError
from engine.domain.messages import AgentRequest, BusMessage, faults_of
from engine.domain.orders import OrderAggregate
from engine.domain.states import Undoing
from engine.domain.steps import Step
from engine.domain.submitted_order import ERASED
from engine.domain.texts import plain
from engine.features.external_events.callback_urls import CallbackUrls
from engine.features.external_events.steps import personal_texts

MAX_BYTES = 192 * 1024
"""Maximum size of a request. Service Bus carries 256 KiB, including its own headers."""

MAX_ERROR_TEXT = 200
"""Maximum number of characters of an error in a cause."""

NAMES_CODE = (LookupError, AttributeError, NameError, TypeError, ArithmeticError, AppError)
"""Errors whose message names code, such as a key. The messages of other errors may repeat
values."""


Personal = Callable[[], Iterable[str]]
"""Returns the personal values of an order. No cause may repeat them."""


def personal_in(order: OrderAggregate, payload: Payload) -> Personal:
    """Return the function that yields the personal values in payload and answers (ANS-5)."""
    submitted = order.submitted.payload
    return lambda: chain(payload.personal(submitted), *map(personal_texts, order.steps))


class BrokenRequestError(CausedError):
    """The request of a step cannot be made."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestMaker:
    """Makes the requests of one order."""

    workflow: WorkflowDefinition
    personal: Personal
    callbacks: CallbackUrls | None
    now: datetime

    def content_of(self, order: OrderAggregate, step: Step) -> Mapping[str, Any]:
        """Return the content of the request.

        Raises `BrokenRequestError` if the step was removed or its function fails.
        """
        definition = self.workflow.definition(step.name)
        if definition is None:
            raise BrokenRequestError(step_removed(self.workflow, step.name))
        try:
            return definition.request(order.submitted, results_for(order, definition))
        except Exception as error:  # any error of a workflow fails its step
            raise BrokenRequestError(self._failed(step, error)) from error

    def request_of(self, order: OrderAggregate, step: Step) -> BusMessage:
        """Return the request of an attempt that starts now.

        Raises `BrokenRequestError` if the content cannot be made or does not fit into a message.
        """
        content = self.content_of(order, step)
        definition = self.workflow.definition(step.name)
        try:
            return self._message(order, step, definition, content)
        except Exception as error:  # what the workflow made may not fit into a message
            raise BrokenRequestError(self._failed(step, error)) from error

    def _message(
        self,
        order: OrderAggregate,
        step: Step,
        definition: StepDefinition | None,
        content: Mapping[str, Any],
    ) -> BusMessage:
        is_undo = isinstance(step.state, Undoing)
        if is_undo and definition:
            _check_needs(definition, step)
        operation = definition and (definition.compensation if is_undo else definition.operation)
        urls = None if is_undo else self.callbacks
        complete_by = step.complete_by or self.now + step.rules.timeout
        message = AgentRequest(
            order_id=order.order_id,
            step=step.name,
            action="undo" if is_undo else "do",
            operation=operation or "",
            attempt=step.counts.attempts,
            idempotency_key=idempotency_key(order.order_id, step),
            issued_at=self.now,
            complete_by=complete_by,
            answer_by=step.answer_by,
            callback_url=urls.of(order.order_id, step) if urls else None,
            content={**content, "result": step.result or {}} if is_undo else content,
        ).to_bus(step.agent, time_to_live=complete_by - self.now)
        if (size := len(message.body.encode())) > MAX_BYTES:
            facts = {"length": size, "limit": MAX_BYTES}
            raise InvalidError([InputFault("", "message-too-long", facts)])
        return message

    def _failed(self, step: Step, error: Exception) -> Cause:
        facts = {**in_workflow(self.workflow, step.name), "error": shown(error, self.personal())}
        return Cause(Code.REQUEST_FAILED, facts)


def _check_needs(definition: StepDefinition, step: Step) -> None:
    """Raise `InvalidError` if the answer lacks a field that the undo needs.

    A step without an answer is not checked, because its key may be enough for the undo.
    """
    if isinstance(step.effect, Done):
        answer = step.result or {}
        lacking = [name for name in definition.compensation_needs if answer.get(name) is None]
        if lacking:
            raise InvalidError([InputFault(f"result.{name}", "missing") for name in lacking])


def idempotency_key(order_id: str, step: Step) -> str:
    """Return the idempotency key of the step, for every attempt and for the undo (AGT-3)."""
    generation = step.key.generation if step.key else 0
    key = f"{order_id}:{step.name}"
    return f"{key}:{generation}" if generation else key


def results_for(
    order: OrderAggregate, definition: StepDefinition
) -> Mapping[str, Mapping[str, Any]]:
    """Return the arguments for the functions of a step: the results of the steps that it uses."""
    used = (step for step in order.steps if step.name in definition.uses)
    return {step.name: step.result for step in used if step.result is not None}


def in_workflow(workflow: WorkflowDefinition, step: str) -> Mapping[str, Any]:
    return {"workflow": workflow.name, "version": workflow.version, "step": step}


def step_removed(workflow: WorkflowDefinition, step: str) -> Cause:
    return Cause(Code.STEP_REMOVED, in_workflow(workflow, step))


def shown(error: Exception, personal: Iterable[str]) -> str:
    """Return the type of the error and its message, or its source line, without personal data."""
    if isinstance(error, ValidationError):
        message = "; ".join(map(str, faults_of(error)))
    elif isinstance(error, NAMES_CODE) and not _repeats_object(error):
        message = str(error)
    else:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        message = f"at {Path(frame.filename).name}, line {frame.lineno}"
    return plain(f"{type(error).__name__} {without(personal, message)}", MAX_ERROR_TEXT)


def _repeats_object(error: Exception) -> bool:
    """Return whether the error's message shows a value in a form that `without` does not know."""
    return isinstance(error, LookupError) and not all(
        isinstance(argument, str | int | Decimal) for argument in error.args
    )


def _forms(value: str) -> tuple[str, str, str]:
    """Return the value as it is, and as Python shows it in either kind of quotes."""
    return value, repr(value)[1:-1], repr(f'{value}"')[1:-2]


def without(personal: Iterable[str], text: str) -> str:
    """Return the text with these values replaced, also in the forms in which Python shows them."""
    found = {form for value in personal for form in _forms(value)}
    # The longest first: a value may be the beginning of another one.
    values = sorted(filter(None, found), key=lambda value: (-len(value), value))
    if not values:
        return text
    any_value = "|".join(map(re.escape, values))
    return re.sub(rf"(?<!\w)(?:{any_value})(?!\w)", ERASED, text, flags=re.IGNORECASE)
