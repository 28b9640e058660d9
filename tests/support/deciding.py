"""Decisions on the new records, told as those of today, so that both can be compared."""

from converting import differences, lost, to_new, to_old

from core import happenings as old
from core.changes import Change, NotClaimed, Note
from core.messages import request_id_of
from engine.decisions.claim import NotClaimed as NotClaimedAnew
from engine.decisions.claim import claim
from engine.decisions.proceed import Scheduler
from engine.decisions.recover import AttemptReport, recover
from engine.decisions.reply import Delivery, RefusedReply, receive
from engine.decisions.transitions import Transition
from engine.domain import events as new
from engine.features.external_events import CallbackUrls
from engine.words import words_of
from stores.agent_health import fault_of, has_begun

SAME = {
    new.StepCompleted: old.StepCompleted,
    new.StepUndone: old.StepUndone,
    new.RequestCancelled: old.Withdrawn,
    new.ExternalEventRecorded: old.Answered,
    new.OptionalStepFailed: old.PassedOver,
    new.CooldownStarted: old.CoolsDown,
    new.AttemptExpired: old.Expired,
    new.AttemptDeferred: old.Accepted,
    new.Claimed: old.Claimed,
    new.Recovered: old.Recovered,
    new.OrderProcessed: old.Processed,
    new.WorkflowChanged: old.WorkflowChanged,
}
"""Events that have the same fields."""


def happening_of(event):
    """The event as today's history has it, with the cause in words."""
    if kind := SAME.get(type(event)):
        names = type(event).__dataclass_fields__
        return kind(**{name: getattr(event, name) for name in names})
    match event:
        case new.StepStarted(step=step, attempt=attempt, generation=generation):
            return old.StepStarted(
                step=step,
                attempt=attempt,
                capability=event.capability,
                agent=event.agent,
                complete_by=event.complete_by,
                undo=event.is_undo,
                round=generation or None,
            )
        case new.StepFailed(step=step, attempt=attempt, cause=cause):
            return old.StepFailed(step=step, attempt=attempt, reason=words_of(cause))
        case new.NotAttempted(step=step, attempt=attempt, cause=cause):
            return old.NotTried(step=step, attempt=attempt, reason=words_of(cause))
        case new.SkippedByCondition(step=step, condition=condition):
            return old.NotNeeded(step=step, predicate=condition)
        case new.StepScheduled(step=step, until=until, by=by):
            return old.BeginsLater(step=step, until=until, by=by)
        case new.Requeued(until=until, is_chosen=is_chosen):
            return old.Waits(until=until) if is_chosen else old.PutBack(until=until)
        case new.UndoRequested(step=step, cause=cause):
            return old.UndoRequested(step=step, reason=words_of(cause))
        case new.OrderEnded(outcome=outcome, step=step, cause=cause):
            reason = words_of(cause) if cause else None
            return old.Ended(what=outcome.value, step=step, reason=reason)
        case new.ReplyRefused(step=step, attempt=attempt, cause=cause):
            return old.ReplyRefused(step=step, attempt=attempt, why=words_of(cause))
    raise LookupError(f"no event of today is a {type(event).__name__}")


def reports_of(order, heard):
    """What agents have reported of the running attempts of an order of today."""
    found = {}
    for step in order.running():
        request = request_id_of(order.order_id, step)
        fault = fault_of(heard, request)
        found[request] = AttemptReport(
            has_begun=has_begun(heard, request),
            fault=fault and fault.text,
            by_gateway=bool(fault and fault.at_door),
        )
    return found


def scheduler_of(rules):
    """The scheduler of today's rules."""
    links = rules.links
    return Scheduler(
        instance=rules.instance,
        workflows=rules.workflows,
        payload=rules.payload,
        providers=rules.providers,
        agents=rules.agents,
        callbacks=links and CallbackUrls(address=links.address, new_token=links.new_right),
        clock_tolerance=rules.clock_tolerance,
        version_overlap=rules.longest_upgrade,
    )


def decide_anew(decision):
    """Make a decision of today again, on the new records."""
    order, arguments = to_new(decision.order), decision.arguments
    if decision.kind == "recover":
        now, heard = arguments
        reports = reports_of(decision.order, heard)
        return recover(order, now, reports, decision.rules.clock_tolerance)
    scheduler = scheduler_of(decision.rules)
    if decision.kind == "claim":
        now, room = arguments
        return claim(order, now, room, scheduler)
    reply, now, room, agent = arguments
    return receive(order, Delivery(reply, agent), now, room, scheduler)


def differ(decision, again):
    """What the same decision on both records has otherwise, as short texts."""
    before = decision.result
    match before, again:
        case None, None:
            return set()
        case NotClaimed(), NotClaimedAnew():
            return set() if before.why == again.why else {f"why: {before.why} / {again.why}"}
        case Note(), RefusedReply():
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
