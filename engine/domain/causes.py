"""Causes: why something failed, was skipped or was refused, as a code with facts.

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

MAX_LENGTH = 400
"""Maximum length of the facts that a step keeps, as JSON in UTF-16 units.

So a row has room for those of 20 steps, whatever characters a service sends. The history has the
whole cause.
"""


class Code(StrEnum):
    """The kinds of causes. `FACTS` names the facts of each."""

    # An attempt ended without a result.
    TIMED_OUT = "timed-out"
    """No reply came before the complete-by time (SUP-3)."""
    NOT_BEGUN = "not-begun"
    """No reply came, and no agent has reported that it began the request."""
    AGENT_OVERLOADED = "agent-overloaded"
    """No reply came, and the calls of the agent time out for several orders (SUP-3)."""
    NO_EXTERNAL_EVENT = "no-external-event"
    """The external event did not come before its deadline (ANS-2)."""
    NOT_ATTEMPTED = "not-attempted"
    """The agent did not call its service (AGT-8)."""

    # A step has failed.
    REFUSED = "refused"
    """The service, or the sender of an external event, refused the step (AGT-6, ANS-3)."""
    CALL_REJECTED = "call-rejected"
    """A gateway turned the call away, or the request was wrong; the service did not refuse it."""
    RESULT_TOO_LONG = "result-too-long"
    """The result cannot be kept."""
    THRESHOLD_REACHED = "threshold-reached"
    """The failures of the step have reached its threshold (SUP-3)."""
    EXTERNAL_EVENT_MISSING = "external-event-missing"
    """The external event did not come after the last request for it (ANS-2)."""
    NO_AGENT_BEGAN = "no-agent-began"
    """No agent began the step, for as long or as often as the settings allow (SUP-9)."""
    REQUEST_FAILED = "request-failed"
    """The workflow could not make the request."""
    CONDITION_FAILED = "condition-failed"
    """The condition or the start time of the step raised an error (SCH-14, SCH-15)."""
    STEP_REMOVED = "step-removed"
    """The workflow has no such step any more."""
    KEY_FORGOTTEN = "key-forgotten"
    """The service may have forgotten the idempotency key of a step in doubt (AGT-12)."""
    PROVIDER_GONE = "provider-gone"
    """No agent calls the provider that knows the idempotency key any more (AGT-3)."""
    FOUND_NOT_DONE = "found-not-done"
    """An operator found that the step, which had been skipped as done, was not done (OPR-12)."""

    # A step is skipped, or an order changes direction or ends.
    CONDITION_NOT_MET = "condition-not-met"
    """The condition of the step says that it is not needed (SCH-14)."""
    STEP_FAILED = "step-failed"
    """The order is undone because of a failed step (UND-1)."""
    CANCELLED = "cancelled"
    """An operator or the customer cancelled the order (OPR-4, SUB-8)."""
    UNDO_RESUMED = "undo-resumed"
    """An operator let a failed undo continue (UND-4)."""
    DEADLINE_PASSED = "deadline-passed"
    """The order was still open at its deadline (SCH-17)."""
    WORKFLOW_RETIRED = "workflow-retired"
    """The order follows a version of its workflow that the app no longer has (FLT-12)."""

    # A message was refused.
    SUBMISSION_CONFLICT = "submission-conflict"
    """The submission has the id of a recorded order, and other content (SUB-3)."""
    SUBMISSION_INVALID = "submission-invalid"
    """The submission cannot be used (SUB-4)."""
    REPLY_FOR_UNKNOWN_STEP = "reply-for-unknown-step"
    """The order has no step of the name in the reply."""
    REPLY_OUTDATED = "reply-outdated"
    """The reply belongs to a former attempt (SCH-6)."""
    REPLY_FROM_OTHER_AGENT = "reply-from-other-agent"
    """The reply comes from an agent to which the request was not sent."""
    REPLY_NOT_AWAITED = "reply-not-awaited"
    """The step is not in the state in which the reply would count (SCH-6)."""
    REPLY_LATE = "reply-late"
    """The reply came after the complete-by time and the clock tolerance (SCH-6)."""
    REPLY_AFTER_RETIREMENT = "reply-after-retirement"
    """No version of the app can act on the reply, since the workflow is retired."""
    EVENT_FOR_UNKNOWN_STEP = "event-for-unknown-step"
    """The order has no step of the name in the event."""
    EVENT_AFTER_COMPLETION = "event-after-completion"
    """The step has another result already (ANS-3)."""
    EVENT_AFTER_FAILURE = "event-after-failure"
    """The step has failed already."""
    EVENT_AFTER_SKIP = "event-after-skip"
    """The step is skipped."""
    EVENT_DURING_UNDO = "event-during-undo"
    """The order is being undone."""
    EVENT_AFTER_END = "event-after-end"
    """The order has ended."""
    EVENT_CLOSED = "event-closed"
    """The step accepts no event any more. The sender does not learn why (ANS-6)."""

    # An operator's action makes no sense.
    NOTHING_TO_HOLD = "nothing-to-hold"
    """The order has ended, so nothing of it starts by itself."""
    HELD = "held"
    """An operator holds the order (OPR-7)."""
    ON_HOLD_ALREADY = "on-hold-already"
    """The order is on hold already."""
    NOT_ON_HOLD = "not-on-hold"
    """The order is not on hold."""
    NOTHING_TO_EXPEDITE = "nothing-to-expedite"
    """The order has ended, so it waits for no claim."""
    EXPEDITED_ALREADY = "expedited-already"
    """The order has high priority, and no step of it cools down."""
    PROCESSED_ALREADY = "processed-already"
    """Every step is finished. Only another workflow can reverse the order."""
    UNDONE_ALREADY = "undone-already"
    """The order was undone already."""
    UNDO_REQUESTED_ALREADY = "undo-requested-already"
    """The order is being undone already."""
    PIVOT_PASSED = "pivot-passed"
    """The order is past its point of no return (UND-6)."""
    NOT_IN_ERROR = "not-in-error"
    """The action is for an order in `Error`."""
    NOTHING_TO_RESUME = "nothing-to-resume"
    """The order has ended, so it cannot continue."""
    KEYS_FORGOTTEN = "keys-forgotten"
    """The services may have forgotten the idempotency keys of steps in doubt (AGT-12)."""
    NO_SUCH_STEP = "no-such-step"
    """The action does not concern the named step, or any step of the order."""
    SEVERAL_STEPS = "several-steps"
    """The action could concern several steps, and none is named."""
    BEING_UNDONE = "being-undone"
    """The order is being undone. The action is for an order that goes forward."""
    NO_KEY_FORGOTTEN = "no-key-forgotten"
    """No step is in doubt whose service may have forgotten its key."""
    NOTHING_IN_DOUBT = "nothing-in-doubt"
    """No step of the order is in doubt."""
    LATE_EFFECT_POSSIBLE = "late-effect-possible"
    """A step cannot count as not done yet: a call may still take effect (UND-2, AGT-11)."""
    NOT_EXTERNAL = "not-external"
    """No external event completes the named step."""
    EVENT_NOT_AWAITED_YET = "event-not-awaited-yet"
    """The step does not wait for an event yet."""
    DEADLINE_ON_HOLD = "deadline-on-hold"
    """The deadline of an order on hold moves when it is released (OPR-7)."""
    RESULT_NEEDED = "result-needed"
    """Other steps cannot be done without the results of the failed ones."""

    # A request makes no sense in the present state.
    NOT_RECORDED_YET = "not-recorded-yet"
    """The order is accepted, and waits on its queue."""
    IDEMPOTENCY_KEY_USED = "idempotency-key-used"
    """The key stands for an order with other content (SUB-7)."""
    CUSTOMERS_NEVER_CANCEL = "customers-never-cancel"
    """The workflow lets no customer cancel an order."""
    TAKEN_BACK_ALREADY = "taken-back-already"
    """The order is undone or being undone already."""
    TOO_LATE_TO_CANCEL = "too-late-to-cancel"
    """The order has gone too far for its customer to cancel it (SUB-8)."""
    DONE_ALREADY = "done-already"
    """The order is processed, so its customer cannot cancel it."""
    STEP_NOT_IN_APP = "step-not-in-app"
    """This app does not have the step of the order's workflow."""
    QUESTION_BROKEN = "question-broken"
    """The function of the step raised an error, so there is no question."""
    NO_CALLBACK_URLS = "no-callback-urls"
    """The app has no public address, so it makes no callback URLs."""
    NO_PERSONAL_DATA = "no-personal-data"
    """The order has no personal data."""
    ERASED_ALREADY = "erased-already"
    """The personal data of the order is erased already."""
    AGENT_PAUSED_ALREADY = "agent-paused-already"
    """The agent is paused for at least as long."""
    AGENT_NOT_PAUSED = "agent-not-paused"
    """The agent is not paused."""
    STORE_NOT_EMPTY = "store-not-empty"
    """A copy is restored into an empty store only (OPR-11)."""
    OTHER_COPY_RESTORED = "other-copy-restored"
    """Another copy is being restored."""
    MESSAGE_OF_NO_QUEUE = "message-of-no-queue"
    """No queue of the app is known to have had the poison message."""
    MESSAGE_CUT = "message-cut"
    """The poison message is not kept whole."""
    MESSAGE_NOT_TEXT = "message-not-text"
    """The poison message is no text, so it cannot be put back."""
    NO_SAMPLE_ORDER = "no-sample-order"
    """The application has no sample order."""

    # A message is kept as poison.
    MESSAGE_INVALID = "message-invalid"
    """The message cannot be read."""
    ORDER_UNKNOWN = "order-unknown"
    """The message names an order that is not recorded."""
    FAILED_TOO_OFTEN = "failed-too-often"
    """The platform gave up the message after too many deliveries, or too much time."""

    # Operators are alerted.
    DUE_SOON = "due-soon"
    """The deadline of the order is near (ALR-6)."""
    NOTICES_NOT_SENT = "notices-not-sent"
    """The queue of an order's sender takes no notices (ALR-2)."""
    WORKFLOW_CHANGED = "workflow-changed"
    """A version of a workflow was changed while orders follow it."""
    REQUESTS_NOT_TAKEN = "requests-not-taken"
    """No instance of an agent takes its requests (SUP-7)."""
    PAUSED_FOR_LONG = "paused-for-long"
    """An operator has paused an agent for more than a day."""
    NO_SWEEP = "no-sweep"
    """No supervisor sweeps."""
    SUBMISSIONS_WAIT = "submissions-wait"
    """Submissions wait on their queue."""
    NOT_RECOVERED = "not-recovered"
    """Orders are overdue, and no sweep recovered them."""
    HELD_FOR_LONG = "held-for-long"
    """Orders have been on hold for more than a day."""
    NOT_CLAIMED = "not-claimed"
    """Orders may be claimed, and are not."""
    CLOCK_AHEAD = "clock-ahead"
    """The clock of an instance is ahead of the store's (FLT-9)."""
    CLOCK_BEHIND = "clock-behind"
    """The clock of an instance is behind the store's (FLT-9)."""

    # A row cannot be read.
    ROW_UNREADABLE = "row-unreadable"
    """A row cannot be read."""
    ROW_NOT_OF_LIST = "row-not-of-list"
    """The row lists no order."""
    ROW_VERSION_UNKNOWN = "row-version-unknown"
    """A newer version of the app wrote the row."""
    ROW_MISSING = "row-missing"
    """One of the two rows of an order is missing."""
    ROWS_DIFFER = "rows-differ"
    """The rows of an order differ in its id."""
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
"""The facts that each cause must have; `why` is another cause as JSON, or None.

`needed` has for each failed step the steps that need its result.

A refusal may also have the service's `type` and `code`. A shortened cause has the digest of the
whole one.
"""

