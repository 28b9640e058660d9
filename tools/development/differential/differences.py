"""The differences that are allowed between the base and this tree, with their reasons.

If you change a decision on purpose, add an entry with a predicate that is as narrow as the change. The run fails for
any other difference. Remove an entry when the base has moved past its change. The run lists the entries that it did
not need.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

Json = Mapping[str, Any]

PLAIN = ("decided", "why", "error", "state", "order")
"""The places of a decision that hold one value instead of several rows or messages."""
MISSING = "(missing)"
"""Stands for a value that one side does not have."""

LISTS = ("!pending", "!running", "!waiting", "!held", "!error", "_ended")
"""The kinds of rows that list an order."""

RENAMED: Mapping[str, str] = {}
"""Names and texts of the base that this tree has replaced, each as a whole."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A differing value, with the move and both decisions."""

    move: Json
    path: Sequence[str]
    """The place of the value: `state`, `history`, or the kind of another row, then columns. Or `messages`."""
    base: Any
    new: Any
    decisions: tuple[Json, Json]
    """The complete decisions of the base and of this tree."""
    before: Json
    """The order's state row of the base before the move. Empty before the submission."""
    here: Json = field(default_factory=dict)
    """The order's state row of this tree before the move."""
    course: Sequence[Json] = ()
    """The moves from the submission to this one."""
    world: Json = field(default_factory=dict)

    @property
    def place(self) -> str:
        """The path without keys, names and numbers, which differ between courses."""
        named = without_names(tuple(self.path))
        return ".".join(name for name in named if not name.isdigit())

    def both(self, holds: Callable[[Json], object]) -> bool:
        """Whether both sides write the order's state, and the condition holds for both."""
        states = [*map(state_of, self.decisions)]
        return all(states) and all(map(holds, states))

    def step(self, name: str) -> tuple[Json, Json]:
        """Return a step on both sides. Empty if it is missing."""
        base, new = (_step(state_of(decision), name) for decision in self.decisions)
        return base, new


def state_of(decision: Json) -> Json:
    """Return the row with the order's state. Empty if the decision writes none."""
    rows = decision.get("rows", {})
    return next((row for key, row in rows.items() if key.endswith("|state")), {})


def without_names(path: tuple[str, ...]) -> tuple[str, ...]:
    """Return the path without keys and names, which differ between courses."""
    match path:
        case ("state", "Steps", _, *rest):
            return ("state", "Steps", *rest)
        case (kind, _, *rest) if kind not in PLAIN:
            return (kind, *rest)
    return path


def _rows(decision: Json, kind: str) -> Sequence[Json]:
    rows = decision.get("rows", {})
    return [row for key, row in rows.items() if key.startswith(f"{kind}|") and row != "deleted"]


def _is_wake_up(case: Case) -> bool:
    """Whether only one side sends a wake-up."""
    return len(case.path) == 2 and case.path[0] == "messages" and ":wake" in case.path[1]


def _same_row_but(case: Case, kind: str, columns: str) -> bool:
    """Whether both sides write the same row of this kind, except for its key and these columns."""
    if len(case.path) != 2 or case.path[0] != kind:
        return False
    left_out = columns.split()
    rows = [
        [{name: row[name] for name in row if name not in left_out} for row in _rows(decision, kind)]
        for decision in case.decisions
    ]
    return len(rows[0]) == 1 and rows[0] == rows[1]


def _changed_columns(before: Json, after: Json) -> set[str]:
    """Return the columns of the state that differ. Those of a step are `Steps.<name>.<column>`."""
    steps = {step["Name"]: step for step in before.get("Steps", ())}
    found = _differing_names("", before, after) - {"Steps"}
    for step in after.get("Steps", ()):
        found |= _differing_names(f"Steps.{step['Name']}.", steps.get(step["Name"], {}), step)
    return found


def _differing_names(prefix: str, before: Json, after: Json) -> set[str]:
    names = {**before, **after}
    return {
        prefix + name for name in names if (before.get(name) or None) != (after.get(name) or None)
    }


def _time(value: Any) -> datetime | None:
    return datetime.fromisoformat(value) if value and value != MISSING else None


def _same_time(one: Any, other: Any) -> bool:
    """Whether both are the same time. Rows and objects within them write times differently."""
    return _time(one) is not None and _time(one) == _time(other)


