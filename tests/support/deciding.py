"""Actions, answers and submissions on the new records, told as those of today, so that both can be compared."""

from datetime import timedelta

from converting import differences, lost

from core import answers
from core.actions import BY_NAME, Asked
from core.answers import answered
from core.changes import Change, Note
from core.errors import InvalidError, RefusedError
from core.links import Links
from core.workflow import Workflows
from engine.conversion.history import happening_of
from engine.conversion.records import to_new, to_old
from engine.decisions.actions import (
    cancel,
    expedite,
    extend_deadline,
    hold,
    new_callback_url,
    release,
    remind,
    resubmit,
    retry_with_new_key,
    settle,
    skip,
)
from engine.decisions.errors import ActionRefusedError
from engine.decisions.external_event import EventNotAcceptedError, ExternalEvent, record
from engine.decisions.submit import RefusedSubmission, StepDefaults, Wishes, submit
from engine.decisions.transitions import Transition
from engine.features.external_events import CallbackUrls
from engine.words import words_of
from submission import rules


def answered_anew(order, answer, now):
    """Record an answer of today on the new records; the words of the error if it is refused."""
    event = ExternalEvent(
        step=answer.step,
        result=answer.result,
        refusal=answer.refusal,
        for_good=answer.for_good,
    )
    try:
        return record(to_new(order), event, now)
    except EventNotAcceptedError as error:
        return words_of(error.cause)


def answered_today(order, answer, now):
    """Record an answer on the records of today; the words of the error if it is refused."""
    try:
        return answered(order, answer, "outside", now)
    except RefusedError as error:
        return str(error)


ACTIONS = {
    "cancel": lambda it, now: cancel.decide(it, cancel.OPERATOR, NOTE, now),
    "hold": lambda it, now: hold.decide(it, OPERATOR, NOTE, now),
    "release": lambda it, now: release.decide(it, NOTE, now),
    "hurry": lambda it, now: expedite.decide(it, NOTE, now),
    "resubmit": lambda it, now: resubmit.decide(it, NOTE, now),
}
REFUSALS = {
    "cancel": lambda it, now: cancel.refusal(it),
    "hold": lambda it, now: hold.refusal(it),
    "release": lambda it, now: release.refusal(it),
    "hurry": lambda it, now: expedite.refusal(it),
    "resubmit": resubmit.refusal,
}
OPERATOR, NOTE = "grace", "the customer asked"


FOUND = (
    {"was_done": True, "answer": {"number": "1"}},
    {"was_done": True, "answer": {}},
    {"was_done": False},
    {"was_done": False, "confirm_late_effect": True},
)
"""What an operator may have found out about a step in doubt, in the words of today."""


def settled_anew(it, name, now, said):
    """Settle a step in doubt by what an operator of today found out."""
    confirmed = said.get("confirm_late_effect", False)
    finding = settle.Finding(result=said.get("answer"), confirms_late_effect=confirmed)
    return settle.decide(it, settle.step_of(it, name), finding, NOTE, now)


STEP_ACTIONS = {
    "skip": lambda it, name, now, said: skip.decide(it, skip.step_of(it, name), NOTE, now),
    "renew": lambda it, name, now, said: retry_with_new_key.decide(
        it, retry_with_new_key.step_of(it, name, now), NOTE, now
    ),
    "settle": settled_anew,
}
REFUSALS |= {
    "skip": lambda it, now: skip.refusal(it),
    "renew": retry_with_new_key.refusal,
    "settle": lambda it, now: settle.refusal(it),
}


URLS = CallbackUrls(address="https://orders.example", new_token=lambda: "fresh")
LINKS = Links(address=URLS.address, new_right=URLS.new_token)
AWAITED_ANEW = {
    "extend": lambda it, name, now, until: extend_deadline.decide(
        it, extend_deadline.step_of(it, name), until, NOTE, now
    ),
    "remind": lambda it, name, now, _: remind.decide(it, remind.step_of(it, name), NOTE, now),
    "renew-link": lambda it, name, now, _: new_callback_url.decide(
        it, new_callback_url.step_of(it, name), URLS, NOTE, now
    ),
}
AWAITED_TODAY = {
    "extend": answers.extended,
    "remind": lambda order, asked, _, now: answers.reminded(order, asked, now),
    "renew-link": lambda order, asked, _, now: answers.with_new_link(order, asked, LINKS, now),
}
"""Actions on a step that is completed from outside."""


