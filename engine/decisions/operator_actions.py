"""The actions of operators: for each a value with its words, its conditions and its decision.

An action is decided from the order's own records, without its workflow. It is a change of the state
like any other, so it survives any crash; its message only wakes a scheduler (OPR-3, OPR-4, OPR-6).
Routes, bulk actions, commands, buttons and dialogs are made from these values.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from engine.decisions.actions import (
    cancel,
    expedite,
    hold,
    release,
    resubmit,
    retry_with_new_key,
    settle,
    skip,
)
from engine.decisions.drafts import NextVersion
from engine.decisions.errors import ActionRefusedError
from engine.decisions.repair import forgotten_steps
from engine.decisions.transitions import Transition, transition_of
from engine.domain.causes import Cause
from engine.domain.errors import RefusedError
from engine.domain.orders import InError, OrderAggregate
from engine.domain.states import Startable
from engine.domain.statuses import Outcome
from engine.domain.steps import Step
from engine.domain.work_index import WorkItemKind
from engine.words.causes import words_of


@dataclass(frozen=True, kw_only=True, slots=True)
class OperatorCommand:
    """The operator who asks for an action, the reason, and the step if the action concerns one."""

    operator: str
    note: str
    step: str | None = None
    was_done: bool | None = None
    """Whether a step in doubt was done; None unless the action settles that."""
    answer: Mapping[str, Any] | None = None
    """What is kept of the answer of a step that was done."""
    confirm_late_effect: bool = False
    """Whether the step counts as not done although a call may still take effect."""


class Subject(StrEnum):
    """The things that an action can concern."""

    ORDER = "order"
    MESSAGE = "message"
    AGENT = "agent"
    PERSONAL = "personal"
    """The personal data of one order."""
    ANSWER = "answer"
    """An answer from outside (ANS-1)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Words:
    """The words of an action."""

    name: str
    """The name in routes and commands."""
    title: str
    button: str
    """The text of its button."""
    effect: str
    """What the action changes, and what it leaves as it is."""
    done: str
    """The past participle, such as `resubmitted`."""
    danger: bool = False
    """Whether the action cannot be taken back."""
    subject: Subject = Subject.ORDER


@dataclass(frozen=True, kw_only=True, slots=True)
class OperatorAction(Words):
    """An action on an order."""

    why_not: Callable[[OrderAggregate, datetime], Cause | None]
    """Returns why the action makes no sense for the order now; None if it does."""
    decide: Callable[[OrderAggregate, OperatorCommand, datetime], NextVersion]
    """Raises `ActionRefusedError`; called only where the above returns None."""
    of_step: bool = False
    """Whether it concerns one of the steps that failed, or are in doubt."""
    of_outcome: bool = False
    """Whether the operator says if the step was done."""
    steps_of: Callable[[OrderAggregate, datetime], tuple[Step, ...]] = lambda order, now: ()
    """Returns the steps of which it can concern one."""
    lists: tuple[WorkItemKind, ...]
    """The lists in which a bulk action finds its orders."""

    def act(self, order: OrderAggregate, command: OperatorCommand, now: datetime) -> Transition:
        """Return the change of the order; raises `RefusedError`."""
        if cause := self.why_not(order, now):
            raise RefusedError(words_of(cause))
        try:
            decided = self.decide(order, command, now)
        except ActionRefusedError as refused:
            raise RefusedError(words_of(refused.cause)) from None
        return transition_of(decided, f"operator/{command.operator}")


def possible(order: OrderAggregate, now: datetime) -> list[str]:
    """Return the names of the actions that make sense now."""
    return [action.name for action in ACTIONS if not action.why_not(order, now)]


def possible_at(order: OrderAggregate, step: Step, now: datetime) -> list[str]:
    """Return the names of the actions that make sense now for this step."""
    sensible = [action for action in ACTIONS if not action.why_not(order, now)]
    return [
        action.name
        for action in sensible
        if any(found.name == step.name for found in action.steps_of(order, now))
    ]


def step_to_settle(order: OrderAggregate, name: str | None) -> Step:
    """Return the step in doubt of this name, or the only one; raises `RefusedError` otherwise."""
    try:
        return settle.step_of(order, name)
    except ActionRefusedError as refused:
        raise RefusedError(words_of(refused.cause)) from None


def _skip(order: OrderAggregate, command: OperatorCommand, now: datetime) -> NextVersion:
    return skip.decide(order, skip.step_of(order, command.step), command.note, now)