def _seconds(value: float) -> timedelta:
    return timedelta(seconds=value)


def _events(decision: Json) -> Sequence[Json]:
    rows = decision.get("rows", {})
    return [
        event for key, row in rows.items() if "|history|" in key for event in row.get("Data", ())
    ]


def _step(state: Json, name: str) -> Json:
    steps: Sequence[Json] = state.get("Steps", ())
    return next((step for step in steps if step["Name"] == name), {})


@dataclass(frozen=True, kw_only=True)
class Difference:
    """An entry of the list."""

    name: str
    why: str
    allows: Callable[[Case], bool]
    """Whether the entry allows this differing value."""
    ends_course: bool = False
    """Whether the sides diverge from there on, so that the rest of the course is not compared."""


def _complete_by_of_pending(case: Case) -> bool:
    """Whether the time is that of the steps that wait for their next attempt."""
    new = state_of(case.decisions[1])
    waiting = {step["Name"]: step for step in _waiting(new)}
    match list(case.path):
        case ["state", "CompleteBy"] if case.both(lambda it: it["ProcessState"] == "Pending"):
            times = [_time(step["RetryBy"]) for step in waiting.values() if step.get("RetryBy")]
            return _time(case.new) == max(filter(None, times), default=None)
        case ["state", "Steps", name, "RetryBy"]:
            return case.base == MISSING and _is_retried_by(case, name, waiting)
    return False


def _waiting(state: Json) -> Sequence[Json]:
    """Return the steps that wait for an attempt, to do or to undo them. None after a failure (SCH-12)."""
    is_undo = state.get("Direction") == "undo"
    if not is_undo and any(step["State"] == "Failed" for step in state.get("Steps", ())):
        return ()
    return [
        step
        for step in state.get("Steps", ())
        if step["State"] == ("Undoing" if is_undo else "NotStarted") and not step.get("CompleteBy")
    ]


def _is_retried_by(case: Case, name: str, waiting: Mapping[str, Json]) -> bool:
    """Whether the time is the one from before, or that of an attempt that starts as soon as possible.

    The undo of the order leaves the time of a step that was not started, and nothing reads it there.
    """
    step = _step(state_of(case.decisions[1]), name)
    if step.get("State") in ("NotStarted", "Undoing") and not step.get("CompleteBy"):
        starts = _time(step.get("NotBefore") or case.move["at"])
        is_kept = case.new == _step(case.here, name).get("RetryBy")
        is_new = starts and _time(case.new) == starts + _seconds(step["TimeoutSeconds"])
        return is_kept or (name in waiting and bool(is_new))
    return False


def _dead_refusal(case: Case) -> bool:
    match list(case.path):
        case ["state", "Steps", name, "RefusedForGood"]:
            is_undo = case.both(lambda state: state.get("Direction") == "undo")
            dead = ("Undoing", "Undone", "Failed") if is_undo else ("Undoing", "Undone")
            return all(step.get("State") in dead for step in case.step(name))
    return False


def _dead_condition(case: Case) -> bool:
    match list(case.path):
        case ["state", "Steps", name, "Unjudged"]:
            dead = ("Skipped", "Completed", "Undoing", "Undone")
            return all(step.get("State") in dead for step in case.step(name))
    return False


def _expedited_undo(case: Case) -> bool:
    """Whether the cooldown of an undo ends, and the order is ready from now on."""
    if case.move.get("action") != "hurry":
        return False
    cooled = {
        step["Name"]
        for step in state_of(case.decisions[1]).get("Steps", ())
        if step["State"] == "Undoing" and step.get("Cooldowns") and not step.get("NotBefore")
        if _step(case.here, step["Name"]).get("NotBefore")
    }
    if not cooled:
        return False
    match list(case.path):
        case ["state"]:
            of_steps = {f"Steps.{name}.NotBefore" for name in cooled}
            changed = _changed_columns(case.here, case.new)
            return case.base == MISSING and changed <= OF_ANY_TRANSITION | of_steps
        case ["state", "Steps", name, "NotBefore"]:
            return name in cooled and case.new == MISSING
        case ["messages", _, "body", "steps"]:
            base = [] if case.base == MISSING else case.base
            return {*case.new} - cooled == {*base} - cooled
    return _follows_from_expedited(case)


