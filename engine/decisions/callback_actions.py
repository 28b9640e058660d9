"""Answers from outside: a step that asks no agent is answered, refused or left alone (ANS).

The decision needs no workflow: the order's own records say whether an answer is awaited. The answer
and the end of its time are two decisions on one ETag, so exactly one of them wins.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from engine.decisions import external_event
from engine.decisions.actions import extend_deadline, new_callback_url, remind
from engine.decisions.drafts import NextVersion
from engine.decisions.errors import CausedError
from engine.decisions.external_event import ExternalEvent, record
from engine.decisions.operator_actions import OperatorCommand, step_to_settle
from engine.decisions.requests import results_for
from engine.decisions.transitions import Transition, transition_of
from engine.declarations.workflow import StepDefinition, Workflows
from engine.domain.callback_urls import CallbackUrls
from engine.domain.errors import InvalidError, RefusedError, UnavailableError
from engine.domain.messages import json_text
from engine.domain.orders import OrderAggregate
from engine.domain.steps import Step
from engine.domain.submitted_order import MAX_KEPT
from engine.words.causes import words_of


@dataclass(frozen=True, kw_only=True, slots=True)
class CallbackAnswer:
    """What somebody outside says to a step: its result, or why there is none."""

    step: str
    result: Mapping[str, Any] | None = None
    """The answer as it is kept, or as recorded if that has the same values; None for a refusal."""
    refusal: str | None = None
    """Why there is no answer; the step has failed then, and its on-failure rule decides."""
    for_good: bool = False
    """Whether the service that refused would repeat that for its key (AGT-3)."""


def awaiting(order: OrderAggregate, name: str) -> Step:
    """Return the step of this name that is answered from outside; raises `RefusedError`."""
    found = order.step(name)
    if found is None or not found.is_external:
        names = ", ".join(step.name for step in order.steps if step.is_external)
        raise RefusedError(f"{name} is no step that is answered from outside: {names or 'none'} is")
    return found


# What is asked, and what is said


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


def read(
    order: OrderAggregate,
    step: str,
    workflows: Workflows,
    content: Mapping[str, Any] | None,
    refusal: str | None,
) -> CallbackAnswer:
    """Return what was said to the step, as it is kept: an answer, or a refusal instead of it.

    An answer with the same values as the recorded one is returned as it is recorded (ANS-3). Raises
    `InvalidError` with every fault, and as `definition_of` does.
    """
    if content is None:
        return CallbackAnswer(step=step, refusal=refusal)
    definition = definition_of(order, step, workflows)
    kept, found = _kept(definition, content), order.step(step)
    recorded = found.result if found else None
    return CallbackAnswer(
        step=step, result=recorded if _is_same(definition, recorded, kept) else kept
    )


def _is_same(
    definition: StepDefinition, recorded: Mapping[str, Any] | None, kept: Mapping[str, Any]
) -> bool:
    """Whether the recorded result of a step, read as an answer, has the values of this one.

    An agent's reply is recorded as its service wrote it: without defaults, and with times as text.
    """
    if recorded is None:
        return False
    try:
        return _kept(definition, recorded) == kept
    except InvalidError:  # it was erased, or recorded by another version of the app
        return False


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
    return replace(command, answer=_kept(definition, command.answer or {}))


def _kept(definition: StepDefinition, content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of an answer that are kept; raises `InvalidError` with every fault."""
    try:
        found = definition.read_answer(content) if definition.read_answer else content
    except InvalidError as error:
        raise InvalidError([f"answer.{fault}" for fault in error.faults]) from None
    kept = {name: value for name, value in found.items() if name in definition.result_fields}
    if (length := len(json_text(kept))) > MAX_KEPT:
        raise InvalidError([f"answer: it has {length} characters; it can have {MAX_KEPT}"])
    return kept


def question(order: OrderAggregate, definition: StepDefinition) -> Mapping[str, Any]:
    """Return what is asked of somebody outside; raises `RefusedError` if it cannot be made."""
    try:
        return definition.request(order.submitted, results_for(order, definition))
    except Exception as error:
        raise RefusedError(f"the question of {definition.name} cannot be made") from error


# The decision


def answered(
    order: OrderAggregate, answer: CallbackAnswer, actor: str, now: datetime
) -> Transition | None:
    """Record an answer; None if the same was recorded before (ANS-3).

    Raises `RefusedError`, which says why the answer changes nothing.
    """
    event = ExternalEvent(
        step=answer.step,
        result=answer.result,
        refusal=answer.refusal,
        for_good=answer.for_good,
    )
    with _refused_in_words():
        decided = record(order, event, now)
    return transition_of(decided, actor) if decided else None


def why_closed(order: OrderAggregate, step: Step) -> str:
    """Return why no answer to the step counts; empty if one does."""
    cause = external_event.why_closed(order, step)
    return words_of(cause) if cause else ""


def with_new_callback_url(
    order: OrderAggregate, command: OperatorCommand, callback_urls: CallbackUrls, now: datetime
) -> Transition:
    """Give the step a new callback token, which ends the former (ANS-6); raises `RefusedError`."""
    with _refused_in_words():
        step = new_callback_url.step_of(order, command.step or "")
    decided = new_callback_url.decide(order, step, callback_urls.new_token(), command.note, now)
    return _changed(decided, command)


def extended(
    order: OrderAggregate, command: OperatorCommand, until: datetime, now: datetime
) -> Transition:
    """Move the deadline of an answer (ANS-7); raises `RefusedError`, and `InvalidError`."""
    with _refused_in_words():
        step = extend_deadline.step_of(order, command.step or "")
    return _changed(extend_deadline.decide(order, step, until, command.note, now), command)


def reminded(order: OrderAggregate, command: OperatorCommand, now: datetime) -> Transition:
    """Remind of an answer now; its deadline stays (ANS-7). Raises `RefusedError`."""
    with _refused_in_words():
        step = remind.step_of(order, command.step or "")
    return _changed(remind.decide(order, step, command.note, now), command)


@contextmanager
def _refused_in_words() -> Iterator[None]:
    """Raise the refusal of a decision as `RefusedError`."""
    try:
        yield
    except CausedError as refused:
        raise RefusedError(words_of(refused.cause)) from None


def _changed(decided: NextVersion, command: OperatorCommand) -> Transition:
    """Return the change of an operator to how an answer is awaited."""
    return transition_of(decided, f"operator/{command.operator}")
