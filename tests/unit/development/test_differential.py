"""The differential run: what it compares, and what it reports."""

import json
from io import StringIO

import pytest
from click.testing import CliRunner

from development.differential import trees
from development.differential.__main__ import main
from development.differential.comparison import compare
from development.differential.courses import make
from development.differential.differences import DIFFERENCES, MISSING, Difference
from development.differential.side import decided
from development.faults import DevelopmentCode
from engine.words import catalogue
from functions_alone.ports import StackError

T1, T2, T3, T4 = (f"2026-01-31T08:15:0{second}+00:00" for second in range(1, 5))
AGENTS = [{"name": name, "offers": "pay"} for name in ("pay", "second")]
STEPS = [{"name": "a", "condition": "never"}, {"name": "b"}]
WORLD = {
    "world": {
        "name": "one",
        "agents": AGENTS,
        "seconds": {"tolerance": 1},
        "workflows": [{"name": "one", "steps": STEPS}],
    }
}
SUBMIT = {"from": None, "do": "submit", "at": T1}
CLAIM = {"from": 0, "do": "claim", "at": T2}
RECOVER = {"from": 1, "do": "recover", "at": T2}
HOLD = {"from": 0, "do": "act", "action": "hold", "at": T2}


def state(**columns):
    """A transition that writes the order's state with these columns."""
    return {"decided": "transition", "rows": {"b00-1|state": columns}, "messages": []}


def compared(moves, base, new, *differences, renamed=None):
    """The comparison of two lists of decisions about these moves of one world."""
    courses, base, new = (map(json.dumps, lines) for lines in ([WORLD, *moves], base, new))
    return [*compare(courses, base, new, differences, renamed)][-1]


def listed(name, path, **more):
    """An entry of the list that explains this place."""
    return Difference(name=name, why="", allows=lambda case: list(case.path) == path, **more)


@pytest.mark.soak
def test_the_same_code_decides_alike():
    """Whoever decides twice about the same courses decides alike, and all kinds of moves and decisions are there."""
    courses = StringIO()
    make(courses, states=2, walks=1, length=10, tell=lambda _: None)
    lines = courses.getvalue().splitlines()
    found = [*compare(lines, decided(lines), decided(lines), DIFFERENCES)][-1]
    assert (found.compared, found.found) == (found.moves, 0)
    assert {*found.decided} >= {"transition", "note", "not-claimed", "nothing", "refused"}
    assert "error" not in found.decided
    kinds = {json.loads(line).get("do") for line in lines} - {None}
    assert kinds >= {"submit", "claim", "reply", "recover", "act", "answer", "extend", "erase"}


def test_a_difference_is_reported_with_its_course_and_place():
    """The report has the moves from the submission on, and both values where they differ."""
    base = [state(), state(LockedBy="one"), state()]
    new = [state(), state(LockedBy="two"), state()]
    found = compared([SUBMIT, CLAIM, RECOVER], base, new)
    (example,) = [candidate for examples in found.examples.values() for candidate in examples]
    assert example.course == [SUBMIT, CLAIM]
    assert example.differing == {("state", "LockedBy"): ("one", "two")}


def test_nothing_is_compared_after_a_difference():
    """Whatever follows from a difference is no second one; other courses are still compared."""
    base = [state(), state(LockedBy="one"), state(), state(HeldBy="one")]
    new = [state(), state(LockedBy="two"), state(Outcome="x"), state(HeldBy="two")]
    found = compared([SUBMIT, CLAIM, RECOVER, HOLD], base, new)
    assert (found.moves, found.compared, found.found) == (4, 3, 2)


def test_a_step_is_named_where_one_differs():
    """Of a list of steps, the place names the step, and other steps count as the same."""
    steps = [{"Name": "a", "State": "Running"}, {"Name": "b", "State": "NotStarted"}]
    changed = [steps[0], {"Name": "b", "State": "Skipped"}]
    found = compared([SUBMIT], [state(Steps=steps)], [state(Steps=changed)])
    (example,) = found.examples.popitem()[1]
    assert example.differing == {("state", "Steps", "b", "State"): ("NotStarted", "Skipped")}