def _follows_from_expedited(case: Case) -> bool:
    decided = tuple(decision["decided"] for decision in case.decisions)
    match list(case.path):
        case [("state" | "!pending" | "!running"), *_, "NotBefore"]:
            return bool(case.new == MISSING)
        case [("state" | "!pending" | "!running"), *_, "WaitsSince"]:
            return _same_time(case.new, case.move["at"])
        case ["decided"] | ["_acted" | "history" | "!pending", _] if decided == REFUSED_BEFORE:
            return True
        case ["messages", _]:
            return _is_wake_up(case) and case.base == MISSING
    return _same_row_but(case, "!pending", "List NotBefore WaitsSince")


REFUSED_BEFORE = ("refused", "transition")


def _woken_anew(case: Case) -> bool:
    named = case.path[0] == "messages" and list(case.path[-2:]) == ["body", "steps"]
    goes_on = case.move.get("action") in ("resubmit", "skip", "renew", "settle")
    return named and goes_on and (case.base == MISSING or {*case.base} < {*case.new})


def _one_list(case: Case) -> bool:
    """Whether a row that lists the order names its list, like all rows of the decision."""
    if len(case.path) != 3 or case.path[0] not in LISTS or case.path[2] != "List":
        return False
    rows = [row for kind in LISTS for row in _rows(case.decisions[1], kind)]
    return case.base == MISSING and all(row.get("List") == case.new for row in rows)


def _needs(state: Json) -> set[str]:
    """Return the lanes of the steps that wait for an attempt."""
    return {
        "-" if step["Capability"] == "outside" else step["Capability"]
        for step in state.get("Steps", ())
        if step["State"] in ("NotStarted", "Undoing") and not step.get("CompleteBy")
    }


def _further_lane(case: Case) -> bool:
    """Whether only this tree puts an order in the lane of one of several capabilities, or removes it."""
    match list(case.path):
        case ["!pending", key]:
            is_left = case.new == "deleted"
            needs = _needs(case.before if is_left else state_of(case.decisions[1]))
            return case.base == MISSING and len(needs) > 1 and key.split("|")[2] in needs
        case ["why"]:
            other = (case.base, case.new) == ("no-room", "no-room-at-its-own")
            return other and len(_needs(case.before)) > 1
    return False


def _kept_age(case: Case) -> bool:
    """Whether an order that had ended keeps its age, which the base resets with this move."""
    ended = ("Error", "Processed")
    is_ended = case.both(lambda state: state["ProcessState"] in ended)
    if not is_ended or case.here.get("ProcessState") not in ended:
        return False
    if case.place != "state.WaitsSince" and case.place not in AGES_OF_ENDED:
        return False
    is_kept = _same_time(case.new, case.here.get("WaitsSince"))
    return is_kept and _same_time(case.base, case.move["at"])


AGES_OF_ENDED = ("!error.WaitsSince", "!held.WaitsSince", "_ended.WaitsSince")


def _lock_of_awaited(case: Case) -> bool:
    """Whether no scheduler locks an order that only waits for external events."""
    if not case.both(lambda state: state["ProcessState"] == "Processing"):
        return False
    agents = (
        step
        for step in state_of(case.decisions[1]).get("Steps", ())
        if step.get("CompleteBy") and step["Capability"] != "outside"
    )
    match list(case.path):
        case ["state", "LockedBy"]:
            return case.new == MISSING and not any(agents)
        case [_, _, "Situation"]:
            was = case.base in ("processing", "again")
            return was and case.new == "awaiting" and not any(agents)
    return False


def _erasure(case: Case) -> bool:
    """Whether the base treats an erasure as a move of the order. The erased data is compared."""
    if case.move["do"] != "erase":
        return False
    if case.place in ("state.UpdatedAt", *(f"{kind}.UpdatedAt" for kind in LISTS)):
        is_kept = _same_time(case.new, case.here.get("UpdatedAt"))
        return is_kept and _same_time(case.base, case.move["at"])
    if case.path[-1] == "NotBefore" and case.path[0] in ("state", *LISTS):
        return case.base == MISSING and _same_time(case.new, case.here.get("NotBefore"))
    if _is_wake_up(case):
        return bool(case.new == MISSING)
    return any(
        _same_row_but(case, kind, "List NotBefore UpdatedAt WaitsSince")
        for kind in ("!error", "!pending")
    )


