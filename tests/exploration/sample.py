"""Changes of orders that an exploration reaches: a sample to compare records by."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from engine.decisions.transitions import HistoryEntry
from engine.declarations.workflow import WorkflowDefinition
from engine.domain.keys import history_key
from engine.domain.orders import OrderAggregate
from engine.domain.submitted_order import OnFailure
from testkit.exploration.explorer import Limit, explore
from testkit.exploration.moves import forget, moves
from tests.exploration.worlds import (
    ALL_ACTS,
    IN_SEQUENCE,
    LAST_NOT_NEEDED,
    LATE_PAIR,
    ONE,
    PAIR,
    PARALLEL,
    REFUSED_EARLY,
    REFUSED_UNNEEDED,
    RESTING,
    WorldOf,
    _step,
    _wait,
    needed,
)

LENGTH = 150
"""How many events a random course has at most."""


@dataclass(frozen=True)
class Reached:
    """One change of an order, in a world of this name."""

    world: str
    before: OrderAggregate | None
    after: OrderAggregate
    entry: HistoryEntry


@dataclass(frozen=True)
class Sample:
    """What was reached, each once in each world."""

    changes: Mapping[str, Reached] = field(default_factory=dict)


def gather(worlds: Sequence[WorldOf], *, states: int, walks: int = 0) -> Sample:
    """Explore each world, nearest first, up to some states, and then on random courses from its beginning.

    Nearest first alone never gets far in a large world.
    """
    sample = Sample()
    for number, small in enumerate(worlds):
        with small.running():
            watch = _watch(str(small), sample.changes)
            explore(small.beginning(), limit=Limit(states=states), watch=watch)
            forget()
            chance = random.Random(number)
            for _ in range(walks):
                _walk(small.beginning(), chance, watch)
            forget()
    return sample


def _walk(world, chance, watch):
    for _ in range(LENGTH):
        following = list(moves(world))
        if not following:
            return
        watch(world, following)
        world = chance.choice(following).world


def _watch(name, found):
    def watch(world, following):
        for move in following:
            if move.world.rows is not world.rows:
                for part in move.world.parts():
                    note(world.about(part.order_id).order(), part)

    def note(before, part):
        after = part.order()
        if after is None or (before and before.version == after.version):
            return
        _, entry = part.rows[history_key(after.order_id, after.version)]
        key = repr((name, before and replace(before, etag=None), replace(after, etag=None)))
        found.setdefault(key, Reached(name, before, after, entry))

    return watch


# Worlds beside those that are explored to closure: back-off, accepted undo, and much at a time

MIXED = WorkflowDefinition(
    name="mixed",
    version=1,
    steps=(
        _step("a", on_failure=OnFailure.COOLDOWN, cooldowns=1),
        _wait(attempts=2),
        replace(_step("b", "a", "w", on_failure=OnFailure.CONTINUE), condition=needed),
        replace(_step("c", "b"), pivot=True, compensation=None),
        _step("d", "c", on_failure=OnFailure.ERROR),
    ),
)
SLOW = ("request is lost", "hears too late", "too late", "rejects")
ACTS = (*ALL_ACTS, "hold", "release", "expedite", "settle", "retry-with-new-key")
MORE = (
    WorldOf(
        faults=3,
        workflow=MIXED,
        alone=True,
        acts=3,
        operator=ACTS,
        outside=("answer", "refuse"),
        accepts=True,
        forgets=True,
    ),
    REFUSED_EARLY,
    REFUSED_UNNEEDED,
    WorldOf(faults=3, only=SLOW, workflow=PAIR, threshold=3, alone=True),
    WorldOf(faults=3, only=SLOW, workflow=ONE, threshold=3, alone=True, answered=False),
    WorldOf(
        faults=2, workflow=RESTING, threshold=1, accepts=True, alone=True, acts=2, operator=ACTS
    ),
    WorldOf(faults=2, workflow=IN_SEQUENCE, accepts=True, alone=True, acts=1, operator=ALL_ACTS),
    WorldOf(faults=3, workflow=PARALLEL, threshold=3, alone=True, acts=2, operator=ACTS),
    WorldOf(
        faults=2,
        workflow=LATE_PAIR,
        threshold=1,
        accepts=True,
        alone=True,
        acts=2,
        operator=ACTS,
        circuits=True,
    ),
    WorldOf(
        faults=2,
        workflow=LAST_NOT_NEEDED,
        later=True,
        alone=True,
        acts=2,
        operator=ACTS,
        remembers=True,
    ),
    WorldOf(faults=2, workflow=PAIR, forgets=True, alone=True, acts=2, operator=ACTS),
)