@pytest.mark.parametrize("nothing", [None, False, 0, 0.0, "", [], {}])
def test_a_column_that_says_nothing_may_be_left_out(nothing):
    """A row with a default and a row without the column mean the same."""
    found = compared([SUBMIT], [state(HeldBy=nothing, Priority="high")], [state(Priority="high")])
    assert found.found == 0


def test_a_row_that_only_one_side_deletes_is_a_difference():
    """A deleted row is not the same as a row that nobody has touched."""
    deleted = {"decided": "transition", "rows": {"!pending|1|pay": None}, "messages": []}
    found = compared([SUBMIT], [deleted], [{**deleted, "rows": {}}])
    (example,) = found.examples.popitem()[1]
    assert example.differing == {("!pending", "!pending|1|pay"): ("deleted", MISSING)}


def test_a_message_that_only_one_side_sends_is_a_difference():
    """Messages are compared by their ids and bodies."""
    found = compared([SUBMIT], [with_message(step="a")], [with_message(step="b")])
    (example,) = found.examples.popitem()[1]
    assert example.differing == {("messages", "m", "body", "step"): ("a", "b")}


def test_a_message_that_only_one_side_sends_twice_is_a_difference():
    """Two messages of one id are not the same as one."""
    message = {"id": "m", "body": {"step": "a"}}
    one, other = ({**state(), "messages": [message] * times} for times in (1, 2))
    assert compared([SUBMIT], [one], [other]).found == 1


def test_a_listed_difference_lets_the_comparison_go_on():
    """What the list explains is counted by its name, and the moves after it are compared."""
    base, new = [state(LockedBy="one"), state(Outcome="x")], [state(), state(Outcome="y")]
    entry = listed("lock", ["state", "LockedBy"])
    found = compared([SUBMIT, CLAIM], base, new, entry)
    assert found.listed == {"lock": 1}
    assert [*found.kinds] == ["claim: state.Outcome"]


def test_a_listed_difference_may_end_the_course():
    """Where both sides go different ways, nothing is compared after it, and nothing is reported."""
    base, new = [state(LockedBy="one"), state(Outcome="x")], [state(), state(Outcome="y")]
    entry = listed("lock", ["state", "LockedBy"], ends_course=True)
    found = compared([SUBMIT, CLAIM], base, new, entry)
    assert (found.compared, found.found) == (1, 0)


def test_the_list_explains_every_place_by_itself():
    """An entry that explains one place leaves another one a difference."""
    base, new = [state(LockedBy="one", Outcome="x")], [state()]
    found = compared([SUBMIT], base, new, listed("lock", ["state", "LockedBy"]))
    assert [*found.kinds] == ["submit: state.Outcome"]


def test_words_that_were_replaced_are_compared_by_the_new_ones():
    """A renamed column or value of the base is no difference."""
    base, new = [state(WaitsSince="t", Event="hurried")], [state(ReadySince="t", Event="expedited")]
    renamed = {"WaitsSince": "ReadySince", "hurried": "expedited"}
    assert compared([SUBMIT], base, new, renamed=renamed).found == 0
    assert compared([SUBMIT], base, new).found == 1


def test_a_side_that_ends_too_early_is_an_error():
    """A crash of one process is not taken for a pass."""
    with pytest.raises(ValueError, match="1 moves"):
        compared([SUBMIT, CLAIM], [state(), state()], [state()])


RESUBMIT = {"from": 0, "do": "act", "action": "resubmit", "at": T2}
HURRY = {"from": 0, "do": "act", "action": "hurry", "at": T2}
ERASE = {"from": 0, "do": "erase", "at": T2}
ANSWER = {"from": 0, "do": "answer", "at": T2, "step": "a", "answer": {"reference": "r"}}
RESTORE = {"from": 0, "do": "restore", "at": T2, "copiedAt": T1}
REPLY = {"from": 0, "do": "reply", "at": T2}
AFTER_RESTORE = (RESTORE, {**CLAIM, "from": 1})
REFUSED = {"decided": "refused"}