def _settled_after_a_copy(case: Case) -> bool:
    """Whether calls of a restored step may take effect until a call that starts now no longer can."""
    if case.move["do"] != "restore" or case.place != "state.Steps.SettledAt":
        return False
    base, step = case.step(case.path[2])
    after = step["TimeoutSeconds"] + step["LateEffectWindowSeconds"]
    now, tolerance = _time(case.move["at"]), case.world["seconds"]["tolerance"]
    latest = now + _seconds(after + tolerance) if now else None
    return latest is not None and _time(case.new) == max(
        latest, _time(base.get("SettledAt")) or latest
    )


def _restored_among_providers(case: Case) -> bool:
    """Whether a step may have been done by any of several providers."""
    match list(case.path):
        case ["state", "Steps", name, "Provider" | "KeyKnownUntil" as column]:
            providers = _providers(case, case.step(name)[1])
            if case.move["do"] != "restore" or len(providers) < 2:
                return False
            if column == "Provider":
                return case.base in providers and case.new == MISSING
            return _same_time(case.new, case.move["copiedAt"])
    return _forgotten_among_providers(case)


def _providers(case: Case, step: Json) -> set[str]:
    """Return the providers that offer the step's capability."""
    return {
        agent.get("provider") or agent["name"]
        for agent in case.world["agents"]
        if agent["offers"] == step["Capability"]
    }


def _forgotten_among_providers(case: Case) -> bool:
    """Whether the first claim of a restored step leaves it to an operator, because its key may be forgotten."""
    is_restored = any(move["do"] == "restore" for move in case.course)
    if case.move["do"] not in ("claim", "reply") or not is_restored:
        return False
    failed = {
        event["step"]: event["reason"]
        for event in _events(case.decisions[1])
        if event["what"] == "step-failed"
    }
    unknown = [
        step
        for step in case.here.get("Steps", ())
        if step["Name"] in failed and step.get("Attempts") and not step.get("Provider")
    ]
    if not unknown or any(len(_providers(case, step)) < 2 for step in unknown):
        return False
    if any(" only until " not in reason for reason in failed.values()):
        return False
    if case.place == "state":
        given_up = {f"Steps.{name}.{column}" for name in failed for column in GIVEN_UP}
        return case.base == MISSING and _changed_columns(case.here, case.new) <= ENDING | given_up
    return case.place in FORGOTTEN_PLACES


ENDING = {"Outcome", "ProcessState", "Reason", "UpdatedAt", "Version", "WaitsSince"}
"""The columns of the state that change when the order ends in `Error`."""
GIVEN_UP = ("ForOperator", "Reason", "State")
"""The columns of a step that change when an operator has to decide on it."""
STARTED = ("Attempts", "CompleteBy", "Right", "State")
"""The columns of another step that the base starts instead."""
FORGOTTEN_PLACES = frozenset(
    {
        *("decided", "why", "messages", "!pending", "!running", "!error", "!outbox"),
        *("!error.Reason", "!outbox.Data.reason", "history", "history.Event", "history.Detail"),
        *(f"history.Data{name}" for name in ("", ".reason", ".step", ".what", ".attempt")),
        *(f"history.Data.{name}" for name in ("agent", "capability", "completeBy")),
        *(f"state.{name}" for name in (*ENDING, "CompleteBy", "LockedBy")),
        *(f"state.Steps.{name}" for name in (*GIVEN_UP, *STARTED)),
    }
)


def _left_to_newer(case: Case) -> bool:
    """Whether only the base has failed a step whose provider no longer exists."""
    base, new = (
        {event["step"]: event["reason"] for event in _events(decision) if _gives_up(event)}
        for decision in case.decisions
    )
    if new or not base or any("this app has no agent for" not in why for why in base.values()):
        return False
    if case.decisions[1]["decided"] == "not-claimed":
        is_why = case.place == "why" and case.new == "unknown-provider"
        return is_why or case.place == "decided" or case.new == MISSING
    if case.place.startswith("state.Steps."):
        name, column = case.path[2], case.path[3]
        is_left = case.new == ("Undoing" if column == "State" else MISSING)
        return is_left and name in base and column in (*GIVEN_UP, "InDoubt")
    if case.place in ("state.ProcessState", "state.Outcome", "state.Reason", "state.WaitsSince"):
        return case.place == "state.ProcessState" or _is_as_before(case)
    if _is_wake_up(case):
        return bool(case.base == MISSING)
    return case.place in LEFT_PLACES


