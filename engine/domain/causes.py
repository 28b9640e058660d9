"""Causes: codes with facts that say why something failed, was skipped or was refused.

Decisions, groups, alerts and tests use the code. `engine.words` makes the text for people.
"""

import json
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeGuard

from engine.domain.digests import digest_of
from engine.domain.texts import plain, without_particulars

# A row has room for the facts of 20 steps, whatever characters a service sends.
MAX_LENGTH = 400
"""Maximum length of the facts that a step keeps, as JSON in UTF-16 units. The history has the whole
cause."""


class Code(StrEnum):
    """The kinds of causes. `FACTS` names the facts of each kind."""

    # An attempt ended without a result.
    TIMED_OUT = "timed-out"
    """No reply came before the complete-by time (SUP-3)."""
    NOT_BEGUN = "not-begun"
    """No reply came, and no agent reported that it began the request."""
    AGENT_OVERLOADED = "agent-overloaded"
    """No reply came, because the agent is overloaded: its calls time out for several orders
    (SUP-3)."""
    NO_EXTERNAL_EVENT = "no-external-event"
    """The external event did not come by the time at which it was due (ANS-2)."""
    NOT_ATTEMPTED = "not-attempted"
    """The agent did not call its service, or the service throttles the calls (AGT-8)."""

    # A step has failed.
    REFUSED = "refused"
    """The service or an external party refused (AGT-6, ANS-3)."""
    CALL_REJECTED = "call-rejected"
    """The request is invalid, or no reply can carry the answer of the service. The service itself
    did not refuse."""
    RESULT_TOO_LONG = "result-too-long"
    """The result is too long to be kept."""
    THRESHOLD_REACHED = "threshold-reached"
    """The number of timed-out attempts reached the threshold (SUP-3)."""
    EXTERNAL_EVENT_MISSING = "external-event-missing"
    """The external event did not come in any of the allowed attempts (ANS-2)."""
    NO_AGENT_BEGAN = "no-agent-began"
    """No agent began the step within the time or the number of requests that the settings allow
    (SUP-9)."""
    REQUEST_FAILED = "request-failed"
    """The workflow raised an error when it made the request."""
    CONDITION_FAILED = "condition-failed"
    """The condition or the start time of the step raised an error (SCH-14, SCH-15)."""
    STEP_REMOVED = "step-removed"
    """The workflow no longer has this step."""
    KEY_FORGOTTEN = "key-forgotten"
    """The service may have forgotten the idempotency key of a step in doubt (AGT-12)."""
    PROVIDER_GONE = "provider-gone"
    """No agent calls the provider that knows the idempotency key (AGT-3)."""
    FOUND_NOT_DONE = "found-not-done"
    """An operator found that the step was not done, although it had been skipped as done
    (OPR-12)."""

    # A step is skipped, or an order changes direction or ends.
    CONDITION_NOT_MET = "condition-not-met"
    """The condition of the step is false, so the step is not needed (SCH-14)."""
    STEP_FAILED = "step-failed"
    """The order is undone because of a failed step (UND-1)."""
    CANCELLED = "cancelled"
    """An operator or the customer cancelled the order (OPR-4, SUB-8)."""
    UNDO_RESUMED = "undo-resumed"
    """An operator resumed an undo that had failed (UND-4)."""
    DEADLINE_PASSED = "deadline-passed"
    """The order was still open at its deadline (SCH-17)."""
    WORKFLOW_RETIRED = "workflow-retired"
    """The order follows a version of its workflow that the app no longer has (FLT-12)."""

    # A message was refused.
    SUBMISSION_CONFLICT = "submission-conflict"
    """The submission has the id of a recorded order but different content (SUB-3)."""
    SUBMISSION_INVALID = "submission-invalid"
    """The submission is invalid (SUB-4)."""
    REPLY_FOR_UNKNOWN_STEP = "reply-for-unknown-step"
    """The order has no step of the name in the reply."""
    REPLY_OUTDATED = "reply-outdated"
    """The reply belongs to an earlier attempt (SCH-6)."""
    REPLY_FROM_OTHER_AGENT = "reply-from-other-agent"
    """The reply comes from an agent to which the request was not sent."""
    REPLY_NOT_AWAITED = "reply-not-awaited"
    """The step is in a state in which this reply does not count (SCH-6)."""
    REPLY_LATE = "reply-late"
    """The reply came after the complete-by time and the clock tolerance (SCH-6)."""
    REPLY_AFTER_RETIREMENT = "reply-after-retirement"
    """The workflow is retired, so no version of the app can act on the reply."""
    EVENT_FOR_UNKNOWN_STEP = "event-for-unknown-step"
    """The order has no step of the name in the event."""
    EVENT_AFTER_COMPLETION = "event-after-completion"
    """The step already has a different result (ANS-3)."""
    EVENT_AFTER_FAILURE = "event-after-failure"
    """The step has failed already."""
    EVENT_AFTER_SKIP = "event-after-skip"
    """The step is skipped."""
    EVENT_DURING_UNDO = "event-during-undo"
    """The order is being undone."""
    EVENT_AFTER_END = "event-after-end"
    """The order has ended."""
    EVENT_CLOSED = "event-closed"
    """The step accepts no more events. The external party does not get the reason (ANS-6)."""

    # An operator's action makes no sense.
    NOTHING_TO_HOLD = "nothing-to-hold"
    """Only an order in `Pending` or `Processing` can be put on hold."""
    HELD = "held"
    """The order is on hold (OPR-7)."""
    ON_HOLD_ALREADY = "on-hold-already"
    """The order is on hold already."""
    NOT_ON_HOLD = "not-on-hold"
    """The order is not on hold."""
    NOTHING_TO_EXPEDITE = "nothing-to-expedite"
    """Only an order in `Pending` or `Processing` can be expedited."""
    EXPEDITED_ALREADY = "expedited-already"
    """The order already has high priority, and none of its steps is cooling down."""
    PROCESSED_ALREADY = "processed-already"
    """Every step is finished. Only a separate workflow can reverse the order."""
    UNDONE_ALREADY = "undone-already"
    """The order is undone already."""
    UNDO_REQUESTED_ALREADY = "undo-requested-already"
    """The order is being undone already."""
    PIVOT_PASSED = "pivot-passed"
    """The order has passed its pivot (UND-6)."""
    NOT_IN_ERROR = "not-in-error"
    """The action is only for an order in `Error`."""
    NOTHING_TO_RESUME = "nothing-to-resume"
    """The order is over, so it has no step that can continue."""
    KEYS_FORGOTTEN = "keys-forgotten"
    """The services may have forgotten the idempotency keys of steps in doubt (AGT-12)."""
    NO_SUCH_STEP = "no-such-step"
    """The action is not possible for the named step. If no step is named, it is possible for none
    of the order's steps."""
    SEVERAL_STEPS = "several-steps"
    """The action could apply to several steps, and no step is named."""
    BEING_UNDONE = "being-undone"
    """The action is not possible during an undo. A step of the undo can be skipped instead."""
    NO_KEY_FORGOTTEN = "no-key-forgotten"
    """No step is in doubt with an idempotency key that its service may have forgotten."""
    NOTHING_IN_DOUBT = "nothing-in-doubt"
    """No step of the order is in doubt."""
    LATE_EFFECT_POSSIBLE = "late-effect-possible"
    """A step cannot be settled as not done yet, because a call may still take effect (UND-2,
    AGT-11)."""
    NOT_EXTERNAL = "not-external"
    """No external event completes the named step."""
    EVENT_NOT_AWAITED_YET = "event-not-awaited-yet"
    """The step does not wait for an event yet."""
    DEADLINE_ON_HOLD = "deadline-on-hold"
    """While the order is on hold, nobody can move the time at which an external event is due. The
    release moves this time (OPR-7)."""
    RESULT_NEEDED = "result-needed"
    """The failed steps cannot be skipped, because other steps need their results."""

    # A request makes no sense in the present state.
    NOT_RECORDED_YET = "not-recorded-yet"
    """The order is accepted and still waits on the submission queue."""
    IDEMPOTENCY_KEY_USED = "idempotency-key-used"
    """The idempotency key belongs to an order with different content (SUB-7)."""
    CUSTOMERS_NEVER_CANCEL = "customers-never-cancel"
    """The workflow lets no customer cancel an order."""
    TAKEN_BACK_ALREADY = "taken-back-already"
    """The order is undone or being undone already."""
    TOO_LATE_TO_CANCEL = "too-late-to-cancel"
    """The order has progressed too far for its customer to cancel it (SUB-8)."""
    DONE_ALREADY = "done-already"
    """The order is processed, so its customer cannot cancel it."""
    STEP_NOT_IN_APP = "step-not-in-app"
    """This app does not have the step in the order's workflow."""
    QUESTION_BROKEN = "question-broken"
    """The workflow raised an error when it made the question for the external party."""
    NO_CALLBACK_URLS = "no-callback-urls"
    """The app has no public address, so it makes no callback URLs."""
    NO_PERSONAL_DATA = "no-personal-data"
    """The order has no personal data."""
    ERASED_ALREADY = "erased-already"
    """The personal data of the order is erased already."""
    AGENT_PAUSED_ALREADY = "agent-paused-already"
    """The agent is already paused for at least as long."""
    AGENT_NOT_PAUSED = "agent-not-paused"
    """The agent is not paused."""
    STORE_NOT_EMPTY = "store-not-empty"
    """A copy can be restored only into an empty store (OPR-11)."""
    OTHER_COPY_RESTORED = "other-copy-restored"
    """Another copy is being restored."""
    MESSAGE_OF_NO_QUEUE = "message-of-no-queue"
    """The poison message came from no known queue of the app."""
    MESSAGE_CUT = "message-cut"
    """Only a part of the poison message was kept."""
    MESSAGE_NOT_TEXT = "message-not-text"
    """The poison message is not text, so it cannot be put back."""
    NO_SAMPLE_ORDER = "no-sample-order"
    """The application has no sample order."""

    # A message is kept as poison.
    MESSAGE_INVALID = "message-invalid"
    """The message cannot be read."""
    ORDER_UNKNOWN = "order-unknown"
    """The message names an order that is not recorded."""
    FAILED_TOO_OFTEN = "failed-too-often"
    """Processing the message failed so often that the platform no longer delivers it."""

    # Operators are alerted.
    DUE_SOON = "due-soon"
    """The deadline of the order is near (ALR-6)."""
    NOTICES_NOT_SENT = "notices-not-sent"
    """Status notifications cannot be sent to the queue of the order's sender (ALR-2)."""
    WORKFLOW_CHANGED = "workflow-changed"
    """A version of a workflow was changed while orders follow it."""
    REQUESTS_NOT_TAKEN = "requests-not-taken"
    """No instance of an agent takes requests from its queue (SUP-7)."""
    PAUSED_FOR_LONG = "paused-for-long"
    """An operator has paused an agent for more than a day."""
    NO_SWEEP = "no-sweep"
    """No supervisor sweeps."""
    SUBMISSIONS_WAIT = "submissions-wait"
    """Submissions wait on their queue."""
    NOT_RECOVERED = "not-recovered"
    """Orders are overdue, and no sweep has recovered them."""
    HELD_FOR_LONG = "held-for-long"
    """Orders have been on hold for more than a day."""
    NOT_CLAIMED = "not-claimed"
    """Orders can be claimed, but no scheduler claims them."""
    CLOCK_AHEAD = "clock-ahead"
    """The clock of an instance is ahead of the store's clock (FLT-9)."""
    CLOCK_BEHIND = "clock-behind"
    """The clock of an instance is behind the store's (FLT-9)."""

    # A row cannot be read.
    ROW_UNREADABLE = "row-unreadable"
    """A row cannot be read."""
    ROW_NOT_OF_LIST = "row-not-of-list"
    """A row in a list of orders is not the row of an order."""
    ROW_VERSION_UNKNOWN = "row-version-unknown"
    """A newer version of the app wrote the row."""
    ROW_MISSING = "row-missing"
    """One of the two rows of an order is missing."""
    ROWS_DIFFER = "rows-differ"
    """The rows of an order have different order ids."""
    NO_STEPS = "no-steps"
    """The order has no steps."""