def with_rows(decision, **rows):
    """The decision with these rows too; the name of one is the kind of its key."""
    keyed = {f"{kind.replace('on_', '!')}|{T1}|b00-1": row for kind, row in rows.items()}
    return {**decision, "rows": {**decision.get("rows", {}), **keyed}}


def with_history(decision, *events, **columns):
    """The decision with these history events."""
    row = {"Data": [*events], **columns}
    return {**decision, "rows": {**decision.get("rows", {}), "b00-1|history|1": row}}


def event(what, **more):
    """A history event."""
    return {"what": what, **more}


def with_message(decision=None, name="m", **body):
    """The decision with a message of this body."""
    return {**(decision or state()), "messages": [{"id": name, "body": body}]}


def pending(*capabilities, lanes=("pay",)):
    """A transition of an order whose steps need these agents, and which waits in these lanes."""
    steps = [
        {"Name": f"s{number}", "State": "NotStarted", "Capability": capability}
        for number, capability in enumerate(capabilities)
    ]
    rows = {f"!pending|1|{lane}|{T1}|b00-1": {"OrderID": "b00-1"} for lane in lanes}
    written = state(Steps=steps)
    return {**written, "rows": {**written["rows"], **rows}}


def step(of="NotStarted", capability="pay", **columns):
    """The column of the one step, which is in this state."""
    rules = {"TimeoutSeconds": 2, "LateEffectWindowSeconds": 1}
    return [{"Name": "a", "Capability": capability, "State": of, **rules, **columns}]


def one(of="NotStarted", capability="pay", columns=(), **of_step):
    """A transition of an order with one step."""
    return state(Steps=step(of, capability, **of_step), **dict(columns))


PENDING = {"ProcessState": "Pending"}
FORGOTTEN = event("step-failed", step="a", reason=f"pay knows it only until {T1}")
NO_AGENT = event("step-failed", step="a", reason="this app has no agent for psp")
TO_UNDO = one("Undoing", columns={"Direction": "undo"})
UNDONE = {"Direction": "undo", **PENDING}
LISTED = {"UpdatedAt": T1, "WaitsSince": T1}
COOLED = one("Undoing", columns=UNDONE, Cooldowns=1, NotBefore=T4)
EXPEDITED = one("Undoing", columns=UNDONE, Cooldowns=1)
RESTORED = one("NotStarted", Attempts=1)
IN_ERROR = state(ProcessState="Error", WaitsSince=T1, UpdatedAt=T1)
RUNS_IN_UNDO = one("Running", columns=UNDONE, CompleteBy=T4)
EARLY = event("step-refused-early", step="a", reason="no")
REFUSED_NOW = with_history(
    one("Failed", columns={"Direction": "undo"}), event("step-failed", step="a", reason="no")
)
GONE = with_history(one("Failed", columns={**UNDONE, "ProcessState": "Error"}), NO_AGENT)
LEFT = with_history(one("Undoing", columns=UNDONE), event("put-back"))


EARLY_WITH_REASON = with_history(one(columns={"Direction": "forward"}, Reason="no"), EARLY)


def early(**columns):
    """A transition that keeps a refusal for later."""
    return with_history(one(columns={"Direction": "forward", **columns}), EARLY)


def left_to_undo(**columns):
    """A recovery that leaves the undo to a scheduler."""
    decided = one("Failed", columns={"Direction": "forward", **columns}, Reason="late")
    return with_history(decided, EXPIRED, event("recovered"))


EXPIRE = {"from": 0, "do": "recover", "at": T2}
EXPIRED = event("expired", step="a")
RUNS = one("Running", columns={"Direction": "forward"})
UNDONE_AT_ONCE = with_history(
    one("Undoing", columns={"Direction": "undo", "Reason": "a: late"}),
    EXPIRED,
    event("undo-requested", step="a", reason="late"),
)
LEFT_TO_UNDO = left_to_undo()


def expired(*, columns=(), of_step=None, **facts):
    """A recovery after an attempt that has no reply in time."""
    return with_history(
        one(columns=columns, **(of_step or {})), event("expired", step="a", **facts)
    )


CHARGED = expired(of_step={"FailureCount": 1}, failure=1)
STILL_TO_COME = expired(of_step={"Uncounted": 1}, has_begun=True)