def _gives_up(event: Json) -> bool:
    return bool(event["what"] == "step-failed")


def _is_as_before(case: Case) -> bool:
    """Whether a column of the state in this tree is unchanged by the move."""
    match list(case.path):
        case ["state", "Steps", name, column]:
            return bool(case.new == (_step(case.here, name).get(column) or MISSING))
        case ["state", column]:
            return bool(case.new == (case.here.get(column) or MISSING))
    return False


LEFT_PLACES = frozenset(
    {
        *("!pending", "!error", "!outbox", "history.Event", "history.Detail"),
        *(f"history.Data{name}" for name in ("", ".reason", ".step", ".what", ".attempt")),
    }
)


def _held(case: Case) -> bool:
    """Whether the history shows an order on hold as returned, which now waits for its release."""
    if case.path[0] != "history" or not case.both(lambda state: state.get("HeldSince")):
        return False
    base, new = map(_events, case.decisions)
    return {"what": "put-back"} in base and any(
        event["what"] == "waits" and "heldBy" in event for event in new
    )


def _doubt_of_external(case: Case) -> bool:
    match list(case.path):
        case ["state", "Steps", name, "InDoubt" | "RefusedForGood" | "Round"]:
            return all(step.get("Capability") == "outside" for step in case.step(name))
        case ["history", _, "Data", number, "round"]:
            return (
                case.new == MISSING
                and _events(case.decisions[0])[int(number)].get("capability") == "outside"
            )
    return False


def _restored_external(case: Case) -> bool:
    """Whether a restore leaves an external step unchanged."""
    match list(case.path):
        case ["state", "Steps", name, "InDoubt" | "Attempts"]:
            is_external = all(step.get("Capability") == "outside" for step in case.step(name))
            return is_external and case.move["do"] == "restore"
    return False


def _reply_and_event_alike(case: Case) -> bool:
    """Whether an external event completes or fails a step that ran when its order was cancelled."""
    base, new = case.decisions
    decided = (base["decided"], new["decided"])
    is_undo = case.here.get("Direction") == "undo"
    if case.move["do"] != "answer" or not is_undo or decided != ("refused", "transition"):
        return False
    if _step(case.here, case.move["step"]).get("State") != "Running":
        return False
    if case.place == "state":
        return _only_takes_event(case)
    if case.place == "history":
        return all(
            event.get("step", case.move["step"]) == case.move["step"] for event in _events(new)
        )
    return case.place == "decided" or case.path[0] in LISTS or _is_wake_up(case)


def _only_takes_event(case: Case) -> bool:
    """Whether only the step of the event changes, its result is the event, and the rest follows."""
    name, steps = case.move["step"], case.new["Steps"]
    result = f"Result{[step['Name'] for step in steps].index(name):02d}"
    event = case.move.get("answer") or {}
    kept = case.new.get(result, {}).items() <= event.items()
    changed = _changed_columns(case.here, case.new)
    own = {f"Steps.{name}.{column}" for column in OF_AN_END}
    return kept and changed <= {*OF_ANY_TRANSITION, result, *own}


OF_ANY_TRANSITION = frozenset(
    {"CompleteBy", "LockedBy", "NotBefore", "ProcessState", "UpdatedAt", "Version", "WaitsSince"}
)
"""The columns of the state that follow from the others."""
OF_AN_END = frozenset(
    {
        *("AnswerBy", "CompleteBy", "FailureCount", "InDoubt", "KeyKnownUntil"),
        *("NotBefore", "Reason", "RefusedForGood", "State", "Uncounted"),
    }
)
"""The columns of a step that change when its attempt ends."""


def _skip_of_nothing(case: Case) -> bool:
    """Whether an alert offers to skip a step of an order without a failed step or undo."""
    if case.place != "!outbox.Data.actions":
        return False
    if [name for name in case.base if name != "skip"] != case.new:
        return False
    state = state_of(case.decisions[1])
    return state.get("Direction") == "undo" or not any(
        step["State"] == "Failed" for step in state["Steps"]
    )