_FACTS: Mapping[Code, tuple[str, ...]] = {
    Code.TIMED_OUT: ("fault",),
    Code.NOT_BEGUN: ("agent",),
    Code.AGENT_OVERLOADED: ("agent", "fault"),
    Code.NO_EXTERNAL_EVENT: (),
    Code.NOT_ATTEMPTED: ("detail",),
    Code.REFUSED: ("detail",),
    Code.CALL_REJECTED: ("detail",),
    Code.RESULT_TOO_LONG: ("limit",),
    Code.THRESHOLD_REACHED: ("step", "failures", "fault"),
    Code.EXTERNAL_EVENT_MISSING: ("step", "failures"),
    Code.NO_AGENT_BEGAN: ("step", "agent", "attempts"),
    Code.REQUEST_FAILED: ("workflow", "version", "step", "error"),
    Code.CONDITION_FAILED: ("workflow", "version", "step", "function", "error"),
    Code.STEP_REMOVED: ("workflow", "version", "step"),
    Code.KEY_FORGOTTEN: ("agent", "key", "known_until", "is_undo"),
    Code.PROVIDER_GONE: ("provider", "is_undo"),
    Code.FOUND_NOT_DONE: (),
    Code.CONDITION_NOT_MET: ("condition",),
    Code.STEP_FAILED: ("step", "why"),
    Code.CANCELLED: ("by",),
    Code.UNDO_RESUMED: (),
    Code.DEADLINE_PASSED: ("due_by",),
    Code.WORKFLOW_RETIRED: ("workflow", "version"),
    Code.SUBMISSION_CONFLICT: (),
    Code.SUBMISSION_INVALID: ("faults",),
    Code.REPLY_FOR_UNKNOWN_STEP: ("step",),
    Code.REPLY_OUTDATED: ("step", "attempt", "current"),
    Code.REPLY_FROM_OTHER_AGENT: ("step", "attempt", "agent", "expected"),
    Code.REPLY_NOT_AWAITED: ("step", "attempt", "state"),
    Code.REPLY_LATE: ("step", "attempt"),
    Code.REPLY_AFTER_RETIREMENT: (),
    Code.EVENT_FOR_UNKNOWN_STEP: ("step",),
    Code.EVENT_AFTER_COMPLETION: ("step",),
    Code.EVENT_AFTER_FAILURE: ("step", "why"),
    Code.EVENT_AFTER_SKIP: ("step",),
    Code.EVENT_DURING_UNDO: ("why",),
    Code.EVENT_AFTER_END: ("state", "why"),
    Code.EVENT_CLOSED: ("step",),
    Code.NOTHING_TO_HOLD: ("state",),
    Code.HELD: ("by", "note"),
    Code.ON_HOLD_ALREADY: ("by",),
    Code.NOT_ON_HOLD: (),
    Code.NOTHING_TO_EXPEDITE: ("state",),
    Code.EXPEDITED_ALREADY: (),
    Code.PROCESSED_ALREADY: (),
    Code.UNDONE_ALREADY: (),
    Code.UNDO_REQUESTED_ALREADY: ("has_stopped",),
    Code.PIVOT_PASSED: ("steps",),
    Code.NOT_IN_ERROR: ("action", "state"),
    Code.NOTHING_TO_RESUME: (),
    Code.KEYS_FORGOTTEN: ("steps", "is_undo"),
    Code.NO_SUCH_STEP: ("action", "steps"),
    Code.SEVERAL_STEPS: ("action", "steps"),
    Code.BEING_UNDONE: (),
    Code.NO_KEY_FORGOTTEN: (),
    Code.NOTHING_IN_DOUBT: (),
    Code.LATE_EFFECT_POSSIBLE: ("step", "until"),
    Code.NOT_EXTERNAL: ("step", "steps"),
    Code.EVENT_NOT_AWAITED_YET: ("step", "state"),
    Code.DEADLINE_ON_HOLD: ("by",),
    Code.RESULT_NEEDED: ("needed",),
    Code.NOT_RECORDED_YET: (),
    Code.IDEMPOTENCY_KEY_USED: (),
    Code.CUSTOMERS_NEVER_CANCEL: (),
    Code.TAKEN_BACK_ALREADY: (),
    Code.TOO_LATE_TO_CANCEL: (),
    Code.DONE_ALREADY: (),
    Code.STEP_NOT_IN_APP: ("workflow", "version", "step"),
    Code.QUESTION_BROKEN: ("step",),
    Code.NO_CALLBACK_URLS: (),
    Code.NO_PERSONAL_DATA: (),
    Code.ERASED_ALREADY: (),
    Code.AGENT_PAUSED_ALREADY: ("agent", "by", "until", "note"),
    Code.AGENT_NOT_PAUSED: ("agent",),
    Code.STORE_NOT_EMPTY: (),
    Code.OTHER_COPY_RESTORED: ("copy",),
    Code.MESSAGE_OF_NO_QUEUE: (),
    Code.MESSAGE_CUT: (),
    Code.MESSAGE_NOT_TEXT: (),
    Code.NO_SAMPLE_ORDER: (),
    Code.MESSAGE_INVALID: ("faults",),
    Code.ORDER_UNKNOWN: ("order",),
    Code.FAILED_TOO_OFTEN: ("detail",),
    Code.DUE_SOON: ("due_by",),
    Code.NOTICES_NOT_SENT: ("queue", "error"),
    Code.WORKFLOW_CHANGED: ("workflow", "version", "steps"),
    Code.REQUESTS_NOT_TAKEN: ("agent",),
    Code.PAUSED_FOR_LONG: ("agent",),
    Code.NO_SWEEP: (),
    Code.SUBMISSIONS_WAIT: (),
    Code.NOT_RECOVERED: (),
    Code.HELD_FOR_LONG: (),
    Code.NOT_CLAIMED: (),
    Code.CLOCK_AHEAD: ("instance", "seconds"),
    Code.CLOCK_BEHIND: ("instance", "seconds"),
    Code.ROW_UNREADABLE: ("row", "error"),
    Code.ROW_NOT_OF_LIST: ("row",),
    Code.ROW_VERSION_UNKNOWN: ("row", "version", "readable"),
    Code.ROW_MISSING: (),
    Code.ROWS_DIFFER: ("order",),
    Code.NO_STEPS: ("order",),
}
FACTS = {code: frozenset(names) for code, names in _FACTS.items()}
"""The facts that each cause must have. `why` is another cause as JSON, or None. `needed` maps each
failed step to the steps that need its result. A refusal may also have the service's `type` and
`code`. A shortened cause has the digest of the whole cause."""