def said(reason):
    """A transition whose history has these words of a service."""
    return with_history(state(), event("step-failed", step="a", reason=reason))


def noted(digest, attempt=1):
    """A note about a refused reply."""
    row = {"Data": [event("reply-refused", attempt=attempt)]}
    return {"decided": "note", "rows": {f"b00-1|history|1|reply-{digest}": row}}


def fails(kind, **columns):
    """A transition in which a step fails for this reason."""
    return with_history(one("Failed", columns=columns, Attempts=1), kind)


CONDITION_FAILED = "a: condition needed failed: x"
B = [{"Name": "b", "State": "NotStarted", "Fingerprint": "1"}]
"""A step without an option that has a new name."""

ALLOWED = {
    "complete-by-of-pending": (
        (CLAIM, one(columns={**PENDING, "CompleteBy": T4}), one(columns=PENDING)),
        (CLAIM, one(columns=PENDING), one(columns={**PENDING, "CompleteBy": T4}, RetryBy=T4)),
        (CLAIM, TO_UNDO, one("Undoing", columns={"Direction": "undo"}, RetryBy=T4)),
    ),
    "refusal-of-undone": ((CLAIM, one("Undoing", RefusedForGood=True), one("Undoing")),),
    "condition-of-a-step-past-it": ((CLAIM, one("Skipped", Unjudged=True), one("Skipped")),),
    "expedited-undo": (
        (HURRY, COOLED, EXPEDITED, COOLED),
        (
            HURRY,
            with_rows(COOLED, **{f"!pending|{T4}": {"NotBefore": T4, "Step": "a"}}),
            with_message(with_rows(EXPEDITED, on_pending={"Step": "a"}), "x:wake", orderId="1"),
            COOLED,
        ),
    ),
    "woken-anew": ((RESUBMIT, with_message(orderId="1"), with_message(orderId="1", steps=["a"])),),
    "one-list": (
        (CLAIM, with_rows(state(), on_running={}), with_rows(state(), on_running={"List": "Held"})),
    ),
    "lane-of-each-need": (
        (CLAIM, pending("pay", "ship"), pending("pay", "ship", lanes=("pay", "ship"))),
    ),
    "age-of-an-ended-order": (
        (
            HOLD,
            state(ProcessState="Error", WaitsSince=T2),
            state(ProcessState="Error", WaitsSince=T1),
            IN_ERROR,
        ),
    ),
    "lock-of-an-awaited-answer": (
        (
            CLAIM,
            one(
                "Running", "outside", {"ProcessState": "Processing", "LockedBy": "x"}, CompleteBy=T4
            ),
            one("Running", "outside", {"ProcessState": "Processing"}, CompleteBy=T4),
        ),
    ),
    "restored-among-providers": (
        (RESTORE, one(Provider="pay"), one()),
        (RESTORE, one(KeyKnownUntil=T4), one(KeyKnownUntil=T1)),
        (AFTER_RESTORE, {"decided": "not-claimed", "why": "no room"}, fails(FORGOTTEN), RESTORED),
    ),
    "provider-of-a-newer-version": (
        (CLAIM, GONE, {"decided": "not-claimed", "why": "unknown-provider"}),
        (CLAIM, GONE, LEFT),
    ),
    "erasure": (
        (ERASE, state(UpdatedAt=T2), state(UpdatedAt=T1), IN_ERROR),
        (ERASE, with_message(name="x:wake"), state(), IN_ERROR),
        (
            ERASE,
            with_rows(state(), **{f"!error|{T2}": {"UpdatedAt": T2}, "on_error": None}),
            with_rows(state(), on_error={"UpdatedAt": T1, "List": "Error"}),
            IN_ERROR,
        ),
    ),
    "settled-after-a-copy": (
        (RESTORE, one(SettledAt=T3), one(SettledAt="2026-01-31T08:15:06Z")),
        (RESTORE, one(), one(SettledAt="2026-01-31T08:15:06Z")),
    ),
    "held-and-put-back": (
        (
            CLAIM,
            with_history(state(HeldSince=T1), event("put-back")),
            with_history(state(HeldSince=T1), event("waits", heldBy="grace")),
        ),
    ),
    "restored-external-step": (
        (RESTORE, one(capability="outside", Attempts=1), one(capability="outside")),
    ),
    "doubt-of-an-external-step": (
        (CLAIM, one(capability="outside", InDoubt=True), one(capability="outside")),
    ),
    "event-during-undo": (
        (
            ANSWER,
            REFUSED,
            one("Undoing", columns={**UNDONE, "Result00": {"reference": "r"}, "WaitsSince": T2}),
            RUNS_IN_UNDO,
        ),
    ),
    "skip-of-nothing": (
        (
            CLAIM,
            with_rows(one(), on_outbox={"Data": {"actions": ["resubmit", "skip"]}}),
            with_rows(one(), on_outbox={"Data": {"actions": ["resubmit"]}}),
        ),
    ),
    "refused-early": (
        (
            ANSWER,
            REFUSED_NOW,
            early(WaitsSince=T1),
            one(columns={"Direction": "forward", **LISTED}),
        ),
    ),
    "resumed-undo": ((RESUBMIT, state(), state(Reason="an operator resumed the undo")),),
    "has-begun": ((EXPIRE, expired(), expired(has_begun=True), RUNS),),
    "reply-still-to-come": (
        (EXPIRE, CHARGED, STILL_TO_COME, RUNS),
        (EXPIRE, CHARGED, expired(columns={"Direction": "undo"}, has_begun=True), RUNS),
    ),
    "personal-words-of-answers": ((REPLY, said("no place is free"), said("erased place is free")),),
    "undo-left-to-a-scheduler": ((EXPIRE, UNDONE_AT_ONCE, LEFT_TO_UNDO, RUNS),),
    "digest-of-a-refused-reply": ((REPLY, noted("1-a"), noted("1-b")),),
    "fingerprint-of-an-optional-step": (
        (CLAIM, one(GoesOn=True, Fingerprint="x"), one(GoesOn=True, Fingerprint="y")),
    ),
    "fingerprint-of-renamed-options": ((CLAIM, one(Fingerprint="1"), one(Fingerprint="2")),),
    "words-of-renamed-options": (
        (CLAIM, state(Reason="a: when needed failed: x"), state(Reason=CONDITION_FAILED)),
    ),
}
"""By entry of the list moves with both decisions that it allows, and the decision before where it matters."""

