"""Which orders may be claimed now, and which agents take their steps (SCH-11, AGT-10, WRK-2).

Three rules, which every process applies to what its last look found and to what it has done itself since:

1. As many requests may be open at an agent as `limit` says, by what it does.
2. Orders that need the same wait in one queue, which is the same in every process: high priority before normal, but
   each fifth is a normal one; else the one first that has waited longest.
3. The slots that are free belong to the first of the queue. So whoever looks at the same time takes the same orders.

Whatever is wrong here, is wrong until the next look.
"""

import math
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain, islice

from core.agenda import NOTHING, AgendaRow
from core.keys import bucket_of
from core.messages import AgentReply
from core.orders import Priority
from core.ports import Clock
from scheduler.progress import Room
from stores.agent_health import FRESH, AgentHealth, closed_until

LOOK_INTERVAL = timedelta(seconds=1)
"""How often a process looks while it has something to do."""

FEW = 3
"""Requests by which to find out whether an agent works again, or can do more than it does."""

AHEAD = 0.3
"""The share of an attempt's time for which an agent may have work before it."""

TURN_OF_NORMAL = 5
"""Each fifth claim goes to an order of normal priority, if one waits, so that none waits for ever."""

LATELY = timedelta(minutes=1)
"""How long it is known of an agent that it makes no calls, or made none until a moment ago."""

ANNOUNCED_FOR = timedelta(seconds=5)
"""How long an order that was announced here is this process's to take; then it has been left to everybody."""

PASSED_OVER = timedelta(seconds=60)
"""How long an order is left alone that could not be claimed for a reason of its own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """An order that may be claimed."""

    order_id: str
    priority: Priority = Priority.NORMAL
    needs: str = NOTHING
    """What it needs an agent for."""
    since: datetime
    """Since when it waits."""
    fresh: bool = False
    """Whether it is left to whoever hears of it: it was announced only a moment ago."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Capacity:
    """What is known of an agent before it says anything."""

    most: int
    """How many requests may be open at it, whatever it says of itself."""
    first: int
    """How many while nothing is known: if its service is away, as many fail once and open its circuit."""
    allowance: timedelta
    """How long an attempt may take: the shortest of its steps."""


def limit(health: Sequence[AgentHealth], agent: str, capacity: Capacity, now: datetime) -> int:
    """Return how many requests may be open at the agent.

    None while it is closed. Where nothing is known of it, neither work nor trouble, as many as open its circuit. Else
    as many as it begins, by its own word, in three tenths of the time that an attempt has, so that all begin in time;
    and a few more, by which to find out.
    """
    if closed_until(health, agent, now):
        return 0
    said = [each for each in health if each.agent == agent]
    rates = [each.rate for each in said if now - each.at < FRESH]
    if not rates and not any(
        each.open_until or each.asked_until or each.unheard_since for each in said
    ):
        return min(capacity.most, capacity.first)
    ahead = sum(rates) * capacity.allowance.total_seconds() * AHEAD
    return min(capacity.most, FEW + math.ceil(ahead))


def said_in(reply: AgentReply, agent: str, now: datetime) -> Sequence[AgentHealth]:
    """Return what an instance of the agent says of itself in a reply: nothing, or that it makes no calls now."""
    if not reply.circuit_open:
        return ()
    until = now + timedelta(seconds=reply.retry_after or 0)
    asked_until = until if reply.asked else None
    name = reply.instance or ""
    return (
        AgentHealth(agent=agent, instance=name, at=now, open_until=until, asked_until=asked_until),
    )