OPTIONAL_FACTS = frozenset({"type", "code", "digest"})


@dataclass(frozen=True, slots=True)
class Cause:
    """A code with its facts, which are JSON values.

    A decision of this app passes a `Code` with exactly the facts of that code. Raises `ValueError`
    otherwise.

    A cause that is read may come from a newer version of the app (FLT-12), so its code may be any
    text, and unknown facts are kept. The text becomes a `Code` if this version knows the code and
    all of its facts are present. Code that handles a `Code` can therefore rely on the facts.
    """

    code: str
    facts: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if isinstance(self.code, Code):
            expected, given = FACTS[self.code], self.facts.keys()
            if not expected <= given or not given <= expected | OPTIONAL_FACTS:
                raise ValueError(f"{self.code}: expected {sorted(expected)}, got {sorted(given)}")
        elif self.code in FACTS and _has_facts(code := Code(self.code), self.facts):
            object.__setattr__(self, "code", code)

    @property
    def digest(self) -> str:
        """The digest that equal causes share, even if one of them was shortened."""
        return self.facts.get("digest") or digest_of(self.as_json())

    def shortened(self) -> "Cause":
        """Return the cause as a step keeps it: its facts have at most `MAX_LENGTH` units as JSON.

        `detail` is cut first, then the longest text.
        """
        if _length(self.facts) <= MAX_LENGTH:
            return self
        texts = [name for name, fact in self.facts.items() if isinstance(fact, str)]
        facts = {**self.facts, "digest": self.digest}
        for name in sorted(texts, key=lambda name: (name != "detail", -len(facts[name]))):
            if name != "digest":
                facts[name] = _fitting(facts, name)
        return Cause(str(self.code), facts)

    def as_json(self) -> Mapping[str, Any]:
        """Return the cause as JSON, for use as a fact of another cause."""
        return {"code": self.code, "facts": self.facts}