DENIED = {
    "complete-by-of-pending": (
        # the time of no step, or of one that is not tried next
        (CLAIM, one(columns=PENDING), one(columns={**PENDING, "CompleteBy": T4})),
        (CLAIM, one(columns={**PENDING, "CompleteBy": T4}), one(columns=PENDING, RetryBy=T4)),
        (CLAIM, one(columns={"ProcessState": "Processing", "CompleteBy": T4}), one()),
        (CLAIM, one("Running"), one("Running", RetryBy=T4)),
        (CLAIM, TO_UNDO, one("Undoing", columns={"Direction": "undo"}, RetryBy=T3)),
    ),
    "refusal-of-undone": ((CLAIM, one("Failed", RefusedForGood=True), one("Failed")),),
    "condition-of-a-step-past-it": ((CLAIM, one("Failed", Unjudged=True), one("Failed")),),
    "expedited-undo": (
        (HOLD, COOLED, EXPEDITED, COOLED),
        (HURRY, COOLED, one("Undoing", columns=UNDONE, Cooldowns=1, NotBefore=T3), COOLED),
        (HURRY, COOLED, one("Undone", columns=UNDONE), COOLED),
        (HURRY, COOLED, one("Undoing", columns={**UNDONE, "Reason": "x"}, Cooldowns=1), COOLED),
        (
            HURRY,
            with_rows(COOLED, **{f"!pending|{T4}": {"NotBefore": T4, "Step": "a"}}),
            with_rows(EXPEDITED, on_waiting={"Step": "a"}),
            COOLED,
        ),
    ),
    "woken-anew": ((HOLD, with_message(orderId="1"), with_message(orderId="1", steps=["a"])),),
    "lane-of-each-need": (
        (CLAIM, pending("pay", "pay"), pending("pay", "pay", lanes=("pay", "ship"))),
        (CLAIM, pending("pay", "ship", lanes=("pay", "ship")), pending("pay", "ship")),
    ),
    "one-list": (
        (
            CLAIM,
            with_rows(state(), on_running={"List": "Pending"}),
            with_rows(state(), on_running={"List": "Held"}),
        ),
        (CLAIM, with_rows(state(), keys={}), with_rows(state(), keys={"List": "Held"})),
        (
            CLAIM,
            with_rows(state(), on_running={}, on_held={"List": "Held"}),
            with_rows(state(), on_running={"List": "Processing"}, on_held={"List": "Held"}),
        ),
    ),
    "age-of-an-ended-order": (
        (
            HOLD,
            state(ProcessState="Error", WaitsSince=T2),
            state(ProcessState="Error"),
            IN_ERROR,
        ),
        (
            HOLD,
            state(ProcessState="Error", WaitsSince=T3),
            state(ProcessState="Error", WaitsSince=T2),
            IN_ERROR,
        ),
        (HOLD, state(**PENDING, WaitsSince=T2), state(**PENDING, WaitsSince=T1), IN_ERROR),
    ),
    "lock-of-an-awaited-answer": (
        (
            CLAIM,
            one("Running", "pay", {"ProcessState": "Processing", "LockedBy": "x"}, CompleteBy=T4),
            one("Running", "pay", {"ProcessState": "Processing"}, CompleteBy=T4),
        ),
    ),
    "restored-among-providers": (
        (CLAIM, one(Provider="pay"), one()),
        (RESTORE, one(Provider="pay"), one(Provider="second")),
        (RESTORE, one("Completed", Provider="pay"), one("NotStarted", Provider="pay")),
        (RESTORE, one(Provider="pay", capability="other"), one(capability="other")),
        (RESTORE, one(KeyKnownUntil=T4), one(KeyKnownUntil=T3)),
        (CLAIM, {"decided": "not-claimed"}, fails(FORGOTTEN), RESTORED),
        (AFTER_RESTORE, {"decided": "not-claimed"}, fails(NO_AGENT), RESTORED),
        (AFTER_RESTORE, {"decided": "not-claimed"}, fails(FORGOTTEN, Result00={"x": 1}), RESTORED),
        (AFTER_RESTORE, {"decided": "not-claimed"}, fails(FORGOTTEN, Direction="undo"), RESTORED),
    ),
    "provider-of-a-newer-version": (
        (CLAIM, fails(event("step-failed", step="a", reason="declined")), LEFT),
        (CLAIM, GONE, {"decided": "not-claimed", "why": "held"}),
        (CLAIM, GONE, with_history(one("Undone", columns=UNDONE), event("put-back"))),
        (CLAIM, GONE, {**LEFT, "messages": [{"id": "x:a:1:undo", "body": {}}]}),
        (
            CLAIM,
            GONE,
            with_history(one("Undoing", columns={**UNDONE, "LockedBy": "x"}), event("put-back")),
        ),
    ),
    "erasure": (
        (HOLD, state(UpdatedAt=T2), state(UpdatedAt=T1), IN_ERROR),
        (ERASE, state(UpdatedAt=T2), state(UpdatedAt=T3), IN_ERROR),
        (ERASE, state(), state(Result00={"said": "name"}), IN_ERROR),
        (ERASE, state(Result00={"said": "erased"}), state(), IN_ERROR),
        (ERASE, state(), {**state(), "rows": {"b00-1|order": {"Payload": {"card": "C-1"}}}}),
        (ERASE, with_rows(state(), **{"=card": None}), state(), IN_ERROR),
        (ERASE, state(), with_rows(state(), **{"=card": None}), IN_ERROR),
        (ERASE, state(), with_message(name="x:wake"), IN_ERROR),
        (ERASE, with_message(name="x:a:1:do"), state(), IN_ERROR),
        (
            ERASE,
            with_rows(state(), **{f"!error|{T2}": {"UpdatedAt": T2}, "on_error": None}),
            with_rows(state(), on_error={"UpdatedAt": T1, "FailedSteps": "a"}),
            IN_ERROR,
        ),
    ),
    "settled-after-a-copy": (
        (HOLD, one(SettledAt=T3), one(SettledAt="2026-01-31T08:15:06Z")),
        (RESTORE, one(SettledAt=T3), one(SettledAt=T4)),
        (RESTORE, one(), one(KeyKnownUntil=T4)),
    ),
    "held-and-put-back": (
        (
            CLAIM,
            with_history(state(HeldSince=T1), event("put-back")),
            with_history(state(HeldSince=T1), event("waits", until=T4)),
        ),
    ),
    "restored-external-step": (
        (CLAIM, one(capability="outside", Attempts=1), one(capability="outside")),
    ),
    "doubt-of-an-external-step": ((CLAIM, one(InDoubt=True), one()),),
    "event-during-undo": (
        (CLAIM, REFUSED, one("Undoing", columns=UNDONE), RUNS_IN_UNDO),
        (ANSWER, REFUSED, one("Undoing", columns=PENDING), RUNS_IN_UNDO),
        (ANSWER, REFUSED, one("Undoing", columns=UNDONE), one("NotStarted", columns=UNDONE)),
        (ANSWER, REFUSED, one("Undoing", columns={**UNDONE, "Priority": "high"}), RUNS_IN_UNDO),
        (ANSWER, REFUSED, one("Undoing", columns=UNDONE, Attempts=2), RUNS_IN_UNDO),
        (
            ANSWER,
            REFUSED,
            one("Undoing", columns={**UNDONE, "Result00": {"reference": "q"}}),
            RUNS_IN_UNDO,
        ),
        (
            ANSWER,
            REFUSED,
            with_history(one("Undoing", columns=UNDONE), event("step-failed", step="b")),
            RUNS_IN_UNDO,
        ),
        (
            ANSWER,
            REFUSED,
            with_rows(one("Undoing", columns=UNDONE), on_outbox={"Data": {}}),
            RUNS_IN_UNDO,
        ),
    ),
    "skip-of-nothing": (
        (
            CLAIM,
            with_rows(one("Failed"), on_outbox={"Data": {"actions": ["resubmit", "skip"]}}),
            with_rows(one("Failed"), on_outbox={"Data": {"actions": ["resubmit"]}}),
        ),
    ),
    "refused-early": (
        (CLAIM, REFUSED_NOW, early(), one(columns={"Direction": "forward"})),
        (
            ANSWER,
            REFUSED_NOW,
            early(WaitsSince=T2),
            one(columns={"Direction": "forward", **LISTED}),
        ),
        (ANSWER, REFUSED_NOW, early(Result00={"x": 1}), one(columns={"Direction": "forward"})),
        (ANSWER, REFUSED_NOW, early(), one("Running", columns={"Direction": "forward"})),
        (ANSWER, EARLY_WITH_REASON, early(), one(columns={"Direction": "forward"})),
    ),
    "has-begun": (
        (CLAIM, expired(), expired(has_begun=True), RUNS),
        (EXPIRE, expired(failure=1), expired(failure=2, has_begun=True), RUNS),
    ),
    "reply-still-to-come": (
        (CLAIM, CHARGED, STILL_TO_COME, RUNS),
        (EXPIRE, CHARGED, expired(has_begun=True), RUNS),
        (
            EXPIRE,
            CHARGED,
            expired(of_step={"Uncounted": 1, "FailureCount": 1}, has_begun=True),
            RUNS,
        ),
        (EXPIRE, CHARGED, expired(of_step={"Uncounted": 1}), RUNS),
    ),
    "personal-words-of-answers": (
        (REPLY, said("no place is free"), said("erased place was free")),
        (CLAIM, said("no place is free"), said("erased place is free")),
        (REPLY, said("no place is free"), said("no room is free")),
    ),
    "undo-left-to-a-scheduler": (
        (CLAIM, UNDONE_AT_ONCE, LEFT_TO_UNDO, RUNS),
        (EXPIRE, UNDONE_AT_ONCE, with_history(LEFT_TO_UNDO, EXPIRED), RUNS),
        (EXPIRE, UNDONE_AT_ONCE, left_to_undo(Direction="undo"), RUNS),
        (EXPIRE, UNDONE_AT_ONCE, left_to_undo(LockedBy="x"), RUNS),
        (EXPIRE, UNDONE_AT_ONCE, left_to_undo(Result00={"x": 1}), RUNS),
        (EXPIRE, UNDONE_AT_ONCE, with_history(RUNS, EXPIRED, event("recovered")), RUNS),
    ),
    "fingerprint-of-an-optional-step": (
        (CLAIM, one(GoesOn=False, Fingerprint="x"), one(GoesOn=False, Fingerprint="y")),
        (CLAIM, one(GoesOn=True, Title="x"), one(GoesOn=True, Title="y")),
    ),
    "digest-of-a-refused-reply": (
        (CLAIM, noted("1-a"), noted("1-b")),
        (REPLY, noted("1-a"), noted("2-b")),
        (REPLY, noted("1-a"), noted("1-b", attempt=2)),
    ),
    "fingerprint-of-renamed-options": (
        (CLAIM, state(Steps=B), state(Steps=[B[0] | {"Fingerprint": "2"}])),
        (CLAIM, one(Capability="1"), one(Capability="2")),
    ),
    "words-of-renamed-options": (
        (CLAIM, state(Reason="a: when other failed: x"), state(Reason=CONDITION_FAILED)),
        (CLAIM, state(Reason="a: declined"), state(Reason=CONDITION_FAILED)),
    ),
    "resumed-undo": (
        (RESUBMIT, state(Reason="declined"), state(Reason="an operator resumed the undo")),
        (RESUBMIT, state(), state(HeldBecause="an operator resumed the undo")),
    ),
}
"""By entry of the list what is like its difference, and wrong."""

