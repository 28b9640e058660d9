"""The actions of operators: for each a value with its words, its conditions and its decision.

An action is decided from the order's own records, without its workflow. It is a change of the state
like any other, so it survives any crash; its message only wakes a scheduler (OPR-3, OPR-4, OPR-6).
Routes, bulk actions, commands, buttons and dialogs are made from these values.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from core.agenda import Kind
from core.changes import Change, HistoryEntry, transition
from core.compensation import turn_back, withdrawals
from core.errors import RefusedError
from core.happenings import CLOCK, ActedOn, Renewed, Settled, Skipped
from core.life import DONE, ENDED, Direction, Outcome, ProcessState, StepState
from core.orders import OUTSIDE, Priority, Snapshot, Step
from engine.domain.causes import Cause, Code


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
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


def _no_steps(_order: Snapshot, _now: datetime) -> tuple[Step, ...]:
    return ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Action(Words):
    """An action on an order."""

    why_not: Callable[[Snapshot], str]
    """Returns why the action makes no sense for the order as it is; empty if it does."""
    why_not_now: Callable[[Snapshot, datetime], str] = lambda order, now: ""
    """Returns why it makes no sense at this time, where only the time decides; empty if it does."""
    decide: Callable[[Snapshot, Asked, datetime], Change]
    """Raises `RefusedError`; called only where the two above return an empty text."""
    of_step: bool = False
    """Whether it concerns one of the steps that failed, or are in doubt."""
    of_outcome: bool = False
    """Whether the operator says if the step was done."""
    steps_of: Callable[[Snapshot, datetime], tuple[Step, ...]] = _no_steps
    """Returns the steps of which it can concern one."""
    lists: tuple[Kind, ...]
    """The lists in which a bulk action finds its orders."""

    def act(self, order: Snapshot, asked: Asked, now: datetime) -> Change:
        """Return the change of the order; raises `RefusedError`."""
        if why_not := self.refusal(order, now):
            raise RefusedError(why_not)
        return self.decide(order, asked, now)

    def refusal(self, order: Snapshot, now: datetime) -> str:
        """Return why the action is refused; empty if it is not."""
        return self.why_not(order) or self.why_not_now(order, now)


def possible(order: Snapshot, now: datetime) -> list[str]:
    """Return the names of the actions that make sense now."""
    return [action.name for action in ACTIONS if not action.refusal(order, now)]


def possible_at(order: Snapshot, step: Step, now: datetime) -> list[str]:
    """Return the names of the actions that make sense now for this step."""
    sensible = (each for each in ACTIONS if not each.refusal(order, now))
    return [each.name for each in sensible if step in each.steps_of(order, now)]


# Resubmit


def why_not_resubmit(order: Snapshot) -> str:
    """Return why the order cannot go on from where it failed; empty if it can."""
    return _why_not_mended(order, "resubmitted")


def why_not_resubmit_now(order: Snapshot, now: datetime) -> str:
    """Return which failed steps may not be sent again, since their keys are forgotten (AGT-12)."""
    names = " and ".join(step.name for step in _forgotten(order, now))
    if not names:
        return ""
    back = order.state.direction is Direction.UNDO
    then = "skip it" if back else "skip it if it was done, or renew it if it was not"
    return f"the service may have forgotten the key of {names}: find out there what stands; {then}"


def _forgotten(order: Snapshot, now: datetime) -> tuple[Step, ...]:
    return tuple(step for step in to_mend(order) if step.is_forgotten(now))


def resubmit(order: Snapshot, asked: Asked, now: datetime) -> Change:
    """Let the order go on from its failed steps, with a fresh failure count (OPR-3, UND-4).

    A step that was refused for good begins a new round (AGT-3).
    """
    failed = order.in_state(StepState.FAILED)
    after = order.with_steps(*(_afresh(step, order.state.direction) for step in failed))
    return _go_on(order, after, _entry(asked, now, ActedOn(what="resubmitted", note=asked.note)))


def _why_not_mended(order: Snapshot, what: str) -> str:
    if order.state.process_state is not ProcessState.ERROR:
        return f"the order is {order.state.process_state}: only one in Error can be {what}"
    if order.state.meaning.is_over:
        return f"the order is {order.state.meaning.word}: there is nothing to go on with"
    return ""


def _afresh(step: Step, direction: Direction) -> Step:
    """Reset the failure count, but never the attempts: they identify stale replies."""
    back = direction is Direction.UNDO
    if back and not step.undo_failed:
        return step  # it was refused on the way forward, so there is nothing to undo
    if step.refused_for_good and not step.in_doubt:
        step = step.in_next_round()
    return replace(
        step,
        state=StepState.UNDOING if back else StepState.NOT_STARTED,
        failure_count=0,
        cooldowns=0,
        not_before=None,
        complete_by=None,
        answer_by=None,
        right=None,
        cause=None,
        for_operator=False,
    )


def _go_on(order: Snapshot, after: Snapshot, entry: HistoryEntry) -> Change:
    """Let any scheduler claim the order, with a fresh count; what was withdrawn is asked anew."""
    if after.state.direction is Direction.UNDO:
        return transition(order, after.resumed().with_state(cause=Cause(Code.UNDO_RESUMED)), entry)
    anew = (_afresh(step, Direction.FORWARD) for step in after.steps if _was_asked(step))
    return transition(order, after.with_steps(*anew).resumed(), entry)


def _was_asked(step: Step) -> bool:
    """Whether somebody outside was asked for an answer, which was withdrawn (SCH-12)."""
    return step.capability == OUTSIDE and step.attempts > 0 and step.state is StepState.NOT_STARTED


# Skip


def why_not_skip(order: Snapshot) -> str:
    """Return why no failed step can be left out; empty if one can."""
    if why_not := _why_not_mended(order, "freed of a step that failed"):
        return why_not
    reasons = [_why_needed(order, step) for step in to_mend(order)]
    return "" if "" in reasons else "; ".join(reasons)


def may_be_skipped(order: Snapshot) -> tuple[Step, ...]:
    """Return the failed steps that can be left out."""
    return tuple(step for step in to_mend(order) if not _why_needed(order, step))


def skip(order: Snapshot, asked: Asked, now: datetime) -> Change:
    """Leave out a failed step, because it was done, or undone, by other means (OPR-4).

    The order goes on unless another step has failed too. On the way forward, a step that another
    one needs cannot be left out. If the order is undone later, a skipped step that was ever tried
    is undone like any other (UND-2).
    """
    step = _failed_step(to_mend(order), asked.step, "skipped")
    if why_not := _why_needed(order, step):
        raise RefusedError(why_not)
    after = order.with_steps(
        replace(step, state=StepState.SKIPPED, complete_by=None, cause=None, for_operator=False)
    )
    left = to_mend(after)
    skipped = Skipped(what="step-skipped" if left else "skipped", step=step.name, note=asked.note)
    return _unless_more_failed(order, after, _entry(asked, now, skipped))


def _unless_more_failed(order: Snapshot, after: Snapshot, entry: HistoryEntry) -> Change:
    """Let the order go on, unless another step has failed too."""
    if left := to_mend(after):
        return transition(order, after.with_state(cause=left[0].cause), entry)
    return _go_on(order, after, entry)


def to_mend(order: Snapshot) -> tuple[Step, ...]:
    """Return the failed steps; during an undo, only those whose undo failed."""
    failed = order.in_state(StepState.FAILED)
    back = order.state.direction is Direction.UNDO
    return tuple(step for step in failed if step.undo_failed) if back else failed


def _why_needed(order: Snapshot, step: Step) -> str:
    """Return which steps need the answer of this failed step; empty if none does."""
    if order.state.direction is Direction.UNDO:
        return ""
    to_come = (each for each in order.steps if each is not step and each.state not in DONE)
    needing = ", ".join(each.name for each in to_come if step.name in each.uses)
    return f"{needing} cannot be done without what {step.name} answers" if needing else ""


def _failed_step(failed: Sequence[Step], name: str | None, what: str) -> Step:
    """Return the failed step of this name, or the only one; raises `RefusedError` otherwise."""
    return _one_of(failed, name, f"has failed can be {what}", several="have failed")


def _one_of(steps: Sequence[Step], name: str | None, only: str, *, several: str) -> Step:
    """Return the step of this name, or the only one; raises `RefusedError` otherwise."""
    meant = [step for step in steps if name in (None, step.name)]
    names = ", ".join(step.name for step in steps) or "none"
    if not meant:
        raise RefusedError(f"only a step that {only}; of this order that is: {names}")
    if len(meant) > 1:
        raise RefusedError(f"several steps {several}, name one of them: {names}")
    return meant[0]


# Renew


def why_not_renew(order: Snapshot) -> str:
    """Return why no failed step can be done anew; empty if one might."""
    if order.state.direction is Direction.UNDO:
        return "the order is being undone: skip the step once nothing of it stands"
    return _why_not_mended(order, "freed of a step that failed")


def why_not_renew_now(order: Snapshot, now: datetime) -> str:
    """Return why no failed step has to be done anew; empty if one has."""
    return "" if _forgotten(order, now) else "no step is in doubt whose key was forgotten"


def renew(order: Snapshot, asked: Asked, now: datetime) -> Change:
    """Do a step in a new round, because an operator found that it was not done (AGT-12).

    The order goes on unless another step has failed too.
    """
    step = _failed_step(_forgotten(order, now), asked.step, "renewed")
    after = order.with_steps(_afresh(step.in_next_round(), Direction.FORWARD))
    renewed = Renewed(
        what="step-renewed" if to_mend(after) else "renewed", step=step.name, note=asked.note
    )
    return _unless_more_failed(order, after, _entry(asked, now, renewed))


# Settle


def why_not_settle(order: Snapshot) -> str:
    """Return why no step in doubt can be settled; empty if one can."""
    if order.state.direction is Direction.UNDO:
        return "the order is being undone: skip the step once nothing of it stands"
    if why_not := _why_not_mended(order, "freed of doubt"):
        return why_not
    return "" if in_doubt(order) else "no step is in doubt"


def in_doubt(order: Snapshot) -> tuple[Step, ...]:
    """Return the steps whose agent may have done them."""
    return tuple(step for step in order.steps if step.effect_unknown and step.capability != OUTSIDE)


def step_to_settle(order: Snapshot, name: str | None) -> Step:
    """Return the step in doubt of this name, or the only one; raises `RefusedError` otherwise."""
    return _one_of(in_doubt(order), name, "is in doubt can be settled", several="are in doubt")


def settle(order: Snapshot, asked: Asked, now: datetime) -> Change:
    """End the doubt about a step by what an operator found out at its service (OPR-12).

    If the step was done, it is completed with its answer, and the order goes on unless another
    step has failed. If it was not done, the order stays in `Error`, for another action; so it has
    failed if it was skipped as done. That is refused while a call may still take effect, unless the
    operator confirms this.
    """
    step = step_to_settle(order, asked.step)
    known = replace(step, in_doubt=False, answer_by=None)
    if asked.was_done:
        done = replace(
            known,
            state=StepState.COMPLETED,
            result=asked.answer,
            not_before=None,
            retry_by=None,
            cause=None,
            for_operator=False,
        )
        after = order.with_steps(done)
        goes_on = not to_mend(after)
        return _unless_more_failed(order, after, _settled(asked, now, step, goes_on=goes_on))
    until = step.effects_final_at
    is_early = until is not None and now < until
    if is_early and not asked.confirm_late_effect:
        raise RefusedError(
            f"a call of {step.name} may still take effect until {until:{CLOCK}}: "
            "look there again after that time, or confirm that it may"
        )
    entry = _settled(asked, now, step, goes_on=False, is_early=is_early)
    not_done = replace(known, key_known_until=None, provider=None)  # any provider may do it now
    if step.skipped_as_done:
        cause = Cause(Code.FOUND_NOT_DONE)
        not_done = replace(not_done, state=StepState.FAILED, cause=cause)
    return transition(order, order.with_steps(not_done), entry)


def _settled(
    asked: Asked, now: datetime, step: Step, *, goes_on: bool, is_early: bool = False
) -> HistoryEntry:
    settled = Settled(
        what="settled" if goes_on else "step-settled",
        step=step.name,
        was_done=bool(asked.was_done),
        late_effect=is_early,
        note=asked.note,
    )
    return _entry(asked, now, settled)


# Cancel


def why_not_cancel(order: Snapshot) -> str:
    """Return why the order cannot be cancelled; empty if it can."""
    state = order.state
    if state.process_state is ProcessState.PROCESSED:
        return (
            "the order is Processed: what takes it back is a workflow of its own, such as `return`"
        )
    if state.meaning.is_over:
        return f"the order is {state.meaning.word} already"
    if state.direction is not Direction.UNDO:
        return _why_no_way_back(order)
    stopped = state.process_state is ProcessState.ERROR
    hint = ": a resubmit lets the undo go on" if stopped else ""
    return f"the order is being undone already{hint}"


def _why_no_way_back(order: Snapshot) -> str:
    """Return by which steps the order is past its point of no return; empty if it is not."""
    passed = " and ".join(step.name for step in order.passed_pivots())
    what = "was done, or may have been, and cannot be taken back"
    return f"the order is past its point of no return: {passed} {what}" if passed else ""


def cancel(order: Snapshot, asked: Asked, now: datetime) -> Change:
    """Ask for the undo of an order that is not finished, whatever it is doing (OPR-4, UND-1)."""
    entry = _entry(asked, now, ActedOn(what="cancelled", note=asked.note))
    return _cancelled(order, "operator", entry)


def _cancelled(order: Snapshot, by: str, entry: HistoryEntry) -> Change:
    """Turn the order back.

    Agents answer or expire first, so a scheduler that handles the order keeps it (SCH-12).
    """
    after = turn_back(order).with_state(cause=Cause(Code.CANCELLED, {"by": by}))
    entry = entry.also(*withdrawals(order))
    is_handled = order.state.process_state is ProcessState.PROCESSING and after.running()
    return transition(order, after if is_handled else after.requeued(), entry)


TOO_LATE = "it is too late: the order has gone too far to be cancelled"


def why_customer_cannot_cancel(order: Snapshot, until: str | None) -> str:
    """Return why its customer cannot cancel the order, in words for customers; empty if possible.

    `until` names the step that must not have begun; None means that customers never may.
    """
    if until is None:
        return "such an order cannot be cancelled"
    if order.state.direction is Direction.UNDO or order.state.outcome is Outcome.UNDONE:
        return "the order is being taken back, or was taken back, already"
    step = order.step(until)
    if step is None or step.attempts or step.state is not StepState.NOT_STARTED:
        return TOO_LATE
    if order.passed_pivots():
        return TOO_LATE
    return "the order is done" if why_not_cancel(order) else ""


def cancel_for_customer(order: Snapshot, until: str | None, now: datetime) -> Change:
    """Cancel the order as `cancel` does, at its customer's wish (SUB-8).

    Raises `RefusedError` if the step `until` has begun, or the order does not allow it.
    """
    if why_not := why_customer_cannot_cancel(order, until):
        raise RefusedError(why_not)
    happened = (ActedOn(what="cancelled", note="the customer asked for it"),)
    entry = HistoryEntry(at=now, actor="customer", happened=happened)
    return _cancelled(order, "customer", entry)


# Hold and release


def why_not_hold(order: Snapshot) -> str:
    """Return why the order cannot be held; empty if it can."""
    if order.state.process_state in ENDED:
        return f"the order is {order.state.process_state}: nothing of it starts by itself"
    return f"{order.state.held_by} holds the order already" if order.state.is_held else ""


def hold(order: Snapshot, asked: Asked, now: datetime) -> Change:
    """Let no step of the order start; running steps answer, or expire and are recovered (OPR-7)."""
    after = order.put_on_hold(asked.operator, asked.note, now)
    return transition(order, after, _entry(asked, now, ActedOn(what="held", note=asked.note)))


def why_not_release(order: Snapshot) -> str:
    """Return why the order cannot be released; empty if it can."""
    return "" if order.state.is_held else "nobody holds the order"


def release(order: Snapshot, asked: Asked, now: datetime) -> Change:
    """Let the order go on from where it was held; chosen dates stay as they are (OPR-7).

    The deadline of an answer from outside moves by the time for which the order was held.
    """
    after = order.with_steps(*_moved(order, now - (order.state.held_since or now))).released()
    return transition(order, after, _entry(asked, now, ActedOn(what="released", note=asked.note)))


def _moved(order: Snapshot, by: timedelta) -> Iterator[Step]:
    """Yield the steps whose answer is awaited, with later deadlines."""
    for step in order.awaited():
        if step.complete_by:
            yield replace(step, complete_by=step.complete_by + max(by, timedelta()))


# Hurry


def why_not_hurry(order: Snapshot) -> str:
    """Return why the order's priority cannot be raised; empty if it can."""
    if order.state.process_state in ENDED:
        return f"the order is {order.state.process_state}: it waits for no claim"
    if order.state.priority is Priority.HIGH and not _cooling_down(order):
        return "the order has high priority already"
    return ""