def _refused_early(case: Case) -> bool:
    """Whether a refusal is kept until its step is next, and nothing else changes."""
    events = _events(case.decisions[1])
    if case.move["do"] != "answer" or [event["what"] for event in events] != ["step-refused-early"]:
        return False
    if case.place.startswith("state."):
        is_own = case.place.startswith("state.Steps.") and case.path[2] == case.move["step"]
        may_differ = ("state.Steps.State",) if is_own else EARLY_COLUMNS
        return case.place in may_differ and _is_as_before(case)
    return case.place in EARLY_PLACES or _is_wake_up(case)


EARLY_COLUMNS = frozenset(
    {
        *(f"state.{name}" for name in ("Direction", "NotBefore", "Reason", "WaitsSince")),
        *(f"state.Steps.{name}" for name in ("AnswerBy", "FailureCount", "NotBefore", "Reason")),
        *("state.Steps.State", "state.Steps.Uncounted"),
    }
)
"""The places that the undo of the order would change. In this tree each has to be unchanged."""
EARLY_PLACES = frozenset(
    {
        *("!pending", "!pending.Reason", "!pending.Situation", "history.Data"),
        *(f"messages.body.{name}" for name in ("needs", "since", "steps")),
        *(
            f"{kind}.{name}"
            for kind in LISTS
            for name in ("FailedAgents", "FailedSteps", "WaitsSince")
        ),
        *("_acted.Event", "_acted.Detail", "history.Event", "history.Detail", "history.Data.what"),
    }
)


def _undo_left_to_scheduler(case: Case) -> bool:
    """Whether a recovery leaves the undo to the next claim, and only expired steps change."""
    base, new = map(_events, case.decisions)
    requested = {
        event["step"]: event["reason"] for event in base if event["what"] == "undo-requested"
    }
    if case.move["do"] != "recover" or not requested:
        return False
    kept = [event for event in base if event["what"] not in ("undo-requested", "step-withdrawn")]
    if [*new] != [*kept, {"what": "recovered"}]:
        return False
    state = state_of(case.decisions[1])
    steps = [_step(state, name) for name in requested]
    failed = [(step.get("State"), step.get("Reason")) for step in steps]
    is_left = state.get("Direction") == case.here.get("Direction")
    if not is_left or failed != [("Failed", reason) for reason in requested.values()]:
        return False
    if case.place.startswith("state.Steps."):
        is_expired = any(event.get("step") == case.path[2] for event in new)
        return is_expired or _is_as_before(case)
    if case.place in ("state.Direction", "state.Reason"):
        return _is_as_before(case)
    return case.place in LEFT_TO_SCHEDULER or _is_wake_up(case)


LEFT_TO_SCHEDULER = frozenset(
    {
        *("!pending", "!waiting", "!pending.Reason", "!pending.Situation", "!waiting.Reason"),
        *("!pending.List", "!waiting.Situation", "state.NotBefore", "state.WaitsSince"),
        *("!held.FailedAgents", "!held.FailedSteps", "!held.WaitsSince"),
        *("history.Event", "history.Detail", "history.Data"),
        *(f"history.Data.{name}" for name in ("attempt", "reason", "step", "what")),
        *(f"messages.body.{name}" for name in ("needs", "since", "steps")),
    }
)


def _optional_fingerprint(case: Case) -> bool:
    match list(case.path):
        case ["state", "Steps", name, "Fingerprint"]:
            return all(step.get("GoesOn") for step in case.step(name))
    return False


def _other_digest(case: Case) -> bool:
    """Whether both sides note the same refused reply, under ids that differ only in their digest."""
    decided = [decision["decided"] for decision in case.decisions]
    if case.move["do"] != "reply" or decided != ["note", "note"] or case.place != "history":
        return False
    base, new = (
        {
            key.rpartition("-")[0]: row
            for key, row in decision["rows"].items()
            if "|history|" in key and "|reply-" in key
        }
        for decision in case.decisions
    )
    return bool(base) and base == new


UNDO_RESUMED = "an operator resumed the undo"


def _resumed_undo(case: Case) -> bool:
    """Whether a text names the operator who resumed an undo, where the base names no reason."""
    if case.path[-1] not in ("Reason", "reason", "Detail"):
        return False
    new = str(case.new)
    nothing = case.base == MISSING and new == UNDO_RESUMED
    return nothing or (UNDO_RESUMED in new and new.replace(UNDO_RESUMED, "None") == case.base)


