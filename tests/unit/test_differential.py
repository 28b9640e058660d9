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
from local.ports import StackError

WORLD = {"world": {"name": "one"}}
SUBMIT = {"from": None, "do": "submit", "at": "t"}
CLAIM = {"from": 0, "do": "claim", "at": "t"}
RECOVER = {"from": 1, "do": "recover", "at": "t"}
HOLD = {"from": 0, "do": "act", "action": "hold", "at": "t"}


def state(**columns):
    """A transition that writes the order's state with these columns."""
    return {"decided": "transition", "rows": {"b00-1|state": columns}, "messages": []}


def compared(moves, base, new, *differences, renamed=None):
    """The comparison of two lists of decisions about these moves of one world."""
    courses, base, new = (map(json.dumps, each) for each in ([WORLD, *moves], base, new))
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
    (example,) = [each for examples in found.examples.values() for each in examples]
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


def test_the_list_explains_each_place_by_itself():
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


HELD = {"HeldSince": "t", "ProcessState": "Processing"}
RESUBMIT = {"from": 0, "do": "act", "action": "resubmit", "at": "t"}
HURRY = {"from": 0, "do": "act", "action": "hurry", "at": "t"}


def told(what, **more):
    """A transition whose history has this event."""
    row = {"Data": [{"what": what, **more}]}
    return {"decided": "transition", "rows": {"b00-1|history|1": row, "b00-1|state": HELD}}


def undoing(**columns):
    """A transition that leaves a step to be undone after a cooldown."""
    return state(Steps=[{"Name": "a", "State": "Undoing", "Cooldowns": 1, **columns}])


def with_list(*lists, key="!running|t|b00-1"):
    """A transition that writes a row which names its list."""
    return {"decided": "transition", "rows": {key: {"OrderID": "b00-1", **dict(lists)}}}


def with_message(**body):
    """A transition that sends a message of this body."""
    return {**state(), "messages": [{"id": "m", "body": body}]}


def ended(process_state, since):
    """A transition of an order in this state that waits since then."""
    return state(ProcessState=process_state, WaitsSince=since)


def processing(capability, **columns):
    """A transition of an order of which a step of this capability runs."""
    running = {"Name": "w", "Capability": capability, "CompleteBy": "t"}
    return state(ProcessState="Processing", Steps=[running], **columns)


def with_alert(step_state, actions):
    """A transition of an order with a step in this state, and an alert that offers these actions."""
    outbox = {"b00-1|outbox": {"Data": {"actions": actions}}}
    return {
        **(found := state(Steps=[{"Name": "a", "State": step_state}])),
        "rows": found["rows"] | outbox,
    }


def settles(at):
    """A transition of an order with a step that is settled then."""
    return state(Steps=[{"Name": "w", "SettledAt": at}])


