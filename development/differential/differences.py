"""The written list of differences: what may differ between the base and this tree, and why.

Whoever changes a decision on purpose adds an entry with a predicate as narrow as the change. The run fails for any
other difference. Entries go when the base moves past their change; the run names those that it did not meet.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Json = Mapping[str, Any]

MISSING = "(missing)"
"""Stands for a value that one side does not have."""

RENAMED: Mapping[str, str] = {}
"""Words of the base that this tree has replaced: names of columns and events, and texts, each as a whole."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One value that differs, with the move and both decisions."""

    move: Json
    path: Sequence[str]
    """Where the value stands: `state`, `history`, or the kind of another row, then columns; or `messages`."""
    base: Any
    new: Any
    decisions: tuple[Json, Json]
    """The whole decisions of the base and of this tree."""
    before: Json
    """The row with the order's state before the move, as the base has it; empty before the submission."""

    def both(self, holds: Callable[[Json], object]) -> bool:
        """Whether both sides write the order's state, and this holds of both."""
        states = [*map(state_of, self.decisions)]
        return all(states) and all(map(holds, states))

    def step(self, name: str) -> tuple[Json, Json]:
        """Return a step on both sides; empty where it is missing."""
        base, new = (_step(state_of(decision), name) for decision in self.decisions)
        return base, new


def state_of(decision: Json) -> Json:
    """Return the row with the order's state; empty if the decision writes none."""
    rows = decision.get("rows", {})
    return next((row for key, row in rows.items() if key.endswith("|state")), {})


def _events(decision: Json) -> Sequence[Json]:
    """Return the history events of a decision."""
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
    """Whether it explains this differing value."""
    ends_course: bool = False
    """Whether the sides go different ways from there, so that nothing after it is compared."""


def _complete_by_of_pending(case: Case) -> bool:
    match list(case.path):
        case ["state", "CompleteBy"]:
            return case.both(lambda state: state["ProcessState"] == "Pending")
        case ["state", "Steps", _, "RetryBy"]:
            return bool(case.base == MISSING)
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
    if case.move.get("action") != "hurry":
        return False
    return any(
        step["State"] == "Undoing" and step.get("Cooldowns") and not step.get("NotBefore")
        for step in state_of(case.decisions[1]).get("Steps", ())
    )


def _woken_anew(case: Case) -> bool:
    named = case.path[0] == "messages" and list(case.path[-2:]) == ["body", "steps"]
    goes_on = case.move.get("action") in ("resubmit", "skip", "renew", "settle")
    return named and goes_on and (case.base == MISSING or {*case.base} < {*case.new})


def _one_list(case: Case) -> bool:
    return case.path[-1] == "List" and case.base == MISSING


def _kept_age(case: Case) -> bool:
    is_ended = case.both(lambda state: state["ProcessState"] in ("Error", "Processed"))
    return case.path[-1] == "WaitsSince" and is_ended and case.new < case.base


def _lock_of_awaited(case: Case) -> bool:
    """Whether nobody locks an order of which only external answers are awaited."""
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
    return case.move["do"] == "erase" and case.path[0] not in ("decided", "order", "history")


def _settled_after_a_copy(case: Case) -> bool:
    is_restored = case.move["do"] == "restore"
    return is_restored and case.path[-1] == "SettledAt" and case.new != MISSING


def _restored_among_providers(case: Case) -> bool:
    """Whether a step may have been done by one of several providers, and nobody knows by which."""
    if case.move["do"] not in ("claim", "reply", "restore"):
        return False
    return any(
        step.get("Attempts") and not step.get("Provider") and step["Capability"] != "outside"
        for step in case.before.get("Steps", ())
    )


def _left_to_newer(case: Case) -> bool:
    """Whether the base has given up a step whose provider is gone, and this tree has not."""
    base, new = (
        [event for event in _events(decision) if event["what"] == "step-failed"]
        for decision in case.decisions
    )
    return not new and any("no agent here leads to" in event["reason"] for event in base)


def _held(case: Case) -> bool:
    """Whether the history calls an order put back, which is held and now said to wait for its release."""
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
        case ["history", "Data", number, "round"]:
            return (
                case.new == MISSING
                and _events(case.decisions[0])[int(number)].get("capability") == "outside"
            )
    return False


def _restored_external(case: Case) -> bool:
    """Whether a restore leaves an external step as it was."""
    match list(case.path):
        case ["state", "Steps", name, "InDoubt" | "Attempts"]:
            is_external = all(step.get("Capability") == "outside" for step in case.step(name))
            return is_external and case.move["do"] == "restore"
    return False


def _reply_and_event_alike(case: Case) -> bool:
    """Whether an external event completes or fails a step that ran when its order was cancelled."""
    base, new = case.decisions
    is_undo = case.before.get("Direction") == "undo"
    return (
        case.move["do"] == "answer"
        and is_undo
        and (base["decided"], new["decided"]) == ("refused", "transition")
    )


def _skip_of_nothing(case: Case) -> bool:
    """Whether an alert offers to skip a step of an order of which none has failed, or none of whose undo has."""
    if case.path[-1] != "actions" or [name for name in case.base if name != "skip"] != case.new:
        return False
    state = state_of(case.decisions[1])
    return state.get("Direction") == "undo" or not any(
        step["State"] == "Failed" for step in state["Steps"]
    )


def _refused_early(case: Case) -> bool:
    """Whether a refusal is kept until the turn of its step."""
    events = _events(case.decisions[1])
    return case.move["do"] == "answer" and [event["what"] for event in events] == [
        "step-refused-early"
    ]


UNDO_RESUMED = "an operator resumed the undo"


def _resumed_undo(case: Case) -> bool:
    """Whether a text names the operator who resumed an undo, where the base names no reason."""
    new = str(case.new)
    nothing = case.base == MISSING and new == UNDO_RESUMED
    return nothing or (UNDO_RESUMED in new and new.replace(UNDO_RESUMED, "None") == case.base)


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
        name="refused-early",
        why="The refusal of a step whose condition or start time is pending counts when its turn comes (engine 29 h).",
        allows=_refused_early,
        ends_course=True,
    ),
)
