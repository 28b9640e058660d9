"""The words of causes for people. Nothing reads them: decisions use the codes.

This module goes to the operators' side once rows and events keep causes.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from engine.domain.causes import Cause, Code, cause_in
from engine.domain.events import Action

CLOCK = "%Y-%m-%d %H:%M:%S UTC"
"""The format of a time in words."""

NO_REASON = "the agent gave no reason"

Facts = Mapping[str, Any]


def words_of(cause: Cause) -> str:
    """Return the cause in words, such as "timed out; last answer: 503".

    Of a newer version's cause only the code is known, and the text of its service if there is one.
    """
    if isinstance(cause.code, Code):
        return _WORDS[cause.code](cause.facts)
    return ": ".join(filter(None, (cause.code, str(cause.facts.get("detail") or ""))))


def last_answer(fault: str) -> str:
    """Return the addition to a sentence for the fault of the last call; empty if none is known."""
    if not fault:
        return ""
    return f"; {fault}" if fault.startswith("no answer") else f"; last answer: {fault}"


def _threshold_reached(facts: Facts) -> str:
    why = last_answer(facts["fault"]) or ": the cause is held to be lasting"
    return f"{facts['step']} timed out {facts['failures']} times{why}"


def _external_event_missing(facts: Facts) -> str:
    return f"nobody has answered {facts['step']} in time, {facts['failures']} times asked"


def _workflow(facts: Facts) -> str:
    return f"{facts['workflow']} v{facts['version']}"


def _request_failed(facts: Facts) -> str:
    return f"{_workflow(facts)}, step {facts['step']}: request failed: {facts['error']}"


def _condition_failed(facts: Facts) -> str:
    what = f"{facts['function']} failed: {facts['error']}"
    return f"{_workflow(facts)}, step {facts['step']}: {what}"


def _step_removed(facts: Facts) -> str:
    name = f"{_workflow(facts)} has no step {facts['step']}"
    return f"{name}: it was changed while this order was on it"


def _key_forgotten(facts: Facts) -> str:
    until = datetime.fromisoformat(facts["known_until"])
    known = f"{facts['agent']} knows {facts['key']} only until {until:%Y-%m-%d %H:%M} UTC"
    if facts["is_undo"]:
        return f"it may stand, and {known}: see to it there that nothing stands, then skip it"
    then = "skip it if it was done, or retry it with a new key if it was not"
    return f"it may have been done, and {known}: find out there, then {then}"


def _provider_gone(facts: Facts) -> str:
    gone = f"no agent here leads to {facts['provider']}"
    if facts["is_undo"]:
        return f"it may stand, and {gone}: see to it there that nothing stands, then skip it"
    return f"it may have been done, and {gone}: find out there, then settle it"


def _step_failed(facts: Facts) -> str:
    return f"{facts['step']}: {_why(facts)}"


def _why(facts: Facts) -> str:
    return words_of(cause_in(facts["why"])) if facts["why"] else "None"


def _cancelled(facts: Facts) -> str:
    return f"cancelled by {'the customer' if facts['by'] == 'customer' else 'an operator'}"


def _retired(facts: Facts) -> str:
    name = f"workflow {facts['workflow']} version {facts['version']}"
    return f"{name} is not part of this app"


def _undo_requested_already(facts: Facts) -> str:
    hint = ": a resubmit lets the undo go on" if facts["has_stopped"] else ""
    return f"the order is being undone already{hint}"


def _pivot_passed(facts: Facts) -> str:
    what = "was done, or may have been, and cannot be taken back"
    return f"the order is past its point of no return: {' and '.join(facts['steps'])} {what}"


def _keys_forgotten(facts: Facts) -> str:
    forgotten = f"the service may have forgotten the key of {' and '.join(facts['steps'])}"
    or_retry = (
        "" if facts["is_undo"] else " if it was done, or retry it with a new key if it was not"
    )
    return f"{forgotten}: find out there what stands; skip it{or_retry}"


_DONE: Mapping[str, str] = {
    Action.RESUBMIT: "resubmitted",
    Action.SKIP: "freed of a step that failed",
    Action.RETRY_WITH_NEW_KEY: "freed of a step that failed",
    Action.SETTLE: "freed of doubt",
}
"""What an action on an order in `Error` has done to it."""


def _not_in_error(facts: Facts) -> str:
    return f"the order is {facts['state']}: only one in Error can be {_DONE[facts['action']]}"


_ONLY: Mapping[str, str] = {
    Action.SKIP: "has failed can be skipped",
    Action.RETRY_WITH_NEW_KEY: "has failed can be retried with a new key",
    Action.SETTLE: "is in doubt can be settled",
}
"""Which steps an action can concern."""


def _no_such_step(facts: Facts) -> str:
    names = ", ".join(facts["steps"]) or "none"
    return f"only a step that {_ONLY[facts['action']]}; of this order that is: {names}"


_SEVERAL: Mapping[str, str] = {
    Action.SKIP: "have failed",
    Action.RETRY_WITH_NEW_KEY: "have failed",
    Action.SETTLE: "are in doubt",
}
"""What the steps that an action can concern have in common."""


def _several_steps(facts: Facts) -> str:
    names = ", ".join(facts["steps"])
    return f"several steps {_SEVERAL[facts['action']]}, name one of them: {names}"


def _not_external(facts: Facts) -> str:
    names = ", ".join(facts["steps"]) or "none"
    return f"{facts['step']} is no step that is answered from outside: {names} is"


def _late_effect_possible(facts: Facts) -> str:
    until = f"{datetime.fromisoformat(facts['until']):{CLOCK}}"
    return (
        f"a call of {facts['step']} may still take effect until {until}: "
        "look there again after that time, or confirm that it may"
    )


def _result_needed(facts: Facts) -> str:
    return "; ".join(
        f"{', '.join(needing)} cannot be done without what {failed} answers"
        for failed, needing in facts["needed"].items()
    )


def _reply(facts: Facts) -> str:
    return f"{facts['step']} attempt {facts['attempt']}"


_WORDS: Mapping[Code, Callable[[Facts], str]] = {
    Code.TIMED_OUT: lambda facts: f"timed out{last_answer(facts['fault'])}",
    Code.NOT_BEGUN: lambda facts: f"{facts['agent']} is not known to have begun it",
    Code.NO_EXTERNAL_EVENT: lambda facts: "nobody has answered in time",
    Code.NOT_ATTEMPTED: lambda facts: facts["detail"] or NO_REASON,
    Code.REFUSED: lambda facts: facts["detail"] or NO_REASON,
    Code.CALL_REJECTED: lambda facts: facts["detail"] or NO_REASON,
    Code.RESULT_TOO_LONG: lambda facts: (
        f"the service's answer is too long to be kept: more than {facts['limit']} characters"
    ),
    Code.THRESHOLD_REACHED: _threshold_reached,
    Code.EXTERNAL_EVENT_MISSING: _external_event_missing,
    Code.REQUEST_FAILED: _request_failed,
    Code.CONDITION_FAILED: _condition_failed,
    Code.STEP_REMOVED: _step_removed,
    Code.KEY_FORGOTTEN: _key_forgotten,
    Code.PROVIDER_GONE: _provider_gone,
    Code.FOUND_NOT_DONE: lambda facts: "an operator found that it was not done",
    Code.CONDITION_NOT_MET: lambda facts: f"not needed: {facts['condition']}",
    Code.STEP_FAILED: _step_failed,
    Code.CANCELLED: _cancelled,
    Code.UNDO_RESUMED: lambda facts: "an operator resumed the undo",
    Code.WORKFLOW_RETIRED: _retired,
    Code.SUBMISSION_CONFLICT: lambda facts: (
        "an order with this id is recorded already, with other content"
    ),
    Code.SUBMISSION_INVALID: lambda facts: "; ".join(facts["faults"]),
    Code.REPLY_FOR_UNKNOWN_STEP: lambda facts: f"the order has no step {facts['step']}",
    Code.REPLY_OUTDATED: lambda facts: (
        f"{_reply(facts)}: the current attempt is {facts['current']}"
    ),
    Code.REPLY_FROM_OTHER_AGENT: lambda facts: (
        f"{_reply(facts)}: it came over the queue of {facts['agent']}, "
        f"but {facts['expected']} was asked"
    ),
    Code.REPLY_NOT_AWAITED: lambda facts: f"{_reply(facts)}: the step is {facts['state']}",
    Code.REPLY_LATE: lambda facts: f"{_reply(facts)}: it came after the complete-by time",
    Code.REPLY_AFTER_RETIREMENT: lambda facts: "the order's workflow is not part of this app",
    Code.EVENT_FOR_UNKNOWN_STEP: lambda facts: f"the order has no step {facts['step']}",
    Code.EVENT_AFTER_COMPLETION: lambda facts: f"{facts['step']} was answered already",
    Code.EVENT_AFTER_FAILURE: lambda facts: f"{facts['step']} was given up: {_why(facts)}",
    Code.EVENT_AFTER_SKIP: lambda facts: f"{facts['step']} was left out",
    Code.EVENT_DURING_UNDO: lambda facts: f"the order is taken back: {_why(facts)}",
    Code.NOTHING_TO_HOLD: lambda facts: (
        f"the order is {facts['state']}: nothing of it starts by itself"
    ),
    Code.ON_HOLD_ALREADY: lambda facts: f"{facts['by']} holds the order already",
    Code.NOT_ON_HOLD: lambda facts: "nobody holds the order",
    Code.NOTHING_TO_EXPEDITE: lambda facts: f"the order is {facts['state']}: it waits for no claim",
    Code.EXPEDITED_ALREADY: lambda facts: "the order has high priority already",
    Code.PROCESSED_ALREADY: lambda facts: (
        "the order is Processed: what takes it back is a workflow of its own, such as `return`"
    ),
    Code.UNDONE_ALREADY: lambda facts: "the order is Undone already",
    Code.UNDO_REQUESTED_ALREADY: _undo_requested_already,
    Code.PIVOT_PASSED: _pivot_passed,
    Code.NOT_IN_ERROR: _not_in_error,
    Code.NOTHING_TO_RESUME: lambda facts: "the order is Undone: there is nothing to go on with",
    Code.KEYS_FORGOTTEN: _keys_forgotten,
    Code.NO_SUCH_STEP: _no_such_step,
    Code.SEVERAL_STEPS: _several_steps,
    Code.BEING_UNDONE: lambda facts: (
        "the order is being undone: skip the step once nothing of it stands"
    ),
    Code.NO_KEY_FORGOTTEN: lambda facts: "no step is in doubt whose key was forgotten",
    Code.NOTHING_IN_DOUBT: lambda facts: "no step is in doubt",
    Code.LATE_EFFECT_POSSIBLE: _late_effect_possible,
    Code.NOT_EXTERNAL: _not_external,
    Code.EVENT_NOT_AWAITED_YET: lambda facts: (
        f"{facts['step']} is not awaited yet: it is {facts['state']}"
    ),
    Code.DEADLINE_ON_HOLD: lambda facts: (
        f"{facts['by']} holds the order: its deadline moves at release"
    ),
    Code.RESULT_NEEDED: _result_needed,
    Code.EVENT_AFTER_END: lambda facts: f"the order is {facts['state']}: {_why(facts)}",
}