OPTIONAL_FACTS = frozenset({"type", "code", "digest"})


@dataclass(frozen=True, slots=True)
class Cause:
    """Why something is as it is. `facts` are JSON values.

    A decision of this app gives a `Code`, and exactly its facts: raises `ValueError` otherwise. A
    text is the code of a cause that was read, perhaps from a newer version of the app (FLT-12).
    Facts that this version does not know are kept. The text becomes a `Code` if that is known and
    has all of its facts, so code that knows a `Code` may count on them.
    """

    code: str
    facts: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        """Check the names of the facts."""
        if isinstance(self.code, Code):
            expected, given = FACTS[self.code], self.facts.keys()
            if not expected <= given or not given <= expected | OPTIONAL_FACTS:
                raise ValueError(f"{self.code}: expected {sorted(expected)}, got {sorted(given)}")
        elif self.code in FACTS and _has_facts(code := Code(self.code), self.facts):
            object.__setattr__(self, "code", code)

    @property
    def digest(self) -> str:
        """What two causes share if they say the same, also once one of them was shortened."""
        return self.facts.get("digest") or digest_of(self.as_json())

    def shortened(self) -> "Cause":
        """Return the cause as a step keeps it: its facts have at most `MAX_LENGTH` as JSON.

        The first text to be cut is `detail`, then the longest.
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
        """Return the cause as a fact of another one."""
        return {"code": self.code, "facts": self.facts}


def _length(facts: Mapping[str, Any]) -> int:
    text = json.dumps(facts, ensure_ascii=False, separators=(",", ":"))
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _fitting(facts: Mapping[str, Any], name: str) -> str:
    """Return as much of this text as there is room for beside the other facts."""
    text = facts[name][:MAX_LENGTH]
    ends = range(1, len(text) + 1)
    end = bisect_right(ends, MAX_LENGTH, key=lambda end: _length({**facts, name: text[:end]}))
    return str(text[:end])


def cause_in(fact: Mapping[str, Any]) -> Cause:
    """Return the cause that is a fact of another one."""
    return Cause(str(fact["code"]), fact["facts"])


def _has_facts(code: Code, facts: Mapping[str, Any]) -> bool:
    """Whether a cause that was read has all the facts of its code; `why` has to be a cause."""
    if not FACTS[code] <= facts.keys():
        return False
    why = facts.get("why")
    if why is None:
        return code is not Code.STEP_FAILED
    return is_cause(why)


def is_cause(fact: Any) -> TypeGuard[Mapping[str, Any]]:
    """Whether a JSON value has the form of a cause."""
    return (
        isinstance(fact, Mapping)
        and isinstance(fact.get("code"), str)
        and isinstance(fact.get("facts"), Mapping)
    )


def step_failed(step: str, cause: Cause) -> Cause:
    """Return the cause for which an order is undone after this step has failed (UND-1)."""
    return Cause(Code.STEP_FAILED, {"step": step, "why": cause.as_json()})


def root_of(cause: Cause) -> Cause:
    """Return the cause of the failed step; any other cause is its own root."""
    if cause.code is not Code.STEP_FAILED:
        return cause
    return cause_in(cause.facts["why"])


MAX_NAME = 200
"""Maximum number of characters of a group's name."""


def group_of(cause: Cause) -> str:
    """Return the name of the group of a cause, such as `refused: card declined`.

    Lists, alerts and bulk actions take the causes of a group as one. The name is the code, and what
    the service said if it said anything: its `type` and `code`, or else its text without ids and
    times. So "card declined" and "address unknown" stay two groups. A shortened cause has the same
    name, since only what a step keeps counts.
    """
    root = root_of(cause).shortened()
    facts = root.facts
    own = " ".join(str(facts[name]) for name in ("type", "code") if facts.get(name))
    word = own or _normalised(facts)
    return plain(f"{root.code}: {word}" if word else root.code, MAX_NAME).rstrip()


def code_in(group: str) -> str:
    """Return the code in the name of a group."""
    return group.partition(":")[0]


def _normalised(facts: Mapping[str, Any]) -> str:
    text = str(facts.get("detail") or facts.get("fault") or facts.get("error") or "")
    return " ".join(without_particulars(text).casefold().split())
