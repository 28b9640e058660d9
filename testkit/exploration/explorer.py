"""Visits every state that a world can reach, the nearest first.

So the first violation that is found has the shortest trace.
"""

import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType

from engine.decisions.transitions import HistoryEntry
from engine.words.history import in_words
from testkit.exploration.laws.check import check, check_end
from testkit.exploration.laws.facts import has_ended
from testkit.exploration.laws.registry import Law, begin, not_reached
from testkit.exploration.moves import Move, forget, moves
from testkit.exploration.world import World


@dataclass(kw_only=True)
class ExplorationResult:
    """The results of an exploration."""

    states: int = 0
    transitions: int = 0
    ends: int = 0
    longest: timedelta = timedelta()
    """The longest time of an order from any state to its end, if nothing else goes wrong."""
    labels: set[str] = field(default_factory=set)
    """The labels of all events."""
    faults: set[str] = field(default_factory=set)
    """The labels of all faults."""
    seconds: float = 0.0
    """How long the exploration took, in seconds."""
    unchecked: Sequence[Law] = ()
    """The laws that were not checked, because their moment never came."""
    whole: bool = True
    """Whether no limit was reached, so that all states were visited."""
    events: int = 0
    """If a limit was reached: every course of this many events was followed."""

    def happened(self, what: str) -> bool:
        """Whether an event with this text in its label occurred."""
        return any(what in label for label in self.labels)

    def __str__(self) -> str:
        what = f"{self.states} states, {self.transitions} transitions, {self.ends} ends"
        if not self.whole:
            return (
                f"{what}; {self.seconds:.1f} s, stopped after each course of {self.events} events"
            )
        return (
            f"{what}, at most {self.longest.total_seconds():.0f} s to the end; {self.seconds:.1f} s"
        )


class FoundError(AssertionError):
    """A violation with the shortest trace to it, and the order's history.

    `labels` replays it.
    """

    def __init__(
        self, violation: str, labels: Sequence[str], history: Sequence[HistoryEntry] = ()
    ) -> None:
        trace = [f"{number:3}. {label}" for number, label in enumerate(labels, 1)]
        entries = [
            f"     {entry.at:%H:%M:%S} {entry.event}: {in_words(entry.events)}" for entry in history
        ]
        super().__init__(
            "\n".join([violation, *trace, *(["Its history:"] if entries else []), *entries])
        )
        self.violation = violation
        self.labels = list(labels)


@dataclass(kw_only=True)
class _Search:
    """How each state was first reached, and from which states it can be reached without faults."""

    parents: list[tuple[int, str]] = field(default_factory=list)
    times: list[datetime] = field(default_factory=list)
    numbers: dict[bytes, int] = field(default_factory=dict)
    before: list[list[int]] = field(default_factory=list)
    quiet: list[int] = field(default_factory=list)
    """The states in which nothing is left to do."""
    ended: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    """The states in which each order has ended."""

    def add(self, world: World, parent: int, label: str) -> int:
        """Return the number of the state. A new state gets the next number."""
        number = self.numbers.setdefault(world.key(), len(self.parents))
        if number == len(self.parents):
            self.parents.append((parent, label))
            self.times.append(world.now)
            self.before.append([])
        return number

    def trace_to(self, number: int) -> list[str]:
        """Return the labels from the beginning to this state."""
        labels: list[str] = []
        while number:
            number, label = self.parents[number]
            labels.append(label)
        return labels[::-1]

    def check_reached(self) -> None:
        """Raise `FoundError` for the first state from which no end can be reached."""
        latest = self._latest(self.quiet)
        stranded = next((number for number in range(len(self.times)) if number not in latest), None)
        if stranded is not None:
            raise FoundError(
                "no end can be reached from here, although nothing else goes wrong",
                self.trace_to(stranded),
            )

    def longest(self, order_id: str, bound: timedelta | None) -> timedelta:
        """Return the longest time of the order to its end.

        Raises `FoundError` for a state from which this takes longer than `bound`.
        """
        takes = {
            number: end - self.times[number]
            for number, end in self._latest(self.ended[order_id]).items()
        }
        too_long = min(
            (number for number in takes if bound is not None and takes[number] > bound),
            default=None,
        )
        if too_long is not None:
            time_left = f"although nothing else goes wrong: the limit is {bound}"
            what = f"{order_id} may take {takes[too_long]} from here, {time_left}"
            raise FoundError(what, self.trace_to(too_long))
        return max(takes.values())

    def _latest(self, ends: Collection[int]) -> dict[int, datetime]:
        """Return for each state the latest time at which it reaches one of these ends."""
        # Time never runs backwards. So a circle takes no time, and the search backwards from the
        # latest end first gives the latest time.
        latest = {number: self.times[number] for number in ends}
        for end in sorted(ends, key=lambda number: self.times[number], reverse=True):
            to_do = [*self.before[end]]
            while to_do:
                number = to_do.pop()
                if number not in latest:
                    latest[number] = self.times[end]
                    to_do += self.before[number]
        return latest