def _length(facts: Mapping[str, Any]) -> int:
    text = json.dumps(facts, ensure_ascii=False, separators=(",", ":"))
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _fitting(facts: Mapping[str, Any], name: str) -> str:
    """Return as much of this text as fits beside the other facts."""
    text = facts[name][:MAX_LENGTH]
    ends = range(1, len(text) + 1)
    end = bisect_right(ends, MAX_LENGTH, key=lambda end: _length({**facts, name: text[:end]}))
    return str(text[:end])


def cause_in(fact: Mapping[str, Any]) -> Cause:
    """Return the cause that `Cause.as_json` wrote."""
    return Cause(str(fact["code"]), fact["facts"])


def _has_facts(code: Code, facts: Mapping[str, Any]) -> bool:
    if not FACTS[code] <= facts.keys():
        return False
    # `why` has to be a cause.
    why = facts.get("why")
    if why is None:
        return code is not Code.STEP_FAILED
    return is_cause(why)


def is_cause(fact: Any) -> TypeGuard[Mapping[str, Any]]:
    return (
        isinstance(fact, Mapping)
        and isinstance(fact.get("code"), str)
        and isinstance(fact.get("facts"), Mapping)
    )


def step_failed(step: str, cause: Cause) -> Cause:
    """Return the cause of an undo that this failed step starts (UND-1)."""
    return Cause(Code.STEP_FAILED, {"step": step, "why": cause.as_json()})


