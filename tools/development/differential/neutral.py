"""Rows in the form of the first version of the run, made from the order and its events.

The form of rows changes with the app, but the decisions stay. So this module defines the first form itself: plain
columns, made only from `engine.domain`. Like `side.py`, it knows the records of its commit, and the run takes it from
each side.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from engine.domain import events as e
from engine.domain.causes import Cause
from engine.domain.effects import Doubt, NotDone
from engine.domain.keys import newest_first, order_key, sortable, state_key
from engine.domain.orders import (
    PROCESS_STATE,
    InError,
    OrderAggregate,
    Pending,
    Processed,
    Processing,
)
from engine.domain.states import (
    PATTERN_STATE,
    AtWork,
    AwaitingExternalEvent,
    ConditionPending,
    Failed,
    NothingToUndo,
    UnderWay,
    UndoFailed,
)
from engine.domain.statuses import Outcome
from engine.domain.steps import Step
from engine.domain.submitted_order import OnFailure, Priority
from engine.words.causes import words_of

Json = Mapping[str, Any]
Rows = dict[str, Any]


def rows(before: OrderAggregate | None, after: OrderAggregate) -> Rows:
    """Return the order's own rows that a transition writes, by key, with None for a deleted row."""
    is_new = before is None or before.etag is None
    written: Rows = {state_key(after.order_id): state_columns(after)}
    if before is None or is_new or before.submitted != after.submitted:
        written[order_key(after.order_id)] = order_columns(after)
    keys = after.submitted.key_rows
    if is_new:
        written |= {key: {"OrderID": after.order_id} for key in keys}
    elif before:
        gone = (key for key in before.submitted.key_rows if key not in keys)
        written |= dict.fromkeys(gone)
    index = index_rows(after)
    met = index_rows(before).keys() - index.keys() if before and not is_new else ()
    return written | dict.fromkeys(met) | index


# The order


def order_columns(order: OrderAggregate) -> Json:
    """Return the columns of the order as it was submitted."""
    submitted = order.submitted
    return {
        "OrderID": submitted.order_id,
        "PlacedAt": _time(submitted.placed_at),
        "Payload": submitted.payload,
        "NotBefore": _time(submitted.not_before),
        "SubmissionDigest": submitted.submission_digest,
        "KeyRows": [*submitted.key_rows],
    }


def state_columns(order: OrderAggregate) -> Json:
    """Return the columns of the order's state, with its steps and their results."""
    derived, hold = order.derived, order.hold
    return {
        "OrderID": order.order_id,
        "Workflow": order.workflow,
        "WorkflowVersion": order.workflow_version,
        "ProcessState": str(PROCESS_STATE[type(order.state)]),
        "LockedBy": derived.locked_by,
        "CompleteBy": _time(derived.complete_by),
        "FailureCount": order.failures,
        "Version": order.version,
        "Priority": str(order.priority),
        "WaitsSince": _time(derived.ready_since),
        "NotBefore": _time(derived.not_before),
        "UpdatedAt": _time(order.updated_at),
        "Direction": str(order.direction),
        "Outcome": _outcome(order),
        "Reason": _words(order.cause),
        "HeldBy": hold and hold.by,
        "HeldBecause": hold and hold.note,
        "HeldSince": _time(hold.since) if hold else None,
        "ReplyTo": order.reply_to,
        "Steps": [step_columns(step) for step in order.steps],
        **{
            f"Result{number:02d}": step.result
            for number, step in enumerate(order.steps)
            if step.result is not None
        },
    }


def step_columns(step: Step) -> Json:
    """Return a step as an object of the column `Steps`: its rules, counts, effect and state side by side."""
    rules, counts, effect, key = step.rules, step.counts, step.effect, step.key
    may_continue = rules.on_failure is OnFailure.CONTINUE
    is_pending = isinstance(step.state, ConditionPending)
    was_pending = isinstance(step.state, Failed) and step.state.condition_pending
    return {
        "Name": step.name,
        "Title": rules.title,
        "Capability": rules.capability,
        "Agent": step.agent,
        "Provider": key and key.provider,
        "TimeoutSeconds": rules.timeout.total_seconds(),
        "Threshold": rules.threshold,
        "OnFailure": "error" if may_continue else str(rules.on_failure),
        "GoesOn": may_continue,
        "Pivot": rules.pivot,
        "Unjudged": is_pending or was_pending,
        "After": [*rules.after],
        "Uses": [*rules.uses],
        "Personal": [*rules.personal],
        "Right": step.callback_token,
        "Undoable": rules.undoable,
        "LateEffectWindowSeconds": rules.late_effect_window.total_seconds(),
        "CooldownSeconds": rules.cooldown.total_seconds(),
        "MaxCooldowns": rules.max_cooldowns,
        "Cooldowns": counts.cooldowns,
        "Fingerprint": rules.fingerprint,
        "State": str(PATTERN_STATE[type(step.state)]),
        "CompleteBy": _text(step.complete_by),
        "SettledAt": _text(key.effects_final_at) if key else None,
        "NotBefore": _text(step.not_before),
        "RetryBy": _text(step.retry_by),
        "Attempts": counts.attempts,
        "FailureCount": counts.failures,
        "Uncounted": counts.uncounted,
        "Reason": _words(step.cause),
        "InDoubt": isinstance(effect, Doubt) and effect.unanswered,
        "AnswerBy": _text(step.answer_by),
        "Round": key.generation if key else 0,
        "RefusedForGood": isinstance(effect, NotDone) and effect.refused_for_good,
        "KeyKnownUntil": _text(key.known_until) if key else None,
        "ForOperator": getattr(step.state, "operator_decides", False),
    }


