"""Which orders may be claimed now, and which agents take their steps (SCH-11, AGT-10, WRK-2).

What an instance believes is what its last look at store and agents said, and what it has done itself since. The next
look overrules both: whatever is wrong here, is wrong for one look.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain

from core.agenda import NOTHING, AgendaRow
from core.keys import bucket_of
from core.orders import Priority
from core.ports import Clock
from scheduler.progress import Room
from stores.agent_health import AgentHealth, longest_wait, open_until

FIRST = 32
"""Before anything is known of the agent, and again after a time without load."""

LEAST = 4
"""Some requests have to be tried, or nobody would notice that the agent has room again."""

LONG_WAIT = 0.25
"""Requests that wait for longer than this share of their time show that too much is open."""

SHRINKS_TO, GROWS_BY = 0.7, 2


@dataclass(kw_only=True)
class ConcurrencyWindow:
    """The limit of open requests, as it follows what becomes of them."""

    most: int
    limit: int = field(init=False)
    peak: int = 0
    """The most that was open since the limit was set."""
    _since: Set[str] | None = None
    """What was seen open since then; None before the first look."""

    def __post_init__(self) -> None:
        self.limit = min(FIRST, self.most)

    def adapt(self, now_open: Set[str], waited: float | None) -> None:
        """Set the limit by what is open in the whole system, and by how long requests wait, None if nobody knows.

        How long requests wait that a new limit let in shows only once they begin. So it stays as it is until as many
        as are open have been answered since: else it would grow, look by look, while a slow agent has not begun any of
        them. Without load it goes back to the beginning, because what the agent could do a while ago says
        nothing about now.
        """
        count = len(now_open)
        self.peak = max(self.peak, count)
        if self._since is None:  # this instance has just begun: others have found out how much may be open
            self.limit = max(self.limit, count)
        since = now_open | (self._since or set())
        if len(since) < 2 * count:
            self._since = since
            return
        if waited is not None and waited > LONG_WAIT:
            self.limit = max(LEAST, int(self.limit * SHRINKS_TO))
        elif 2 * self.peak < self.limit:
            self.limit = max(min(FIRST, self.limit), self.limit // GROWS_BY)
        elif waited is not None:
            self.limit *= GROWS_BY
        self.limit = min(self.limit, self.most)
        self.peak, self._since = count, now_open

    def begin_again(self) -> None:
        """Let through only a few: the agent's circuit has opened, and somebody has to try whether it may close."""
        self.limit, self.peak = min(LEAST, self.most), 0


LOOK_INTERVAL = timedelta(seconds=1)
"""How often an instance looks while it has something to do."""

TURN_OF_NORMAL = 5
"""Each fifth claim goes to an order of normal priority, if one waits, so that none waits for ever."""

EQUALLY_LONG = timedelta(seconds=10)
"""Orders of one such span have waited equally long: which goes first is left to each instance, so that they differ."""

REMEMBERED = timedelta(seconds=5)
"""How long an order is a candidate that no poll has found again; it has been left to polls by then."""

PASSED_OVER = timedelta(seconds=60)
"""How long an order is left alone that could not be claimed for a reason of its own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A pending order that may be claimed, as far as this instance knows."""

    order_id: str
    priority: Priority = Priority.NORMAL
    needs: str = NOTHING
    """What it needs an agent for; also `NOTHING` if only reading the order would tell."""
    since: datetime
    """From when on it could have been claimed."""
    heard_at: datetime
    """When this instance heard of it last."""


