"""Answers from outside: a step that asks no agent is answered, refused or left alone (ANS).

The decision needs no workflow: the order's own records say whether an answer is awaited. The answer
and the end of its time are two decisions on one ETag, so exactly one of them wins.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from core.actions import Asked, step_to_settle
from core.changes import Change, HistoryEntry, transition
from core.compensation import after_a_failure, failures_of
from core.errors import InvalidError, RefusedError, UnavailableError
from core.happenings import Answered, AskedOtherwise, RefusedEarly
from core.life import ENDED, Direction, ProcessState, StepState
from core.links import Links
from core.messages import json_text
from core.orders import ERASED, MAX_KEPT, OUTSIDE, Snapshot, Step
from core.workflow import LONGEST_WAIT, StepDefinition, Workflows, results_for
from engine.domain.causes import Cause, Code


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What somebody outside says to a step: its result, or why there is none."""

    step: str
    result: Mapping[str, Any] | None = None
    """The answer as it is kept, or as recorded if that has the same values; None for a refusal."""
    refusal: str | None = None
    """Why there is no answer; the step has failed then, and its on-failure rule decides."""
    for_good: bool = False
    """Whether the service that refused would repeat that for its key (AGT-3)."""


def awaiting(order: Snapshot, name: str) -> Step:
    """Return the step of this name that is answered from outside; raises `RefusedError`."""
    found = order.step(name)
    if found is None or found.capability != OUTSIDE:
        names = ", ".join(step.name for step in order.steps if step.capability == OUTSIDE)
        raise RefusedError(f"{name} is no step that is answered from outside: {names or 'none'} is")
    return found


def open_to_answers(order: Snapshot, name: str) -> Step:
    """Return the step if an answer to it counts now; raises `RefusedError`."""
    step = awaiting(order, name)
    if why_not := why_closed(order, step):
        raise RefusedError(why_not)
    return step


# What is asked, and what is said


def definition_of(order: Snapshot, step: str, workflows: Workflows) -> StepDefinition:
    """Return the definition of a step; raises `RefusedError` if this app has none.

    Raises `UnavailableError` if only a newer version of the app knows the order's workflow.
    """
    name, version = order.state.workflow, order.state.workflow_version
    workflow = workflows.find(name, version)
    if workflow is None and not workflows.was_retired(name, version):
        raise UnavailableError(f"only a newer version of the app knows {name} {version}")
    definition = workflow.definition(step) if workflow else None
    if definition is None:
        raise RefusedError(f"{name} version {version} has no step {step} in this app")
    return definition


def read(
    order: Snapshot,
    step: str,
    workflows: Workflows,
    content: Mapping[str, Any] | None,
    refusal: str | None,
) -> Answer:
    """Return what was said to the step, as it is kept: an answer, or a refusal instead of it.

    An answer with the same values as the recorded one is returned as it is recorded (ANS-3). Raises
    `InvalidError` with every fault, and as `definition_of` does.
    """
    if content is None:
        return Answer(step=step, refusal=refusal)
    definition = definition_of(order, step, workflows)
    kept, found = _kept(definition, content), order.step(step)
    recorded = found.result if found else None
    return Answer(step=step, result=recorded if _is_same(definition, recorded, kept) else kept)


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


def checked(order: Snapshot, asked: Asked, workflows: Workflows) -> Asked:
    """Return the request with the answer of its step as it is kept, if the step was done (OPR-12).

    Raises `InvalidError` with every fault, `RefusedError` if no such step is in doubt, and as
    `definition_of` does.
    """
    if not asked.was_done:
        return asked
    step = step_to_settle(order, asked.step)
    definition = definition_of(order, step.name, workflows)
    return replace(asked, answer=_kept(definition, asked.answer or {}))