def _cooling_down(order: Snapshot) -> tuple[Step, ...]:
    return tuple(step for step in order.steps if step.cools_down)


def hurry(order: Snapshot, asked: Asked, now: datetime) -> Change:
    """Give the order high priority: it is claimed before normal ones (SCH-11, OPR-8).

    A cooldown ends, for the operator knows that its cause is mended; other dates stay.
    """
    tried_now = (replace(step, not_before=None) for step in _cooling_down(order))
    after = order.with_steps(*tried_now).with_state(priority=Priority.HIGH)
    return transition(order, after, _entry(asked, now, ActedOn(what="hurried", note=asked.note)))


def _entry(
    asked: Asked, now: datetime, happened: ActedOn | Renewed | Settled | Skipped
) -> HistoryEntry:
    return HistoryEntry(at=now, actor=f"operator/{asked.operator}", happened=(happened,))


ACTIONS = (
    Action(
        name="resubmit",
        title="Resubmit",
        button="Resubmit",
        effect="The steps that failed start again with a fresh count. "
        "What is completed stays completed.",
        done="resubmitted",
        why_not=why_not_resubmit,
        why_not_now=why_not_resubmit_now,
        decide=resubmit,
        lists=(Kind.ERROR,),
    ),
    Action(
        name="skip",
        title="Skip a step",
        button="Skip it",
        effect="The order goes on without this step, because it was done, or taken back, "
        "by other means.",
        done="skipped",
        of_step=True,
        steps_of=lambda order, _: may_be_skipped(order),
        why_not=why_not_skip,
        decide=skip,
        lists=(Kind.ERROR,),
    ),
    Action(
        name="renew",
        title="Do a step anew",
        button="It was not done: do it",
        effect="It is unknown whether the step was done under its former key. It is done under a "
        "new one; if it was done before, it is done twice.",
        done="renewed",
        danger=True,
        of_step=True,
        steps_of=_forgotten,
        why_not=why_not_renew,
        why_not_now=why_not_renew_now,
        decide=renew,
        lists=(Kind.ERROR,),
    ),
    Action(
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
        steps_of=lambda order, _: in_doubt(order),
        why_not=why_not_settle,
        decide=settle,
        lists=(Kind.ERROR,),
    ),
    Action(
        name="cancel",
        title="Cancel the order",
        button="Take all of it back",
        effect="Everything that was ever tried is taken back, last first. "
        "Steps that run answer or expire before. This cannot be stopped.",
        done="cancelled",
        danger=True,
        why_not=why_not_cancel,
        decide=cancel,
        lists=(Kind.ERROR,),
    ),
    Action(
        name="hold",
        title="Hold",
        button="Hold it",
        effect="Nothing of the order starts until it is released. What runs is answered, "
        "or its time is up; the deadline of an answer from outside moves.",
        done="held",
        why_not=why_not_hold,
        decide=hold,
        lists=(Kind.PENDING, Kind.RUNNING, Kind.WAITING),
    ),
    Action(
        name="release",
        title="Release",
        button="Release it",
        effect="The order goes on from where it was held. "
        "Dates that it waits for stay as they are.",
        done="released",
        why_not=why_not_release,
        decide=release,
        lists=(Kind.HELD,),
    ),
    Action(
        name="hurry",
        title="Raise the priority",
        button="Raise it",
        effect="The order is claimed before those of normal priority. A cooldown ends now.",
        done="hurried",
        why_not=why_not_hurry,
        decide=hurry,
        lists=(Kind.PENDING,),
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
HOLD_AGENT = Words(
    name="hold-agent",
    subject=Subject.AGENT,
    title="Hold the agent",
    button="Hold it",
    effect="No request is sent to the agent until that time. Orders that need it wait, "
    "and no failure is counted. What is under way may end.",
    done="held",
)
RELEASE_AGENT = Words(
    name="release-agent",
    subject=Subject.AGENT,
    title="Release the agent",
    button="Release it",
    effect="Requests are sent to the agent again. Orders that waited for it go on.",
    done="released",
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
OTHERS = (ERASE, REVEAL, REDRIVE, DROP, HOLD_AGENT, RELEASE_AGENT)
"""The actions on an order's personal data, on an unreadable message, and on an agent."""
OF_ANSWERS = (ANSWER, REFUSE, EXTEND, REMIND, LINK)
"""What operators do about an answer from outside."""

RUNS = {
    "sweep": "Recover the overdue orders, as the supervisor does; nothing without its lease.",
    "poll": "Claim the orders that wait, as the scheduler does.",
    "relay": "Send the alerts and notices that are due.",
    "watch": "Look for standstill, and raise alerts.",
    "notify": "Send people the alerts that wait.",
    "retention": "Remove what is older than the retention time.",
}
"""The periodic work that operators can run by hand, with what each run does (SUP-7)."""
