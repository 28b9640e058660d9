"""The differential run notices changed decisions, and nothing where none is changed."""

import io
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from development.differential.__main__ import QUICK, Size, make_courses, run
from development.differential.comparison import compare
from development.differential.differences import DIFFERENCES
from development.differential.trees import started
from exploration import courses
from exploration.worlds import ANSWER_ERASED, CARRIER_LIKE, UPGRADED
from tests.mutants.copies import ROOT, Copy
from tests.mutants.mutant import Mutant

pytestmark = pytest.mark.soak
"""Like `make mutants`, it is about a tool, and not about the app."""


def changed(label, file, old, new):
    """A change of a decision."""
    return Mutant(fault=label, file=file, old=old, new=new, tests=())


CHANGED = (
    changed(
        "progress does not renew the age in the queue",
        "core/changes.py",
        "set_going or settled != settled_before",
        "set_going",
    ),
    changed(
        "a wake-up names another age",
        "core/changes.py",
        "since=after.state.waits_since",
        "since=after.state.updated_at",
    ),
    changed(
        "a reply is in time at the tolerance no more",
        "core/orders.py",
        "now > self.complete_by + tolerance",
        "now >= self.complete_by + tolerance",
    ),
    changed(
        "an order waits for the agent of its last ready step",
        "core/orders.py",
        "first = min(self.ready(), key=turn",
        "first = max(self.ready(), key=turn",
    ),
    changed(
        "a held order's answer falls due",
        "core/agenda.py",
        "    if not state.is_held:  # its",
        "    if True:  # its",
    ),
    changed(
        "an undo does not wait for late effects",
        "core/compensation.py",
        "not_before=step.settled_at,",
        "not_before=None,",
    ),
    changed(
        "the undo of a step that has failed does not wait for late effects",
        "engine/domain/verbs.py",
        "LateEffectsPossible(final_at, retry_by) if final_at else Waiting(None, retry_by)",
        "Waiting(None, retry_by)",
    ),
    changed(
        "a resubmitted step keeps its count of cooldowns",
        "core/actions.py",
        "        failure_count=0,\n        cooldowns=0,\n        not_before=None,",
        "        failure_count=0,\n        not_before=None,",
    ),
    changed(
        "a release does not move deadlines",
        "core/actions.py",
        "step.complete_by + max(by, timedelta())",
        "step.complete_by",
    ),
    changed(
        "a skip is allowed although the step's answer is needed",
        "core/actions.py",
        'return f"{needing} cannot be done without what {step.name} answers" if needing else ""',
        'return ""',
    ),
    changed(
        "a held order's deadline can be moved",
        "core/answers.py",
        "    if order.state.is_held:  # its",
        "    if False:  # its",
    ),
    changed(
        "an answer is taken from any agent",
        "scheduler/rules.py",
        "        if agent != step.agent:",
        "        if False:",
    ),
    changed(
        "a completed step stays in doubt",
        "scheduler/rules.py",
        "reason=None, in_doubt=False",
        "reason=None",
    ),
    changed(
        "the agent of a fruitless attempt is preferred",
        "scheduler/progress.py",
        "if agent != step.agent)",
        "if agent == step.agent)",
    ),
    changed(
        "the complete-by time is that of the last step to be due",
        "core/orders.py",
        "return min((step.complete_by for step in self.running()",
        "return max((step.complete_by for step in self.running()",
    ),
    changed(
        "back-off begins a failure later",
        "engine/decisions/recover.py",
        "failures > 1 and report.fault is None",
        "failures > 2 and report.fault is None",
    ),
    changed(
        "an attempt that no agent has begun counts",
        "engine/decisions/recover.py",
        "    if not report.has_begun:",
        "    if False:",
    ),
    changed(
        "the time of an order is forgotten",
        "submission/rules.py",
        "        not_before=message.not_before,",
        "        not_before=None,",
    ),
    changed(
        "a restored step is not in doubt",
        "operators/copies.py",
        "        in_doubt=True,",
        "        in_doubt=step.in_doubt,",
    ),
    changed(
        "an erased order keeps its business keys",
        "operators/retention.py",
        " if key in left)",
        " if key)",
    ),
    changed(
        "notices of one transition have one number",
        "stores/outbox.py",
        "state.version * MAX_PER_TRANSITION + number",
        "state.version * MAX_PER_TRANSITION",
    ),
)


@pytest.fixture(scope="module")
def made():
    """The courses of this tree, and its decisions about them."""
    with TemporaryDirectory() as folder:
        file = make_courses(ROOT, Path(folder), QUICK, lambda _: None)
        with started(ROOT, "development.differential.side", str(file)) as side:
            yield file, side.stdout.read().splitlines(keepends=True)


@pytest.fixture(scope="module")
def copy():
    """A copy of this tree in which decisions can be changed."""
    with Copy() as copied:
        yield copied


def compared(made, copy, change):
    """The comparison so far with the copy after this change, after each world."""
    file, base = made
    assert (ROOT / change.file).read_text(encoding="utf-8").count(change.old) == 1
    with (
        copy.planted(change),
        file.open(encoding="utf-8") as lines,
        started(copy.root, "development.differential.side", str(file)) as side,
    ):
        try:
            yield from compare(lines, base, side.stdout, DIFFERENCES)
        finally:
            side.terminate()


@pytest.mark.parametrize("change", CHANGED, ids=lambda change: change.label)
def test_a_changed_decision_is_noticed(made, copy, change):
    """Each is found, and is no crash of the changed side."""
    with closing(compared(made, copy, change)) as comparisons:
        found = next((each for each in comparisons if each.found), None)
    assert found
    examples = [each for of_kind in found.examples.values() for each in of_kind]
    assert not any(("error",) in each.differing for each in examples)
    print(*found.kinds, sep="\n")


def test_a_tree_decides_as_itself():
    """The whole way, with the exploration, in processes: nothing differs, and every move is compared."""
    found = run(ROOT, ROOT, Size(states=2, walks=1, explored=60, worlds="forgets keys"))
    assert (found.found, found.compared) == (0, found.moves)
    assert found.decided["error"] == 0


@pytest.mark.parametrize("world", [CARRIER_LIKE, UPGRADED, ANSWER_ERASED], ids=str)
def test_moves_lead_where_the_exploration_went(world):
    """Moves from the exploration hold all that its decisions depended on: `write` fails otherwise."""
    reached = courses.write(world, io.StringIO(), states=1000, walks=5, seed=1)
    assert reached.orders