def _outcome(order: OrderAggregate) -> str | None:
    return str(order.state.outcome) if isinstance(order.state, InError) else None


# The rows that say what is due

RANK = {Priority.HIGH: "0", Priority.NORMAL: "1"}
MAX_SHOWN = 200


def index_rows(order: OrderAggregate) -> Rows:
    """Return the rows that are due for the order, or that list it when it is over, by key."""
    row = _summary(order)
    if order.is_over:
        name = "processed" if isinstance(order.state, Processed) else "undone"
        return {f"_ended|{name}|{newest_first(order.updated_at)}|{order.order_id}": row}
    return {f"{key}|{order.order_id}": row for key in _due(order)}


def _due(order: OrderAggregate) -> Iterator[str]:
    if order.blocked() is None:
        yield f"!pending|{RANK[order.priority]}|{_needs(order)}|{_place(order)}"
    yield from _first("!running", order.in_state(AtWork))
    if not order.hold:
        yield from _first("!waiting", order.in_state(AwaitingExternalEvent))
    if isinstance(order.state, InError):
        yield f"!error|{sortable(order.updated_at)}"
    if order.hold:
        yield f"!held|{sortable(order.hold.since)}"


def _needs(order: OrderAggregate) -> str:
    """Return the capability of the first step that is ready. `-` if a claim needs none."""
    since = order.derived.ready_since
    first = min(
        order.ready, key=lambda step: (step.not_before or since, not step.is_external), default=None
    )
    return "-" if first is None or first.is_external else first.rules.capability


def _place(order: OrderAggregate) -> str:
    until = order.derived.not_before
    is_pause = any(step.is_backing_off and order.starts_at(step) == until for step in order.ready)
    if until and not is_pause:
        return f"later|{sortable(until)}"
    return sortable(order.derived.ready_since)


def _first(kind: str, steps: Iterable[Step]) -> Iterator[str]:
    times = [step.complete_by for step in steps if step.complete_by]
    if times:
        yield f"{kind}|{sortable(min(times))}"


def _list_of(order: OrderAggregate) -> str:
    if order.is_over:
        return "Processed" if isinstance(order.state, Processed) else "Undone"
    if isinstance(order.state, InError):
        return "Error"
    if order.hold:
        return "Held"
    if order.has_any(AwaitingExternalEvent):
        return "Waiting"
    is_claimable = isinstance(order.state, Pending) and order.blocked() is None
    return "Pending" if is_claimable else "Processing"


def _status(order: OrderAggregate) -> str:
    if isinstance(order.state, Processed):
        return "processed"
    if isinstance(order.state, InError):
        return str(order.state.outcome)
    if order.hold:
        return "held"
    if order.is_undo:
        return "undoing"
    if isinstance(order.state, Processing) and order.derived.locked_by is None:
        return "awaiting"
    return "again" if order.failures else str(PROCESS_STATE[type(order.state)]).lower()


def _summary(order: OrderAggregate) -> Json:
    """Return the columns that lists show of the order."""
    failed: Sequence[Step] = order.in_state(Failed | UndoFailed | NothingToUndo)  # type: ignore[arg-type]
    if _outcome(order) == Outcome.UNDO_INCOMPLETE:
        failed = order.in_state(UndoFailed) or failed
    hold, awaited = order.hold, order.in_state(AwaitingExternalEvent)
    held = f"held by {hold.by}: {hold.note}" if hold else None
    return {
        "OrderID": order.order_id,
        "List": _list_of(order),
        "Situation": _status(order),
        "ProcessState": str(PROCESS_STATE[type(order.state)]),
        "FailureCount": order.failures,
        "Priority": str(order.priority),
        "WaitsSince": _time(order.derived.ready_since),
        "NotBefore": _time(order.derived.not_before),
        "Workflow": order.workflow,
        "WorkflowVersion": order.workflow_version,
        **({} if order.has_ended else _current(order)),
        "Agents": " ".join(step.agent for step in order.in_state(AtWork)),
        "WaitsFor": " ".join(step.name for step in awaited),
        "Outcome": _outcome(order),
        "FailedSteps": " ".join(step.name for step in failed),
        "FailedAgents": " ".join(step.agent for step in failed),
        "Reason": held or _words(order.cause),
        "UpdatedAt": _time(order.updated_at),
    }