def _retry_with_new_key(
    order: OrderAggregate, command: OperatorCommand, now: datetime
) -> NextVersion:
    step = retry_with_new_key.step_of(order, command.step, now)
    return retry_with_new_key.decide(order, step, command.note, now)


def _settle(order: OrderAggregate, command: OperatorCommand, now: datetime) -> NextVersion:
    finding = settle.Finding(
        result=(command.answer or {}) if command.was_done else None,
        confirms_late_effect=command.confirm_late_effect,
    )
    return settle.decide(order, settle.step_of(order, command.step), finding, command.note, now)


TOO_LATE = "it is too late: the order has gone too far to be cancelled"


def why_customer_cannot_cancel(order: OrderAggregate, until: str | None) -> str:
    """Return why its customer cannot cancel the order, in words for customers; empty if possible.

    `until` names the step that must not have begun; None means that customers never may.
    """
    if until is None:
        return "such an order cannot be cancelled"
    was_undone = isinstance(order.state, InError) and order.state.outcome is Outcome.UNDONE
    if order.is_undo or was_undone:
        return "the order is being taken back, or was taken back, already"
    step = order.step(until)
    if step is None or step.counts.attempts or not isinstance(step.state, Startable):
        return TOO_LATE
    if order.passed_pivots():
        return TOO_LATE
    return "the order is done" if cancel.refusal(order) else ""


def cancel_for_customer(order: OrderAggregate, until: str | None, now: datetime) -> Transition:
    """Cancel the order at its customer's wish (SUB-8).

    Raises `RefusedError` if the step `until` has begun, or the order does not allow it.
    """
    if why_not := why_customer_cannot_cancel(order, until):
        raise RefusedError(why_not)
    note = "the customer asked for it"
    return transition_of(cancel.decide(order, cancel.CUSTOMER, note, now), "customer")


ACTIONS = (
    OperatorAction(
        name="resubmit",
        title="Resubmit",
        button="Resubmit",
        effect="The steps that failed start again with a fresh count. "
        "What is completed stays completed.",
        done="resubmitted",
        why_not=resubmit.refusal,
        decide=lambda order, command, now: resubmit.decide(order, command.note, now),
        lists=(WorkItemKind.ERROR,),
    ),
    OperatorAction(
        name="skip",
        title="Skip a step",
        button="Skip it",
        effect="The order goes on without this step, because it was done, or taken back, "
        "by other means.",
        done="skipped",
        of_step=True,
        steps_of=lambda order, now: skip.steps_of(order),
        why_not=lambda order, now: skip.refusal(order),
        decide=_skip,
        lists=(WorkItemKind.ERROR,),
    ),
    OperatorAction(
        name="retry-with-new-key",
        title="Do a step anew",
        button="It was not done: do it",
        effect="It is unknown whether the step was done under its former key. It is done under a "
        "new one; if it was done before, it is done twice.",
        done="retried",
        danger=True,
        of_step=True,
        steps_of=forgotten_steps,
        why_not=retry_with_new_key.refusal,
        decide=_retry_with_new_key,
        lists=(WorkItemKind.ERROR,),
    ),
    OperatorAction(
        name="settle",
        title="Settle a step in doubt",
        button="Settle it",
        effect="It is unknown whether the step was done, and you found out at its service. "
        "If it was done, it is completed with its answer. If not, you can resubmit the order "
        "or cancel it then.",
        done="settled",
        danger=True,
        of_step=True,
        of_outcome=True,
        steps_of=lambda order, now: settle.steps_of(order),
        why_not=lambda order, now: settle.refusal(order),
        decide=_settle,
        lists=(WorkItemKind.ERROR,),
    ),
    OperatorAction(
        name="cancel",
        title="Cancel the order",
        button="Take all of it back",
        effect="Everything that was ever tried is taken back, last first. "
        "Steps that run answer or expire before. This cannot be stopped.",
        done="cancelled",
        danger=True,
        why_not=lambda order, now: cancel.refusal(order),
        decide=lambda order, command, now: cancel.decide(order, cancel.OPERATOR, command.note, now),
        lists=(WorkItemKind.ERROR,),
    ),
    OperatorAction(
        name="hold",
        title="Hold",
        button="Hold it",
        effect="Nothing of the order starts until it is released. What runs is answered, "
        "or its time is up; the deadline of an answer from outside moves.",
        done="held",
        why_not=lambda order, now: hold.refusal(order),
        decide=lambda order, command, now: hold.decide(order, command.operator, command.note, now),
        lists=(WorkItemKind.PENDING, WorkItemKind.RUNNING, WorkItemKind.WAITING),
    ),
    OperatorAction(
        name="release",
        title="Release",
        button="Release it",
        effect="The order goes on from where it was held. "
        "Dates that it waits for stay as they are.",
        done="released",
        why_not=lambda order, now: release.refusal(order),
        decide=lambda order, command, now: release.decide(order, command.note, now),
        lists=(WorkItemKind.HELD,),
    ),
    OperatorAction(
        name="expedite",
        title="Raise the priority",
        button="Raise it",
        effect="The order is claimed before those of normal priority. A cooldown ends now.",
        done="expedited",
        why_not=lambda order, now: expedite.refusal(order),
        decide=lambda order, command, now: expedite.decide(order, command.note, now),
        lists=(WorkItemKind.PENDING,),
    ),
)
"""The actions on an order, in the sequence in which they are offered."""