CASES = [
    (entry, case, differences)
    for entry in DIFFERENCES
    for differences, cases in enumerate((ALLOWED[entry.name], DENIED[entry.name]))
    for case in cases
]


@pytest.mark.parametrize(
    ("entry", "case", "differences"),
    CASES,
    ids=[f"{entry.name}-{'allowed' if not denied else 'denied'}" for entry, _, denied in CASES],
)
def test_an_entry_allows_what_it_says_and_nothing_beside_it(entry, case, differences):
    """Each entry explains its examples; what is like them and wrong stays a difference."""
    moves, base, new, before = case if len(case) > 3 else (*case, one("Undoing"))
    moves = moves if isinstance(moves, tuple) else (moves,)
    earlier = [before] * len(moves)
    found = compared([SUBMIT, *moves], [*earlier, base], [*earlier, new], entry)
    assert found.found == differences


def test_an_unknown_commit_is_named():
    """A shallow clone says what is missing, and the command fails otherwise than for a difference."""
    with pytest.raises(StackError) as error, trees.checked_out("0" * 40):
        pass
    assert [fault.code for fault in error.value.faults] == [DevelopmentCode.COMMIT_UNKNOWN]
    assert CliRunner().invoke(main, ["--base", "0" * 40]).exit_code == 2


def test_the_base_has_the_texts_of_this_tree_for_its_keys(tmp_path):
    """A text that was only rewritten makes no difference; a key that is gone keeps its text."""
    path = tmp_path / trees.WORDS
    trees.share_words(tmp_path)  # a base from before the catalogue
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"cause.timed-out": "too late", "cause.gone": "gone"}), "utf-8")
    trees.share_words(tmp_path)
    texts = catalogue.texts()["cause.timed-out"]
    assert json.loads(path.read_text("utf-8")) == {"cause.timed-out": texts, "cause.gone": "gone"}


def test_an_entry_sees_the_order_before_the_move():
    """The state before is that after the last move that changed the order, as the base has it."""
    seen = []
    entry = Difference(
        name="any", why="", allows=lambda case: bool(seen.append(case.before)) or True
    )
    refused = {"decided": "refused"}
    base = [state(Priority="high"), refused, state(Outcome="x")]
    new = [state(Priority="high"), refused, state(Outcome="y")]
    compared([SUBMIT, CLAIM, RECOVER], base, new, entry)
    assert seen == [{"Priority": "high"}]