def root_of(cause: Cause) -> Cause:
    """Return the cause of the failed step. Any other cause is its own root."""
    if cause.code is not Code.STEP_FAILED:
        return cause
    return cause_in(cause.facts["why"])


MAX_NAME = 200
"""Maximum number of characters in the name of a group."""


def group_of(cause: Cause) -> str:
    """Return the name of the group of a cause, such as `refused: card declined`.

    Lists, alerts and bulk actions treat the causes of a group as one. The name has the code and, if
    the service gave any, its `type` and `code`. Otherwise it has the text of the service without
    ids and times, so "card declined" and "address unknown" are two groups. A cause has the same
    group before and after it is shortened.
    """
    # Only the part that a step keeps counts, so the group stays the same.
    root = root_of(cause).shortened()
    facts = root.facts
    own = " ".join(str(facts[name]) for name in ("type", "code") if facts.get(name))
    word = own or _normalised(facts)
    return plain(f"{root.code}: {word}" if word else root.code, MAX_NAME).rstrip()


def code_in(group: str) -> str:
    return group.partition(":")[0]


def _normalised(facts: Mapping[str, Any]) -> str:
    text = str(facts.get("detail") or facts.get("fault") or facts.get("error") or "")
    return " ".join(without_particulars(text).casefold().split())