@dataclass(kw_only=True)
class Admission:
    """One process's belief of how much is open at the agents, and of who waits."""

    offers: Mapping[str, Sequence[str]]
    """The agents that offer each capability, the preferred first."""
    capacity: Mapping[str, Capacity]
    """By agent."""
    clock: Clock
    health: Sequence[AgentHealth] = ()
    """What the agents said of themselves lately."""
    has_looked: bool = False
    """Whether this process knows anything; before, it has no room, since others may have opened all that can be."""
    _looked_at: datetime | None = None
    _runs_at: dict[str, Sequence[str]] = field(default_factory=dict)
    """At which agents the steps of each order run."""
    _open: Counter[str] = field(default_factory=Counter)
    """What follows: the open requests of each agent."""
    _touched: set[str] = field(default_factory=set)
    """Orders of which this process knows more than a look that is being made."""
    _at_work: Counter[str] = field(default_factory=Counter)
    _queues: dict[str, dict[str, Candidate]] = field(default_factory=dict)
    """By need, who waits, in the order in which slots are theirs."""
    _announced: dict[str, datetime] = field(default_factory=dict)
    _turns: Counter[str] = field(default_factory=Counter)
    _passed_over: dict[str, datetime] = field(default_factory=dict)
    _has_left: bool = False
    """Whether an order that was announced here was left since the last look."""

    # What is open

    def begin_look(self, *, at_once: bool = False) -> bool:
        """Whether it is time for a look; what is done from now on is known beside it.

        A clock that was put back makes it time too, instead of never.
        """
        now = self.clock()
        if not at_once and self._looked_at and abs(now - self._looked_at) < LOOK_INTERVAL:
            return False
        self._looked_at = now
        self._has_left = False
        self._at_work = +self._at_work
        self._touched = set(self._at_work)
        return True

    def saw(
        self,
        running: Iterable[AgendaRow],
        waiting: Iterable[Candidate],
        health: Sequence[AgentHealth] | None,
        unseen: Collection[str] = (),
    ) -> None:
        """Believe what the look found, but of orders that were changed here since it began.

        And of the `unseen` buckets, and of the agents if nobody can tell how they are, what was believed before.
        """
        self.has_looked = True
        seen = {row.order_id: str(row.data.get("Agents", "")).split() for row in running}
        known = {
            name: agents
            for name, agents in self._runs_at.items()
            if name in self._touched or bucket_of(name) in unseen
        }
        self._runs_at = seen | known
        self._open = Counter(chain.from_iterable(self._runs_at.values()))
        self.learn(health or ())
        self._line_up([each for each in waiting if each.order_id not in self._touched])

    def learn(self, said: Sequence[AgentHealth]) -> None:
        """Believe what agents say of themselves."""
        self.health = self._as_told(said)

    def _as_told(self, said: Sequence[AgentHealth]) -> Sequence[AgentHealth]:
        """Return what is believed after this; of whoever says nothing now, that is what was said lately."""
        if not said:
            return self.health
        lately, speak = self.clock() - LATELY, {(each.agent, each.instance) for each in said}
        known = (each for each in self.health if each.counts_until > lately)
        return [*said, *(each for each in known if (each.agent, each.instance) not in speak)]

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
        self._open.subtract(self._runs_at.get(order_id, ()))
        self._runs_at[order_id] = agents
        self._touched.add(order_id)
        self._open.update(agents)

    def answered(self, order_id: str, agent: str) -> None:
        """Believe that nothing of the order is open at the agent."""
        self.is_at(order_id, [each for each in self._runs_at.get(order_id, ()) if each != agent])

    def room(
        self, order_id: str = "", runs_at: Sequence[str] = (), said: Sequence[AgentHealth] = ()
    ) -> Room:
        """Return who takes steps of the order now, if its steps run at these agents and this is what agents say.

        Slots that it holds elsewhere count as free.
        """
        if not self.has_looked:
            return {}
        health, open_then = self._as_told(said), self._open.copy()
        open_then.subtract(self._runs_at.get(order_id, ()))
        open_then.update(runs_at)
        now = self.clock()
        free = {
            name
            for name, each in self.capacity.items()
            if limit(health, name, each, now) > open_then[name]
        }
        takers = {
            needs: [agent for agent in agents if agent in free]
            for needs, agents in self.offers.items()
        }
        return {needs: agents for needs, agents in takers.items() if agents}

    def _free(self, agent: str) -> int:
        allowed = limit(self.health, agent, self.capacity[agent], self.clock())
        return max(0, allowed - self._open[agent])

    # Who waits

    def hear(self, candidate: Candidate) -> None:
        """Add an order that was announced here, behind those that were seen waiting, unless it is among them."""
        self._announced[candidate.order_id] = self.clock()
        self._queues.setdefault(candidate.needs, {}).setdefault(candidate.order_id, candidate)

    def leaves_behind(self, order_id: str) -> bool:
        """Whether the order waits though it was announced here; after that one speaks for all until the next look."""
        is_first = self._waits(order_id) and not self._has_left
        self._has_left |= is_first
        return is_first

    def may_have_room(self, order_id: str) -> bool:
        """Whether the order waits for slots that this process has taken itself since its last look."""
        return self._waits(order_id) and bool(self._touched)

    def _waits(self, order_id: str) -> bool:
        return any(order_id in queue for queue in self._queues.values())

    def take(self) -> Candidate | None:
        """Take out the order to claim next, with a slot at an agent for what it needs; None if none may be claimed.

        An order that is left to whoever hears of it keeps its slot for that.
        """
        for needs, queue in self._queues.items():
            free = [agent for agent in self.offers.get(needs, ()) for _ in range(self._free(agent))]
            first = islice(queue.values(), len(queue) if needs == NOTHING else len(free))
            if candidate := next(filter(self._is_to_take, first), None):
                del queue[candidate.order_id]
                self._turns[needs] += 1
                self.is_at(
                    candidate.order_id, [*self._runs_at.get(candidate.order_id, ()), *free[:1]]
                )
                return candidate
        return None

    def _is_to_take(self, candidate: Candidate) -> bool:
        return not candidate.fresh or candidate.order_id in self._announced

    def pass_over(self, order_id: str, pause: timedelta = PASSED_OVER) -> None:
        """Leave the order alone for a while: it cannot be claimed, and whoever waits behind it can, at its slot too."""
        self.is_at(order_id, ())
        self._passed_over[order_id] = self.clock() + pause

    def passes_over(self, order_id: str) -> bool:
        """Whether the order is left alone now."""
        return order_id in self._passed_over

    def _line_up(self, waiting: Sequence[Candidate]) -> None:
        """Let these be all that wait, and those that were announced here since the look began."""
        now = self.clock()
        self._passed_over = {
            name: until for name, until in self._passed_over.items() if until > now
        }
        self._announced = {
            name: at for name, at in self._announced.items() if abs(now - at) < ANNOUNCED_FOR
        }
        heard = [
            each
            for queue in self._queues.values()
            for each in queue.values()
            if self._is_news(each)
        ]
        self._queues = {}
        for needs in sorted({each.needs for each in waiting}):
            high, normal = (_lane(waiting, needs, priority) for priority in Priority)
            self._queues[needs] = {
                each.order_id: each for each in _in_turns(high, normal, self._turns[needs])
            }
        for each in heard:
            self._queues.setdefault(each.needs, {}).setdefault(each.order_id, each)

    def _is_news(self, candidate: Candidate) -> bool:
        """Whether it was announced here since the last look began, which may not have seen it."""
        heard_at = self._announced.get(candidate.order_id)
        return bool(heard_at and self._looked_at and heard_at >= self._looked_at)


def _lane(waiting: Iterable[Candidate], needs: str, priority: Priority) -> deque[Candidate]:
    """Return those of one lane, the oldest first."""
    lane = (each for each in waiting if (each.needs, each.priority) == (needs, priority))
    return deque(sorted(lane, key=lambda each: (each.since, each.order_id)))


def _in_turns(high: deque[Candidate], normal: deque[Candidate], taken: int) -> Iterator[Candidate]:
    """Yield high ones before normal ones, but a normal one at each fifth turn, whatever was taken before."""
    while high or normal:
        taken += 1
        is_turn_of_normal = taken % TURN_OF_NORMAL == 0 or not high
        yield (normal if normal and is_turn_of_normal else high).popleft()