def _renamed_option(case: Case) -> bool:
    """Whether the value is the fingerprint of a step that has an option with a new name."""
    instances = case.world.get("instances", {}).values()
    declaring = [case.world, *instances]
    workflows = [workflow for known in declaring for workflow in known.get("workflows", ())]
    steps = [step for workflow in workflows for step in workflow["steps"]]
    match list(case.path):
        case ["state", "Steps", name, "Fingerprint"]:
            return any(step["name"] == name and _has_renamed_option(step) for step in steps)
    return False


def _words_of_option(case: Case) -> bool:
    """Whether the text of a failed condition or start time has the new name of its option."""
    if not isinstance(case.base, str):
        return False
    renamed = re.sub(r": when (\w+) failed: ", r": condition \1 failed: ", case.base)
    renamed = re.sub(r": begins (\w+) failed: ", r": start_at \1 failed: ", renamed)
    return renamed != case.base and renamed == case.new


def _has_renamed_option(step: Json) -> bool:
    is_optional = step.get("onFailure") == "continue"
    return is_optional or bool(step.get("condition") or step.get("startAt"))


def _says_that_it_has_begun(case: Case) -> bool:
    is_new = case.place == "history.Data.has_begun" and case.base == MISSING
    return case.move["do"] == "recover" and is_new


def _still_to_come(case: Case) -> bool:
    """Whether a recovery counts no attempt that its agent has begun without reporting a fault."""
    base, new = map(_events, case.decisions)
    charged = {event["step"] for event in base if "failure" in event}
    waiting = {event["step"] for event in new if event.get("has_begun") and "failure" not in event}
    if case.move["do"] != "recover" or not charged & waiting:
        return False
    state = state_of(case.decisions[1])
    pairs = [(_step(case.here, name), _step(state, name)) for name in charged & waiting]
    # The attempts of an undo, which a cancelled order begins then, are counted anew.
    more = 0 if state.get("Direction") == "undo" else 1
    return all(
        after.get("FailureCount", 0) == before.get("FailureCount", 0)
        and after.get("Uncounted", 0) == more * (before.get("Uncounted", 0) + 1)
        for before, after in pairs
    )


def _without_personal_words(case: Case) -> bool:
    """Whether a reply's text lacks a personal value of an answer, and nothing else."""
    is_text = isinstance(case.base, str) and isinstance(case.new, str)
    if case.move["do"] != "reply" or not is_text or "erased" not in case.new:
        return False
    pattern = ".+".join(map(re.escape, case.new.split("erased")))
    return re.fullmatch(pattern, case.base) is not None