GONE = "it may have been done, and no agent here leads to psp"
TRIED = state(Direction="undo", Steps=[{"Name": "a", "Capability": "pay", "Attempts": 1}])
ERASE = {"from": 0, "do": "erase", "at": "t"}
ANSWER = {"from": 0, "do": "answer", "at": "t"}
RESTORE = {"from": 0, "do": "restore", "at": "t"}
ALLOWED = {
    "complete-by-of-pending": (
        (CLAIM, state(ProcessState="Pending", CompleteBy="t"), state(ProcessState="Pending")),
        (CLAIM, state(ProcessState="Processing", CompleteBy="t"), state(ProcessState="Processing")),
    ),
    "refusal-of-undone": tuple(
        (
            CLAIM,
            state(Steps=[{"Name": "a", "State": step_state, "RefusedForGood": True}]),
            state(Steps=[{"Name": "a", "State": step_state}]),
        )
        for step_state in ("Undoing", "Failed")
    ),
    "condition-of-a-step-past-it": tuple(
        (
            CLAIM,
            state(Steps=[{"Name": "a", "State": step_state, "Unjudged": True}]),
            state(Steps=[{"Name": "a", "State": step_state}]),
        )
        for step_state in ("Skipped", "Failed")
    ),
    "expedited-undo": (
        (HURRY, undoing(NotBefore="t"), undoing()),
        (HOLD, undoing(NotBefore="t"), undoing()),
    ),
    "woken-anew": (
        (RESUBMIT, with_message(orderId="1"), with_message(orderId="1", steps=["a"])),
        (HOLD, with_message(orderId="1"), with_message(orderId="1", steps=["a"])),
    ),
    "one-list": (
        (CLAIM, with_list(), with_list(("List", "Running"))),
        (CLAIM, with_list(("List", "Pending")), with_list(("List", "Running"))),
    ),
    "age-of-an-ended-order": (
        (HOLD, ended("Error", "t2"), ended("Error", "t1")),
        (HOLD, ended("Pending", "t2"), ended("Pending", "t1")),
    ),
    "lock-of-an-awaited-answer": (
        (CLAIM, processing("outside", LockedBy="one"), processing("outside")),
        (CLAIM, processing("pay", LockedBy="one"), processing("pay")),
    ),
    "restored-among-providers": (
        (CLAIM, {"decided": "transition"}, {"decided": "not-claimed"}),
        (HOLD, {"decided": "transition"}, {"decided": "refused"}),
    ),
    "provider-of-a-newer-version": (
        (CLAIM, told("step-failed", reason=GONE), told("claimed")),
        (CLAIM, told("step-failed", reason="declined"), told("claimed")),
    ),
    "erasure": (
        (ERASE, state(UpdatedAt="t2"), state(UpdatedAt="t1")),
        (HOLD, state(UpdatedAt="t2"), state(UpdatedAt="t1")),
    ),
    "settled-after-a-copy": (
        (RESTORE, settles("t1"), settles("t2")),
        (HOLD, settles("t1"), settles("t2")),
    ),
    "held-and-put-back": (
        (CLAIM, told("put-back"), told("waits", heldBy="grace")),
        (CLAIM, told("put-back"), told("waits", until="t")),
    ),
    "restored-external-step": tuple(
        (
            move,
            state(Steps=[{"Name": "a", "Capability": "outside", "Attempts": 1}]),
            state(Steps=[{"Name": "a", "Capability": "outside"}]),
        )
        for move in (RESTORE, CLAIM)
    ),
    "doubt-of-an-external-step": tuple(
        (
            CLAIM,
            state(Steps=[{"Name": "a", "Capability": capability, "InDoubt": True}]),
            state(Steps=[{"Name": "a", "Capability": capability}]),
        )
        for capability in ("outside", "pay")
    ),
    "event-during-undo": (
        (ANSWER, {"decided": "refused"}, {"decided": "transition"}),
        (CLAIM, {"decided": "refused"}, {"decided": "transition"}),
    ),
    "skip-of-nothing": tuple(
        (
            CLAIM,
            *(with_alert(step_state, actions) for actions in (["resubmit", "skip"], ["resubmit"])),
        )
        for step_state in ("NotStarted", "Failed")
    ),
    "refused-early": (
        (ANSWER, told("step-failed", reason="no"), told("step-refused-early", reason="no")),
        (CLAIM, told("step-failed", reason="no"), told("step-refused-early", reason="no")),
    ),
    "resumed-undo": (
        (RESUBMIT, state(), state(Reason="an operator resumed the undo")),
        (RESUBMIT, state(Reason="declined"), state(Reason="an operator resumed the undo")),
    ),
}
"""By entry of the list a move with both decisions that it allows, and one beside it that it does not."""


@pytest.mark.parametrize("entry", DIFFERENCES, ids=lambda entry: entry.name)
def test_an_entry_allows_what_it_says_and_nothing_beside_it(entry):
    """Each entry of the list has an example that it explains, and one that stays a difference."""
    for (move, base, new), differences in zip(ALLOWED[entry.name], (0, 1), strict=True):
        found = compared([SUBMIT, move], [TRIED, base], [TRIED, new], entry)
        assert found.found == differences


def test_an_unknown_commit_is_named():
    """A shallow clone says what is missing, and the command fails otherwise than for a difference."""
    with pytest.raises(StackError) as error, trees.checked_out("0" * 40):
        pass
    assert [fault.code for fault in error.value.faults] == [DevelopmentCode.COMMIT_UNKNOWN]
    assert CliRunner().invoke(main, ["--base", "0" * 40]).exit_code == 2


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
