"""Goes through every state that a world can get into, nearest first.

So the first violation that is found has the shortest way.
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
    """What was seen."""

    states: int = 0
    transitions: int = 0
    ends: int = 0
    longest: timedelta = timedelta()
    """How long an order takes at most from any state to its end, if nothing else goes wrong."""
    labels: set[str] = field(default_factory=set)
    """All that happened somewhere."""
    faults: set[str] = field(default_factory=set)
    """What of it went wrong."""
    seconds: float = 0.0
    """How long it took."""
    unchecked: Sequence[Law] = ()
    """The laws that were put to no test: their moment never came."""
    whole: bool = True
    """Whether no limit was met, so that nothing is left to see."""
    events: int = 0
    """Where a limit was met: every course of so many events was followed."""

    def happened(self, what: str) -> bool:
        """Whether this happened somewhere."""
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
    """A violation, with the shortest trace to it, and the order's history.

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
    """Where each state was first reached from, and from where each can be reached by itself."""

    parents: list[tuple[int, str]] = field(default_factory=list)
    times: list[datetime] = field(default_factory=list)
    numbers: dict[bytes, int] = field(default_factory=dict)
    before: list[list[int]] = field(default_factory=list)
    quiet: list[int] = field(default_factory=list)
    """Where nothing is left to do."""
    ended: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    """Where each order has ended."""

    def add(self, world: World, parent: int, label: str) -> int:
        """Return the number of the state; a new one has the next."""
        number = self.numbers.setdefault(world.key(), len(self.parents))
        if number == len(self.parents):
            self.parents.append((parent, label))
            self.times.append(world.now)
            self.before.append([])
        return number

    def trace_to(self, number: int) -> list[str]:
        """The labels from the beginning to this state."""
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
                "from here no end can be reached, though nothing else goes wrong",
                self.trace_to(stranded),
            )

    def longest(self, order_id: str, bound: timedelta | None) -> timedelta:
        """How long the order takes at most to its end.

        Raises `FoundError` for a state from which that is too long.
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
            time_left = f"{takes[too_long]}, though nothing else goes wrong: more than {bound}"
            what = f"from here {order_id} may take {time_left}"
            raise FoundError(what, self.trace_to(too_long))
        return max(takes.values())

    def _latest(self, ends: Collection[int]) -> dict[int, datetime]:
        """Return when the first of these ends is reached at the latest, from each state.

        Time never runs backwards, so a circle takes none, and whoever comes from the latest end
        first, knows.
        """
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
    """Where to stop."""

    states: float = math.inf
    seconds: float = math.inf
    """By the clock, as the limits of test runners are."""


UNLIMITED = Limit()
STATES_BETWEEN = 50
"""How many are looked at before the clock is read: that takes as long as a state."""

Watch = Callable[[World, Sequence[Move]], None]


def _look_away(world: World, following: Sequence[Move]) -> None:
    """Nobody watches."""


def explore(
    beginning: World,
    bounds: Mapping[str, timedelta] = MappingProxyType({}),
    limit: Limit = UNLIMITED,
    watch: Watch = _look_away,
) -> ExplorationResult:
    """Go through all states; raises `FoundError` for the nearest in which something does not hold.

    Also if from some state an order may take longer to its end than `bounds` says, though nothing
    else goes wrong. Where the limit is met first, the ends are not looked at. Who watches is shown
    each state with all that can happen next, and may raise an `AssertionError` too.
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
    """Check one state; return all that can happen next."""
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
    """Take what can happen next; yield the states in which nobody has been before."""
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
    """What was about to happen when a move itself violated something: a hint for the reader."""
    waiting = [
        f"{slot} waits to {handler.pending.name}"
        for slot, handler in world.handlers.items()
        if handler.pending
    ]
    return [f"(then: {', '.join(waiting)})"] if waiting else []


def replay(beginning: World, labels: Sequence[str]) -> World:
    """Follow a trace again.

    Raises `LookupError` where it cannot go on, and `ViolationError` where something breaks.
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