DIFFERENCES: Sequence[Difference] = (
    Difference(
        name="complete-by-of-pending",
        why="The next attempt's complete-by time follows from the step that waits for it (SUP-3). The base also "
        "writes one where no step is tried again, takes that of the first step for all, and loses it at an answer.",
        allows=_complete_by_of_pending,
    ),
    Difference(
        name="refusal-of-undone",
        why="Whether the service repeats a refusal means nothing of a step that is undone, or is to be, and nobody reads "
        "it there.",
        allows=_dead_refusal,
    ),
    Difference(
        name="condition-of-a-step-past-it",
        why="Whether its condition was evaluated means nothing of a step that is done, left out, undone or to be undone, and "
        "nobody reads it there.",
        allows=_dead_condition,
    ),
    Difference(
        name="expedited-undo",
        why="To expedite an order ends the cooldown of an undo too (OPR-8).",
        allows=_expedited_undo,
        ends_course=True,
    ),
    Difference(
        name="woken-anew",
        why="An order that goes on from `Error` forgets the time of a step's next attempt, so its wake-up names that step "
        "too, although it was ready before.",
        allows=_woken_anew,
    ),
    Difference(
        name="one-list",
        why="The rows of an order name the one list that has it (OPR-1); some orders were in none, others in two.",
        allows=_one_list,
    ),
    Difference(
        name="lane-of-each-need",
        why="An order whose ready steps need several agents waits for each of them (engine 7). The base lets it wait "
        "for the first alone.",
        allows=_further_lane,
    ),
    Difference(
        name="age-of-an-ended-order",
        why="What leaves an order in `Error` or `Processed` does not restart the time since which it waits.",
        allows=_kept_age,
    ),
    Difference(
        name="lock-of-an-awaited-answer",
        why="Nobody locks an order that only awaits external answers (ANS-1), also after a callback has ended the "
        "last attempt of an agent.",
        allows=_lock_of_awaited,
    ),
    Difference(
        name="erasure",
        why="An erasure moves nothing of an order: its age, its last change and its lists stay, and nobody is woken.",
        allows=_erasure,
        ends_course=True,
    ),
    Difference(
        name="settled-after-a-copy",
        why="A request since the copy may still take effect, so the undo of a restored step waits for that (UND-2).",
        allows=_settled_after_a_copy,
        ends_course=True,
    ),
    Difference(
        name="restored-among-providers",
        why="The provider of a step that was restored from a copy stays unknown where there are several. The base "
        "took one whose agent has the name of the capability.",
        allows=_restored_among_providers,
        ends_course=True,
    ),
    Difference(
        name="provider-of-a-newer-version",
        why="A step whose provider no agent here leads to is left to newer hosts for a while (FLT-12).",
        allows=_left_to_newer,
        ends_course=True,
    ),
    Difference(
        name="has-begun",
        why="The history of a recovery says of each attempt whether its agent has begun it (SUP-9).",
        allows=_says_that_it_has_begun,
    ),
    Difference(
        name="reply-still-to-come",
        why="An attempt that its agent has begun, and of which it reports no fault, is no failure yet (SUP-3): its reply "
        "may wait in the queue.",
        allows=_still_to_come,
        ends_course=True,
    ),
    Difference(
        name="personal-words-of-answers",
        why="The words of a reply show no personal value of an answer from outside (ANS-5, engine 12).",
        allows=_without_personal_words,
    ),
    Difference(
        name="held-and-put-back",
        why="The history of a held order says that it waits for its release, and not that no agent has capacity.",
        allows=_held,
    ),
    Difference(
        name="resumed-undo",
        why="An undo that an operator resumed has that as its reason (engine 29 g). The base has none, so the order "
        'ended as "undone: None".',
        allows=_resumed_undo,
    ),
    Difference(
        name="restored-external-step",
        why="A restored step that an external event completes is as it was copied. The base said that it was tried since.",
        allows=_restored_external,
        ends_course=True,
    ),
    Difference(
        name="doubt-of-an-external-step",
        why="Nothing is sent for a step that an external event completes: nothing of it is in doubt, or refused for good "
        "under a key. Nobody reads what the base keeps of that.",
        allows=_doubt_of_external,
    ),
    Difference(
        name="event-during-undo",
        why="The event of a service that still works counts while its order is undone, as its reply does (engine 8).",
        allows=_reply_and_event_alike,
        ends_course=True,
    ),
    Difference(
        name="skip-of-nothing",
        why="An order of which no step has failed offers no skip: its workflow is gone. The base offered one and refused it.",
        allows=_skip_of_nothing,
    ),
    Difference(
        name="undo-left-to-a-scheduler",
        why="After a time-out the supervisor leaves an order that has to be undone to the next claim (SUP-6).",
        allows=_undo_left_to_scheduler,
        ends_course=True,
    ),
    Difference(
        name="digest-of-a-refused-reply",
        why="The id of the note about a refused reply has a digest of its JSON.",
        allows=_other_digest,
    ),
    Difference(
        name="fingerprint-of-an-optional-step",
        why="The rule of an optional step, which its fingerprint contains, is `continue`. It was `go-on`.",
        allows=_optional_fingerprint,
    ),
    Difference(
        name="refused-early",
        why="The refusal of a step whose condition or start time is pending counts when its turn comes (engine 29 h).",
        allows=_refused_early,
        ends_course=True,
    ),
    Difference(
        name="fingerprint-of-renamed-options",
        why="The fingerprint of a definition has the names of its options, of which `condition`, `start_at` and `CONTINUE` "
        "are new.",
        allows=_renamed_option,
    ),
    Difference(
        name="words-of-renamed-options",
        why="The reason of a failed condition or start time names its option, `condition` or `start_at`.",
        allows=_words_of_option,
    ),
)