def _kept(definition: StepDefinition, content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of an answer that are kept; raises `InvalidError` with every fault."""
    try:
        found = definition.read_answer(content) if definition.read_answer else content
    except InvalidError as error:
        raise InvalidError([f"answer.{fault}" for fault in error.faults]) from None
    kept = {name: each for name, each in found.items() if name in definition.result_fields}
    if (length := len(json_text(kept))) > MAX_KEPT:
        raise InvalidError([f"answer: it has {length} characters; it can have {MAX_KEPT}"])
    return kept


def question(order: Snapshot, definition: StepDefinition) -> Mapping[str, Any]:
    """Return what is asked of somebody outside; raises `RefusedError` if it cannot be made."""
    try:
        return definition.request(order.order, results_for(order, definition))
    except Exception as error:
        raise RefusedError(f"the question of {definition.name} cannot be made") from error


# The decision


def answered(order: Snapshot, answer: Answer, actor: str, now: datetime) -> Change | None:
    """Record an answer; None if the same was recorded before (ANS-3).

    An answer may come before its turn, and after its time until somebody has given up (ANS-2). So
    may that of a service which an agent has asked, over the link of its request (ANS-6). A refusal
    of a step that is not judged yet counts when its turn comes (ANS-3). Raises `RefusedError`,
    which says why the answer changes nothing.
    """
    step = order.step(answer.step)
    if step is None:
        raise RefusedError(f"the order has no step {answer.step}")
    if _is_known(step, answer):
        return None
    if why_not := why_closed(order, step):
        raise RefusedError(why_not)
    entry = HistoryEntry(at=now, actor=actor, happened=())
    if answer.refusal is not None and step.unjudged:
        cause = _cause_of(answer.refusal)
        early = replace(step, cause=cause.shortened())
        entry = entry.also(RefusedEarly(step=step.name, cause=cause))
        return _go_on(order, order.with_steps(early), entry)
    if answer.refusal is not None:
        return _refused(order, step, answer.refusal, entry, for_good=answer.for_good)
    completed = replace(
        step,
        state=StepState.COMPLETED,
        result=answer.result,
        complete_by=None,
        answer_by=None,
        not_before=None,
        retry_by=None,
        uncounted=0,
        cause=None,
        in_doubt=False,
    )
    entry = entry.also(Answered(step=step.name, attempt=step.attempts))
    return _go_on(order, order.with_steps(completed), entry)


def _is_known(step: Step, answer: Answer) -> bool:
    """Whether this very answer is recorded already, whatever became of the step or order since.

    If the recorded answer is erased, this one is compared after the same erasure.
    """
    if answer.refusal is not None:
        given_up = step.state in (StepState.FAILED, StepState.SKIPPED)
        return (given_up or step.unjudged) and step.cause == _cause_of(answer.refusal).shortened()
    sent = replace(step, result=answer.result)
    return step.result is not None and step.result in (sent.result, erased(sent).result)


def _cause_of(refusal: str) -> Cause:
    return Cause(Code.REFUSED, {"detail": refusal})


def why_closed(order: Snapshot, step: Step) -> str:
    """Return why no answer to the step counts; empty if one does."""
    state = order.state
    if step.state is StepState.COMPLETED:
        return f"{step.name} was answered already"
    if step.state is StepState.FAILED or step.early_refusal is not None:
        return f"{step.name} was given up: {step.reason}"
    if step.state is StepState.SKIPPED:
        return f"{step.name} was left out"
    if state.direction is Direction.UNDO:
        return f"the order is taken back: {state.reason}"
    if state.process_state in ENDED:
        return f"the order is {state.process_state}: {state.reason}"
    return ""


def _refused(
    order: Snapshot, step: Step, refusal: str, entry: HistoryEntry, *, for_good: bool
) -> Change:
    """Return the change of an order whose answer is no: the step has failed."""
    # A call that asks again for accepted work may come after its refusal: unless the service would
    # refuse its key again, it may do the work then.
    asks_again = step.runs and step.answer_by is not None
    known = replace(step, in_doubt=step.in_doubt or asks_again)
    cause = _cause_of(refusal)
    failed = known.refused(cause, for_good=for_good)
    after = order.with_steps(failed)
    entry = entry.also(*failures_of(failed, cause))
    if failed.state is StepState.SKIPPED:
        return _go_on(order, after, entry)
    return after_a_failure(order, after, entry)


def _go_on(order: Snapshot, after: Snapshot, entry: HistoryEntry) -> Change:
    """Let a scheduler go on, unless the order has to wait for others of its steps."""
    is_handled = order.state.process_state is ProcessState.PROCESSING
    has_to_wait = is_handled and after.running() and not after.ready()
    return transition(order, after if has_to_wait else after.requeued(), entry)


def with_new_link(order: Snapshot, asked: Asked, links: Links, now: datetime) -> Change:
    """Give the step a new right, which ends the former one (ANS-6); raises `RefusedError`."""
    step = open_to_answers(order, asked.step or "")
    renewed = links.with_right(replace(step, right=None))
    told = AskedOtherwise(what="link-renewed", step=step.name, note=asked.note)
    return _changed(order, renewed, told, asked, now)


def extended(order: Snapshot, asked: Asked, until: datetime, now: datetime) -> Change:
    """Move the deadline of an answer (ANS-7); raises `RefusedError`, and `InvalidError`."""
    step = _awaited(order, asked.step or "")
    if order.state.is_held:  # its deadline moves by the time for which it is held (OPR-7)
        raise RefusedError(f"{order.state.held_by} holds the order: its deadline moves at release")
    if not now < until <= now + LONGEST_WAIT:
        raise InvalidError([f"until: expected a time within {LONGEST_WAIT.days} days from now"])
    told = AskedOtherwise(what="wait-extended", step=step.name, note=asked.note, until=until)
    return _changed(order, replace(step, complete_by=until), told, asked, now)


def reminded(order: Snapshot, asked: Asked, now: datetime) -> Change:
    """Remind of an answer now; its deadline stays (ANS-7). Raises `RefusedError`."""
    step = _awaited(order, asked.step or "")
    told = AskedOtherwise(what="reminded", step=step.name, note=asked.note)
    return _changed(order, step, told, asked, now)


def _awaited(order: Snapshot, name: str) -> Step:
    """Return the step if its answer is awaited now; raises `RefusedError`."""
    step = open_to_answers(order, name)
    if not step.waits:
        raise RefusedError(f"{name} is not awaited yet: it is {step.state}")
    return step


def _changed(
    order: Snapshot, step: Step, told: AskedOtherwise, asked: Asked, now: datetime
) -> Change:
    """Return the change of an operator to how an answer is awaited."""
    entry = HistoryEntry(at=now, actor=f"operator/{asked.operator}", happened=(told,))
    return transition(order, order.with_steps(step), entry)


def erased(step: Step) -> Step:
    """Return the step without the personal data in its answer."""
    if step.result is None or not step.personal:
        return step
    kept = {name: _blank(name, value, step) for name, value in step.result.items()}
    return replace(step, result=kept)


def _blank(name: str, value: Any, step: Step) -> Any:
    """Return the value, or what stands for it if it is personal; of a list, one part stays."""
    if name not in (step.personal) or value is None:
        return value
    if isinstance(value, list):
        return [ERASED] if value else []
    return ERASED