@dataclass(kw_only=True)
class Admission:
    """One instance's belief of how much is open at the agents, and of who waits."""

    offers: Mapping[str, Sequence[str]]
    """The agents that offer each capability, the preferred first."""
    clock: Clock
    most: int
    """Requests that may be open at one agent."""
    _windows: dict[str, ConcurrencyWindow] = field(init=False)
    _closed: dict[str, datetime] = field(default_factory=dict)
    """Until when an agent makes no calls."""
    _looked_at: datetime | None = None
    _seen: dict[str, Sequence[str]] | None = None
    """At which agents the steps of each order ran at the last look; None before the first."""
    _done: dict[str, Sequence[str]] = field(default_factory=dict)
    """The same of the orders of which this instance knows something newer."""
    _newest: dict[str, Sequence[str]] = field(default_factory=dict)
    """Of these, what a look that is being made may not see."""
    _at_work: Counter[str] = field(default_factory=Counter)
    _open: Counter[str] = field(default_factory=Counter)
    """What follows: the open requests of each agent."""
    _claim_lanes: dict[tuple[Priority, str], dict[str, Candidate]] = field(default_factory=dict)
    _turns: Counter[str] = field(default_factory=Counter)
    _passed_over: dict[str, datetime] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._windows = {
            agent: ConcurrencyWindow(most=self.most) for agents in self.offers.values() for agent in agents
        }

    # What is open

    @property
    def max_open(self) -> int:
        """How many orders of a bucket a look has to see: if as many run there, agents have all that they may have."""
        return self.most * len(self._windows)

    def begin_look(self) -> bool:
        """Whether it is time for a look; what is done from now on is known beside it.

        A clock that was put back makes it time too, instead of never.
        """
        now = self.clock()
        if self._looked_at and abs(now - self._looked_at) < LOOK_INTERVAL:
            return False
        self._looked_at = now
        self._at_work = +self._at_work
        self._newest = {order_id: agents for order_id, agents in self._done.items() if order_id in self._at_work}
        return True

    def saw(
        self, running: Sequence[AgendaRow], agent_health: Sequence[AgentHealth], unseen: Collection[str] = frozenset()
    ) -> None:
        """Believe what the look found, but of orders that were changed here since it began.

        And of those in the `unseen` buckets, which it could not reach, what the look before had found.
        """
        now = self.clock()
        before = {name: agents for name, agents in (self._seen or {}).items() if bucket_of(name) in unseen}
        self._seen = before | {row.order_id: str(row.data.get("Agents", "")).split() for row in running}
        self._done = self._newest
        self._open = Counter(chain.from_iterable((self._seen | self._done).values()))
        self._passed_over = {name: until for name, until in self._passed_over.items() if until > now}
        self._keep(each for each in self._candidates() if abs(now - each.heard_at) < REMEMBERED)
        for agent in self._windows:
            now_open = {row.key for row in running if agent in self._seen[row.order_id]}
            self._adapt_to(agent, now_open, [health for health in agent_health if health.agent == agent])

    def _adapt_to(self, agent: str, now_open: set[str], agent_health: Sequence[AgentHealth]) -> None:
        if until := open_until(agent_health, self.clock()):
            self.close(agent, until)
        elif agent_health:
            self._closed.pop(agent, None)
        if not self._is_closed(agent):
            self._windows[agent].adapt(now_open, longest_wait(agent_health))

    def close(self, agent: str, until: datetime) -> None:
        """Send nothing to the agent until then, and only a few requests at first."""
        self._windows[agent].begin_again()
        self._closed[agent] = until

    @contextmanager
    def at_work(self, order_id: str) -> Iterator[None]:
        """While this lasts, a look does not overrule what is known of the order: it may not be written yet."""
        self._at_work[order_id] += 1
        try:
            yield
        finally:
            self._at_work[order_id] -= 1

    def is_at(self, order_id: str, agents: Sequence[str]) -> None:
        """Believe that the order's steps run at these agents, and at no others."""
        self._open.subtract(self._done.get(order_id, (self._seen or {}).get(order_id, ())))
        self._done[order_id] = self._newest[order_id] = agents
        self._open.update(agents)
        for agent in self._windows.keys() & agents:
            self._windows[agent].peak = max(self._windows[agent].peak, self._open[agent])

    def room(self) -> Room:
        """Return who takes steps now; nobody before the first look, since others may have claimed all that can be."""
        if self._seen is None:
            return {}
        takes = {needs: next(filter(self._has_room, agents), None) for needs, agents in self.offers.items()}
        return {needs: agent for needs, agent in takes.items() if agent}

    def is_any_at_work(self, needs: str) -> bool:
        """Whether an order with this need waits for nothing but room."""
        return needs == NOTHING or not all(map(self._is_closed, self.offers.get(needs, ())))

    def _has_room(self, agent: str) -> bool:
        return not self._is_closed(agent) and self._open[agent] < self._windows[agent].limit

    def _is_closed(self, agent: str) -> bool:
        return agent in self._closed and self._closed[agent] > self.clock()

    # Who waits

    def hear(self, candidate: Candidate) -> None:
        """Add an order to those that wait, unless it is among them."""
        claim_lane = self._claim_lanes.setdefault((candidate.priority, candidate.needs), {})
        claim_lane.setdefault(candidate.order_id, candidate)

    def found(self, candidates: Iterable[Candidate], began: datetime) -> None:
        """Believe that these orders wait, and no others but those that were heard of since the search began."""
        found = [each for each in candidates if not self._at_work[each.order_id]]
        self._keep([*found, *(each for each in self._candidates() if each.heard_at >= began)])

    @property
    def anyone_waits(self) -> bool:
        """Whether there is any order to claim."""
        return bool(self._claim_lanes)

    def knows(self, order_id: str) -> bool:
        """Whether the order is among those that wait."""
        return any(order_id in claim_lane for claim_lane in self._claim_lanes.values())

    def take(self) -> Candidate | None:
        """Take out the order to claim next, with a slot at an agent for what it needs; None if there is room for none.

        Those whose need is not known come last: there may be room for them only while nobody else waits for it.
        """
        room = self.room()
        for needs in sorted({needs for _, needs in self._claim_lanes}, key=lambda needs: needs == NOTHING):
            if needs == NOTHING or needs in room:
                candidate = self._next(needs)
                if needs in room:
                    self.is_at(candidate.order_id, [*(self._seen or {}).get(candidate.order_id, ()), room[needs]])
                return candidate
        return None

    def pass_over(self, order_id: str) -> None:
        """Leave the order alone for a while: it cannot be claimed, and whoever waits behind it can, at its slot too."""
        self.is_at(order_id, (self._seen or {}).get(order_id, ()))
        self._passed_over[order_id] = self.clock() + PASSED_OVER

    def passes_over(self, order_id: str) -> bool:
        """Whether the order is left alone now."""
        return order_id in self._passed_over

    def _next(self, needs: str) -> Candidate:
        """Take out the first order with this need: high priority first, but each so often a normal one."""
        self._turns[needs] += 1
        order = list(Priority) if self._turns[needs] % TURN_OF_NORMAL else list(reversed(Priority))
        place = next((priority, needs) for priority in order if (priority, needs) in self._claim_lanes)
        claim_lane = self._claim_lanes[place]
        candidate = claim_lane.pop(next(iter(claim_lane)))
        if not claim_lane:
            del self._claim_lanes[place]
        return candidate

    def _candidates(self) -> Iterator[Candidate]:
        for claim_lane in self._claim_lanes.values():
            yield from claim_lane.values()

    def _keep(self, candidates: Iterable[Candidate]) -> None:
        """Let these be all that wait, in each lane those first that have waited longest."""
        kept = sorted(candidates, key=lambda each: each.since.timestamp() // EQUALLY_LONG.total_seconds())
        self._claim_lanes = {}
        for candidate in kept:
            self.hear(candidate)
