"""Goes through every state that a world can get into, nearest first: the first violation found has the shortest way."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from exploration.invariants import ViolationError, check, check_end
from exploration.moves import Move, forget, moves
from exploration.world import World


@dataclass(kw_only=True)
class Explored:
    """What was seen."""

    states: int = 0
    transitions: int = 0
    ends: int = 0
    labels: set[str] = field(default_factory=set)
    """All that happened somewhere."""
    seconds: float = 0.0

    def happened(self, what: str) -> bool:
        """Whether this happened somewhere."""
        return any(what in label for label in self.labels)

    def __str__(self) -> str:
        return f"{self.states} states, {self.transitions} transitions, {self.ends} ends, {self.seconds:.1f} s"


class FoundError(AssertionError):
    """A violation, with the shortest way to it as a story; `labels` replays it."""

    def __init__(self, violation: str, labels: Sequence[str]) -> None:
        story = "\n".join(f"{number:3}. {label}" for number, label in enumerate(labels, 1))
        super().__init__(f"{violation}\n{story}")
        self.violation = violation
        self.labels = list(labels)


@dataclass(kw_only=True)
class _Search:
    """Where each state was first reached from, and from where each can be reached without a fault."""

    parents: list[tuple[int, str]] = field(default_factory=list)
    numbers: dict[bytes, int] = field(default_factory=dict)
    before: list[list[int]] = field(default_factory=list)
    good: list[int] = field(default_factory=list)

    def add(self, world: World, parent: int, label: str) -> int | None:
        """Number the state; None if it is known."""
        key = world.key()
        if key in self.numbers:
            return None
        self.numbers[key] = number = len(self.parents)
        self.parents.append((parent, label))
        self.before.append([])
        return number

    def way_to(self, number: int) -> list[str]:
        """The labels from the beginning to this state."""
        labels: list[str] = []
        while number:
            number, label = self.parents[number]
            labels.append(label)
        return labels[::-1]

    def stranded(self) -> int | None:
        """The first state from which no good end can be reached without another fault."""
        reaching, to_do = set(self.good), list(self.good)
        while to_do:
            for number in self.before[to_do.pop()]:
                if number not in reaching:
                    reaching.add(number)
                    to_do.append(number)
        return next((number for number in range(len(self.parents)) if number not in reaching), None)


def _look_away(world: World, following: Sequence[Move]) -> None:
    """Nobody watches."""


def explore(
    beginning: World, most_states: int = 5_000_000, watch: Callable[[World, Sequence[Move]], None] = _look_away
) -> Explored:
    """Go through all states; raises `FoundError` for the nearest one in which something does not hold.

    Who watches is shown each state with all that can happen next, and may raise `ViolationError` too.
    """
    forget()
    search, seen, began = _Search(), Explored(), time.monotonic()
    search.add(beginning, 0, "")
    waiting = deque([(0, beginning)])
    while waiting:
        number, world = waiting.popleft()
        try:
            check(world)
            following = list(moves(world))
            if all(move.fault for move in following):
                check_end(world)
                seen.ends += 1
                search.good.append(number)
            watch(world, following)
        except ViolationError as violation:
            raise FoundError(str(violation), [*search.way_to(number), *_last_step(world)]) from violation
        for move in following:
            seen.transitions += 1
            seen.labels.add(move.label)
            new = search.add(move.world, number, move.label)
            if new is not None:
                waiting.append((new, move.world))
            if not move.fault:
                search.before[search.numbers[move.world.key()] if new is None else new].append(number)
        assert len(search.parents) < most_states, f"more than {most_states} states"
    seen.states, seen.seconds = len(search.parents), time.monotonic() - began
    if (number := search.stranded()) is not None:
        raise FoundError("from here no end can be reached, though nothing else goes wrong", search.way_to(number))
    return seen


def _last_step(world: World) -> list[str]:
    """What was about to happen when a move itself violated something: a hint for the reader."""
    waiting = [f"{slot} waits to {each.pending.name}" for slot, each in world.handlers.items() if each.pending]
    return [f"(then: {', '.join(waiting)})"] if waiting else []


def replay(beginning: World, labels: Sequence[str]) -> World:
    """Follow a story again; raises `LookupError` where it cannot go on, and `ViolationError` where something breaks."""
    forget()
    world = beginning
    for label in labels:
        found: Move | None = next((move for move in moves(world) if move.label == label), None)
        if found is None:
            raise LookupError(f"“{label}” cannot happen here; this can: {[move.label for move in moves(world)]}")
        world = found.world
        check(world)
    return world