@dataclass(frozen=True, kw_only=True)
class Limit:
    """The limit of an exploration."""

    states: float = math.inf
    seconds: float = math.inf
    """Seconds of real time, like the limits of test runners."""


UNLIMITED = Limit()
STATES_BETWEEN = 50
"""How many states are visited before the clock is read. To read it takes as long as a state."""

Watch = Callable[[World, Sequence[Move]], None]


def _look_away(world: World, following: Sequence[Move]) -> None:
    """Watch nothing."""


def explore(
    beginning: World,
    bounds: Mapping[str, timedelta] = MappingProxyType({}),
    limit: Limit = UNLIMITED,
    watch: Watch = _look_away,
) -> ExplorationResult:
    """Visit all states. Raises `FoundError` for the nearest state that breaks a law.

    It is also raised if an order may take longer to its end than `bounds` allows, although nothing
    else goes wrong. If the limit is reached first, the ends are not checked. `watch` gets each
    state with all its next moves, and may raise an AssertionError, too.
    """
    forget()
    begin()
    search, seen, began = _Search(), ExplorationResult(), time.monotonic()
    search.add(beginning, 0, "")
    waiting = deque([(0, beginning)])
    while waiting:
        if waiting[0][0] % STATES_BETWEEN == 0:
            seen.seconds = time.monotonic() - began
        if len(search.parents) >= limit.states or seen.seconds >= limit.seconds:
            seen.whole, seen.events = False, len(search.trace_to(waiting[0][0]))
            break
        number, world = waiting.popleft()
        following = _look_at(search, seen, number, world, watch)
        waiting.extend(_reached(search, seen, number, following))
    seen.states, seen.seconds = len(search.parents), time.monotonic() - began
    seen.unchecked = not_reached()
    if seen.whole:
        search.check_reached()
        ended = search.ended
        seen.longest = max(search.longest(order_id, bounds.get(order_id)) for order_id in ended)
    return seen


def _look_at(
    search: _Search, seen: ExplorationResult, number: int, world: World, watch: Watch
) -> Sequence[Move]:
    """Check a state, and return all its next moves."""
    try:
        check(world)
        following = list(moves(world))
        if not any(move.by_itself for move in following):
            check_end(world)
            seen.ends += 1
            search.quiet.append(number)
        for part in filter(has_ended, world.parts()):
            search.ended[part.order_id].add(number)
        watch(world, following)
    except AssertionError as violation:
        way = [*search.trace_to(number), *_last_step(world)]
        raise FoundError(str(violation), way, world.history()) from violation
    return following


def _reached(
    search: _Search, seen: ExplorationResult, number: int, following: Sequence[Move]
) -> Iterator[tuple[int, World]]:
    """Make the moves, and yield the states that were not reached before."""
    for move in following:
        seen.transitions += 1
        seen.labels.add(move.label)
        if move.fault:
            seen.faults.add(move.label)
        known = len(search.parents)
        reached = search.add(move.world, number, move.label)
        if reached == known:
            yield reached, move.world
        if move.by_itself:
            search.before[reached].append(number)


def _last_step(world: World) -> list[str]:
    """Describe what was about to happen when a move itself broke a law."""
    waiting = [
        f"{slot} waits to {handler.pending.name}"
        for slot, handler in world.handlers.items()
        if handler.pending
    ]
    return [f"(then: {', '.join(waiting)})"] if waiting else []


def replay(beginning: World, labels: Sequence[str]) -> World:
    """Follow a trace again.

    Raises `LookupError` if a label is not possible in its state, and `ViolationError` if a law is
    broken.
    """
    forget()
    world = beginning
    for label in labels:
        found: Move | None = next((move for move in moves(world) if move.label == label), None)
        if found is None:
            raise LookupError(
                f"“{label}” cannot happen here; this can: {[move.label for move in moves(world)]}"
            )
        world = found.world
        check(world)
    return world