def _current(order: OrderAggregate) -> Json:
    """Return the columns that lists show of the order's present step: the one that failed most often."""
    steps = (*order.in_state(UnderWay), *order.ready)
    at = max(steps, key=lambda step: step.counts.failures, default=None)
    if at is None:
        return {}
    last = _words(at.cause) or ("timed out" if at.counts.failures else None)
    return {
        "Step": at.name,
        "Attempt": at.counts.failures + 1,
        "Threshold": at.rules.threshold,
        "LastAnswer": last and last[:MAX_SHOWN],
        "CompleteBy": _time(at.complete_by),
    }


# The history

SIMPLE: Mapping[type[e.HistoryEvent], str] = {
    e.StepStarted: "step-started",
    e.StepCompleted: "step-completed",
    e.StepUndone: "step-undone",
    e.StepFailed: "step-failed",
    e.ExternalRequestCancelled: "step-withdrawn",
    e.ExternalEventRecorded: "step-answered",
    e.EarlyRefusalRecorded: "step-refused-early",
    e.OptionalStepFailed: "passed-over",
    e.SkippedByCondition: "not-needed",
    e.StepScheduled: "begins-later",
    e.NotAttempted: "not-tried",
    e.AttemptDeferred: "accepted",
    e.AttemptExpired: "expired",
    e.CooldownStarted: "cooldown",
    e.Submitted: "submitted",
    e.SubmissionRefused: "submission-refused",
    e.Claimed: "claimed",
    e.Recovered: "recovered",
    e.UndoRequested: "undo-requested",
    e.OrderProcessed: "processed",
    e.WorkflowChanged: "workflow-changed",
    e.ReplyRefused: "reply-refused",
    e.Restored: "restored",
    e.DeadlineMoved: "wait-extended",
    e.PersonalDataErased: "erased",
    e.PersonalDataRevealed: "revealed",
}
ACTIONS = {
    "cancel": "cancelled",
    "hold": "held",
    "release": "released",
    "expedite": "hurried",
    "resubmit": "resubmitted",
    "remind": "reminded",
    "new-callback-url": "link-renewed",
}
ON_STEP = {"skip": "skipped", "retry-with-new-key": "renewed", "settle": "settled"}
"""Actions on a step. If the order does not continue by the action, its name begins with `step-`."""
FIELDS = {
    "is_undo": "undo",
    "generation": "round",
    "complete_by": "completeBy",
    "not_before": "notBefore",
    "condition": "predicate",
    "held_by": "heldBy",
    "was_done": "wasDone",
    "late_effect_possible": "lateEffect",
    "copied_at": "copiedAt",
    "cause": "reason",
}
OF_THE_NAME = ("action", "resumes", "outcome", "is_chosen")
"""Fields that repeat the name of the event."""
SINCE = ("is_overloaded",)
"""Newer fields of events. An event with their default has the former form."""


def event(happened: e.HistoryEvent) -> Json:
    """Return an event of the history in the form of the column `Data`."""
    name = _name(happened)
    fields = {"what": name}
    for own in type(happened).__dataclass_fields__:
        value = getattr(happened, own)
        if own not in OF_THE_NAME and (value or own not in SINCE):
            fields[FIELDS.get(own, own)] = _plain(value)
    if name in ("reply-refused", "submission-refused"):
        fields["why"] = fields.pop("reason")
    if name == "cancelled" and not fields["note"]:
        fields["note"] = "the customer asked for it"
    if name == "waits" and fields["heldBy"]:
        del fields["until"]
    return fields


def _name(happened: e.HistoryEvent) -> str:
    match happened:
        case e.Requeued():
            return "waits" if happened.is_chosen or happened.held_by else "put-back"
        case e.OrderEnded():
            return str(happened.outcome)
        case e.StepActionTaken(action=action) if action in ON_STEP:
            return f"{'' if happened.resumes else 'step-'}{ON_STEP[action]}"
        case e.ActionTaken() if type(happened) not in SIMPLE:
            return ACTIONS[happened.action]
    return SIMPLE[type(happened)]


# Values


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return _text(value)
    return _words(value) if isinstance(value, Cause) else value


def _words(cause: Cause | None) -> str | None:
    return words_of(cause) if cause else None


def _time(value: datetime | None) -> str | None:
    """Return a time in the form of a column."""
    return value.astimezone(UTC).isoformat() if value else None


def _text(value: datetime | None) -> str | None:
    """Return a time in the form of an object inside a column."""
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z") if value else None