BY_NAME = {action.name: action for action in ACTIONS}

ERASE = Words(
    name="erase",
    title="Erase personal data",
    button="Erase it for good",
    effect="Who the customer is goes for good, from the order and from messages that name it. "
    "The order and its history stay.",
    done="erased",
    danger=True,
)
REVEAL = Words(
    name="reveal",
    subject=Subject.PERSONAL,
    title="Show personal data",
    button="Show it to me",
    effect="You see who the customer is, of this order alone. "
    "The order's history keeps that you looked, and why.",
    done="revealed",
)
REDRIVE = Words(
    name="redrive",
    subject=Subject.MESSAGE,
    title="Put the message back",
    button="Put it back",
    effect="The message goes onto its queue again, as it was. "
    "If nothing was mended, it comes back here.",
    done="redriven",
)
DROP = Words(
    name="drop",
    subject=Subject.MESSAGE,
    title="Drop the message",
    button="Drop it for good",
    effect="The message is removed for good. What it asked for does not happen.",
    done="dropped",
    danger=True,
)
PAUSE_AGENT = Words(
    name="pause-agent",
    subject=Subject.AGENT,
    title="Pause the agent",
    button="Pause it",
    effect="No request is sent to the agent until that time. Orders that need it wait, "
    "and no failure is counted. What is under way may end.",
    done="paused",
)
RESUME_AGENT = Words(
    name="resume-agent",
    subject=Subject.AGENT,
    title="Resume the agent",
    button="Resume it",
    effect="Requests are sent to the agent again. Orders that waited for it go on.",
    done="resumed",
)
ANSWER = Words(
    name="answer",
    subject=Subject.ANSWER,
    title="Answer",
    button="Answer for them",
    effect="The step is done, with this answer. It is answered once; the order goes on.",
    done="answered",
    danger=True,
)
REFUSE = Words(
    name="refuse",
    subject=Subject.ANSWER,
    title="Refuse",
    button="Refuse for them",
    effect="There is no answer: the step has failed, and its rule decides what follows.",
    done="refused",
    danger=True,
)
EXTEND = Words(
    name="extend",
    subject=Subject.ANSWER,
    title="Wait until",
    button="Wait until then",
    effect="The answer is due then, earlier or later than now: at most 30 days from now.",
    done="extended",
)
REMIND = Words(
    name="remind",
    subject=Subject.ANSWER,
    title="Remind",
    button="Remind them",
    effect="Whoever is told that an answer is awaited is told again. Its deadline stays.",
    done="reminded",
)
LINK = Words(
    name="link",
    subject=Subject.ANSWER,
    title="New link",
    button="Make a new link",
    effect="Whoever has the new link can answer. The former one ends.",
    done="renewed",
)
OTHERS = (ERASE, REVEAL, REDRIVE, DROP, PAUSE_AGENT, RESUME_AGENT)
"""The actions on an order's personal data, on an unreadable message, and on an agent."""
OF_ANSWERS = (ANSWER, REFUSE, EXTEND, REMIND, LINK)
"""What operators do about an answer from outside."""

RUNS = {
    "sweep": "Recover the overdue orders, as the supervisor does; nothing without its lease.",
    "poll": "Claim the orders that wait, as the scheduler does.",
    "relay": "Send the alerts and notices that are due.",
    "stall-detector": "Look for standstill, and raise alerts.",
    "notify": "Send people the alerts that wait.",
    "retention": "Remove what is older than the retention time.",
}
"""The periodic work that operators can run by hand, with what each run does (SUP-7)."""