def awaited_anew(it, name, step, until, now):
    """Act on how an external event is awaited; the words of the refusal."""
    try:
        return AWAITED_ANEW[name](it, step, now, until)
    except ActionRefusedError as error:
        return words_of(error.cause)
    except InvalidError as error:
        return str(error)


def awaited_today(order, name, step, until, now):
    """Act on how an answer from outside is awaited; the words of the refusal."""
    asked = Asked(operator=OPERATOR, note=NOTE, step=step)
    try:
        return AWAITED_TODAY[name](order, asked, until, now)
    except (RefusedError, InvalidError) as error:
        return str(error)


DEFAULTS = StepDefaults(timeout=timedelta(seconds=5), threshold=3, cooldown=timedelta(seconds=60))


def terms_of(workflow, payload):
    """The settings of new orders in an app with one workflow."""
    return rules.Terms(
        workflows=Workflows(workflow),
        default_workflow=workflow.name,
        payload=payload,
        reply_to_prefix="status-",
        buckets=frozenset({"b00"}),
        timeout=DEFAULTS.timeout,
        threshold=DEFAULTS.threshold,
        cooldown=DEFAULTS.cooldown,
    )


def submitted_today(message, workflow, payload, now):
    """The first version of an order on the records of today."""
    return rules.new_order(message, workflow, terms_of(workflow, payload), now, "submission/1")


def submitted_anew(message, order, workflow, now):
    """The first version of this order on the new records."""
    wishes = Wishes(priority=message.priority, reply_to=message.reply_to)
    return submit(order, workflow, wishes, DEFAULTS, now)


def repeated_today(existing, change, payload, body, now):
    """What becomes of a message about a recorded order on the records of today."""
    if rules.same_submission(existing, change.after, payload):
        return None
    return rules.refusal_of(existing, body, now, now, "submission/1")


def acted_anew(it, name, now):
    """Act on an order of the new records; the words of the refusal if it makes no sense."""
    if cause := REFUSALS[name](it, now):
        return words_of(cause)
    return ACTIONS[name](it, now)


def acted_on_step_anew(it, name, step, now, said):
    """Act on a step of the new records, or on the only one; `said` is what an operator found out."""
    if cause := REFUSALS[name](it, now):
        return words_of(cause)
    try:
        return STEP_ACTIONS[name](it, step, now, said)
    except ActionRefusedError as error:
        return words_of(error.cause)


def acted_today(order, name, now, **asked):
    """Act on the records of today; the words of the refusal if it makes no sense."""
    try:
        return BY_NAME[name].act(order, Asked(operator=OPERATOR, note=NOTE, **asked), now)
    except RefusedError as error:
        return str(error)


def differ_in(before, again):
    """What two results have otherwise, as short texts."""
    match before, again:
        case None, None:
            return set()
        case str(), str():
            return set() if before == again else {f"{before} / {again}"}
        case Note(), RefusedSubmission():
            happened = (happening_of(again.event),)
            same = (before.note_id, before.entry.happened) == (again.note_id, happened)
            return set() if same else {"note"}
        case Change(), Transition():
            return differ_in_change(before, again)
    return {f"{type(before).__name__} / {type(again).__name__}"}


def differ_in_change(before, again):
    back = to_old(again.after)
    found = {f"state: {name}" for name in differences(before.after.state, back.state)}
    for step, its_like in zip(before.after.steps, back.steps, strict=True):
        found |= {f"step: {name}" for name in lost(step, its_like)}
    if before.entry.happened != tuple(map(happening_of, again.events)):
        found.add("events")
    if before.messages != again.messages:
        found.add("messages")
    return found
