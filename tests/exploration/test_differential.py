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
from tests.exploration import courses
from tests.exploration.worlds import ANSWER_ERASED, CARRIER_LIKE, UPGRADED
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
        "engine/domain/derive.py",
        "_goes_on(before, after) or _settled(before) != _settled(after)",
        "_goes_on(before, after)",
    ),
    changed(
        "a wake-up names another age",
        "engine/decisions/drafts.py",
        "since=after.derived.ready_since",
        "since=after.updated_at",
    ),
    changed(
        "a reply is in time at the tolerance no more",
        "engine/domain/steps.py",
        "now > self.complete_by + tolerance",
        "now >= self.complete_by + tolerance",
    ),
    changed(
        "an order waits for the agent of its last ready step",
        "engine/domain/work_index.py",
        "first = min(order.ready, key",
        "first = max(order.ready, key",
    ),
    changed(
        "an undo does not wait for late effects",
        "engine/domain/verbs.py",
        "LateEffectsPossible(final_at, retry_by) if final_at else Waiting(None, retry_by)",
        "Waiting(None, retry_by)",
    ),
    changed(
        "a resubmitted step keeps its count of cooldowns",
        "engine/domain/steps.py",
        "return Counts(attempts=self.attempts)",
        "return Counts(attempts=self.attempts, cooldowns=self.cooldowns)",
    ),
    changed(
        "a release does not move deadlines",
        "engine/features/external_events/steps.py",
        "step.state.complete_by + max(held_for, timedelta())",
        "step.state.complete_by",
    ),
    changed(
        "a skip is allowed although the step's answer is needed",
        "engine/decisions/actions/skip.py",
        "return [step.name for step in to_come if failed.name in step.rules.uses]",
        "return []",
    ),
    changed(
        "a held order's deadline can be moved",
        "engine/features/external_events/actions.py",
        "    if order.hold:\n",
        "    if False:\n",
    ),
    changed(
        "an answer is taken from any agent",
        "engine/decisions/reply.py",
        "    if agent != step.agent:",
        "    if False:",
    ),
    changed(
        "a completed step stays in doubt",
        "engine/domain/verbs.py",
        "    done = Done(key=key, result=result)\n    return",
        "    done = doubted(Done(key=key, result=result), unanswered=isinstance(step.effect, Doubt))\n    return",
    ),
    changed(
        "the agent of a fruitless attempt is preferred",
        "engine/decisions/proceed.py",
        "if agent != step.agent)",
        "if agent == step.agent)",
    ),
    changed(
        "the complete-by time is that of the last step to be due",
        "engine/domain/derive.py",
        "found = min(",
        "found = max(",
    ),
    changed(
        "back-off begins a failure later",
        "engine/domain/backoff.py",
        "    if failures < 2:",
        "    if failures < 3:",
    ),
    changed(
        "an attempt that no agent has begun counts",
        "engine/decisions/step_kinds.py",
        "return self.has_begun and (attempt > 1",
        "return (attempt > 1",
    ),
    changed(
        "the time of an order is forgotten",
        "submission/rules.py",
        "        not_before=message.not_before,",
        "        not_before=None,",
    ),
    changed(
        "a restored step is not in doubt",
        "engine/domain/verbs.py",
        "effect=doubted(effect, unanswered=True))\n\n\n# What verbs",
        "effect=effect)\n\n\n# What verbs",
    ),
    changed(
        "an erased order keeps its business keys",
        "operations/api/retention.py",
        " if key in left)",
        " if key)",
    ),
    changed(
        "a column of the neutral form has another value",
        "tools/development/differential/neutral.py",
        '"FailureCount": counts.failures',
        '"FailureCount": counts.attempts',
    ),
    changed(
        "a row of the neutral form is left out",
        "tools/development/differential/neutral.py",
        'yield from _first("!waiting"',
        'yield from () and _first("!waiting"',
    ),
    # Like a listed difference, and wrong:
    changed(
        "an erased order keeps what a person answered",
        "operations/api/retention.py",
        "steps = tuple(map(without_personal_data, order.steps))",
        "steps = order.steps",
    ),
    changed(
        "the complete-by time of a pending order is the earliest one",
        "engine/domain/derive.py",
        "found = max(",
        "found = min(",
    ),
    changed(
        "an order that has ended is as old as its submission",
        "engine/domain/derive.py",
        "    return min(before.derived.ready_since, now)",
        "    return before.submitted.placed_at if before.has_ended else min(before.derived.ready_since, now)",
    ),
    changed(
        "a restored step waits only for late effects of calls before the copy",
        "engine/decisions/restore.py",
        "late_effects.effects_final_at(step, now, copied.clock_tolerance)",
        "late_effects.effects_final_at(step, copied.at, copied.clock_tolerance)",
    ),
    changed(
        "the cause of an early refusal is forgotten",
        "engine/features/external_events/steps.py",
        "ConditionPending(cause.shortened())",
        "ConditionPending()",
    ),
    changed(
        "notices of one transition have one number",
        "engine/storage/outbox.py",
        "after.version * MAX_PER_TRANSITION + number",
        "after.version * MAX_PER_TRANSITION",
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
        copy.seeded(change),
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
        found = next((comparison for comparison in comparisons if comparison.found), None)
    assert found
    examples = [example for of_kind in found.examples.values() for example in of_kind]
    assert not any(("error",) in example.differing for example in examples)
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
