"""The state of a small world: rows, messages, handlers that have begun, the time, the lease.

A world is never changed: what happens makes a new one. It is compared by its `key`, in which
nothing stands that cannot make a difference, such as the change ids of writes that nobody will ask
about again.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from hashlib import blake2b
from typing import Any, NamedTuple

from engine.decisions.transitions import HistoryEntry, Transition
from engine.domain.keys import bucket_of, order_key
from engine.domain.messages import request_id_of
from engine.domain.orders import OrderAggregate
from engine.domain.states import UnderWay
from engine.domain.work_index import IndexRow
from engine.storage.agent_health import AgentHealth
from engine.storage.order_rows import StateRecord
from scheduler.admission.admission import Admission
from testkit.exploration.beliefs import text_of_belief
from testkit.exploration.deployment import Deployment
from testkit.exploration.driving import Handler, settled
from testkit.memory import MemoryStateStore


class ReportedFault(NamedTuple):
    """A fault that an agent has reported."""

    request: str
    by_gateway: bool = False
    """Whether a gateway turned the request away."""
    orders: int = 0
    """For how many orders the calls timed out at that time; 0 if the fault is no time-out."""


class Rows(dict[str, tuple[int, Any]]):
    """What the store holds, never changed either.

    So what follows from it is worked out once for all its worlds.
    """

    sound = False
    """Whether it was checked already."""

    def store(self, order_id: str) -> MemoryStateStore:
        """The state store, to read from; whoever writes takes its rows from there."""
        store = MemoryStateStore()
        store.rows = {bucket_of(order_id): self}
        return store

    @cached_property
    def parts(self) -> dict[str, "Rows"]:
        """The rows of each order by themselves."""
        parts: dict[str, Rows] = defaultdict(Rows)
        for key, row in self.items():
            parts[row[1].order_id if isinstance(row[1], IndexRow) else key.partition("|")[0]][
                key
            ] = row
        return parts

    @cached_property
    def order(self) -> OrderAggregate | None:
        """The order."""
        order_id = next(
            (
                record.state.order_id
                for _, record in self.values()
                if isinstance(record, StateRecord)
            ),
            None,
        )
        if order_id is None:
            return None
        order: OrderAggregate = settled(self.store(order_id).load(order_id))
        return order

    @cached_property
    def history(self) -> list[HistoryEntry]:
        """Every entry, oldest first."""
        return [self[key][1] for key in sorted(self) if isinstance(self[key][1], HistoryEntry)]

    @cached_property
    def work_items(self) -> dict[str, IndexRow]:
        """Open work items by row key."""
        rows = {key: record for key, (_, record) in self.items() if key.startswith("!")}
        return {key: record for key, record in rows.items() if isinstance(record, IndexRow)}

    @cached_property
    def text(self) -> str:
        """What tells these rows from others; nobody acts on a note."""
        return "\n".join(
            f"{key} {self[key][0]} {text_of(self[key][1])}"
            for key in sorted(self)
            if not NOTE.search(key)
        )

    @cached_property
    def text_without_ids(self) -> str:
        """The same for a world in which nobody will ask who wrote them."""
        return ID.sub("", self.text)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sent:
    """A message in a queue."""

    kind: str
    """Which job it starts: submission, wake, request, reply."""
    body: str
    agent: str = ""
    """Over whose queue a reply came."""
    expires: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class World:
    """One state."""

    deployed: Deployment
    now: datetime
    faults_left: int
    acts_left: int
    """How often the operator may still do something."""
    operator: tuple[str, ...]
    """What the operator does, where it makes sense."""
    outside: tuple[str, ...] = ()
    """What somebody outside may say to each step that waits for it, at any moment."""
    order_id: str
    """The order, or the first of them."""
    others: tuple[str, ...] = ()
    """The orders beside it."""
    shared: bool = False
    """Whether the bucket holds more than the order."""
    rows: Rows = field(default_factory=Rows)
    queue: tuple[Sent, ...] = ()
    handlers: Mapping[str, Handler] = field(default_factory=dict)
    beliefs: Mapping[str, Admission] = field(default_factory=dict)
    """What the processes believe of store and agents, in worlds in which that outlives an event."""
    memories: Mapping[str, tuple[OrderAggregate, ...]] = field(default_factory=dict)
    """The orders that the processes remember, in worlds in which that outlives an event."""
    lease: tuple[str, datetime] | None = None
    effects: frozenset[str] = frozenset()
    """What has happened at the services: `<idempotency key> do`, `<idempotency key> undo`."""
    published: frozenset[str] = frozenset()
    """Ids of the events of ends that Event Grid has taken."""
    received_notices: frozenset[str] = frozenset()
    """The notices that the sender has got."""
    poison: frozenset[str] = frozenset()
    only: tuple[str, ...] = ()
    """What goes wrong, by what the labels say; empty if anything may."""
    late: tuple[tuple[str, datetime], ...] = ()
    """By idempotency key the calls that nobody waits for, and until when they may take effect."""
    may_open: frozenset[str] = frozenset()
    """The agents, or the instances of agents, whose circuits may open."""
    open: frozenset[str] = frozenset()
    """The agents, or the instances of agents, whose circuits are open."""
    paused: frozenset[str] = frozenset()
    """The agents that an operator has paused."""
    away: frozenset[str] = frozenset()
    """The agents that take no requests, until somebody starts them again."""
    silence: tuple[AgentHealth, ...] = ()
    """The records of silent agents."""
    reported: tuple[tuple[str, datetime], ...] = ()
    """When each agent has reported last, where an agent may be silent."""
    broken: frozenset[str] = frozenset()
    """The instances whose circuits never close again."""
    begun: tuple[str, ...] = ()
    """The requests that agents have said they have begun."""
    faults: frozenset[ReportedFault] = frozenset()
    """The faults that agents have reported of attempts that are under way."""
    served: frozenset[tuple[str, str]] = frozenset()
    """Where there are several providers: by idempotency key, who has done something."""
    refused: frozenset[str] = frozenset()
    """Where services remember refusals: the idempotency keys that they refuse from now on."""
    accepted: frozenset[str] = frozenset()
    """Where services do things later: what they have accepted, as in `effects`."""
    linked: tuple[tuple[str, str], ...] = ()
    """By idempotency key the token of the callback URL over which a service may answer its call."""
    declined: frozenset[str] = frozenset()
    """Of these the ones that a service has refused over its link, and was not asked again since."""
    known: tuple[tuple[str, datetime], ...] = ()
    """Where services forget keys: the keys that they got, and until when they know them."""
    to_come: tuple["Sent", ...] = ()
    """The orders that somebody may still submit."""
    copied: tuple[datetime, Rows] | None = None
    """When somebody took a copy of the order, and of which rows."""
    restored: bool = False
    """Whether the store was lost, and the order restored."""
    landing: tuple[Transition, ...] = ()
    """Writes whose callers have given them up, and that may still arrive at the store."""
    landed: frozenset[str] = frozenset()
    """The orders whose last write was one of these; noted where it matters who takes whose slot."""
    ids: int = 0

    def but(self, **changes: Any) -> "World":
        """The same, but for these; as `dataclasses.replace`, which takes three times as long."""
        world = object.__new__(World)
        world.__dict__.update(self.__dict__, **changes)
        return world

    def at(self, later: datetime) -> "World":
        """The same world at a later time.

        Messages and leases of which the time is over are gone, and so are late calls.
        """
        queue = tuple(sent for sent in self.queue if sent.expires is None or sent.expires > later)
        lease = self.lease if self.lease and self.lease[1] > later else None
        late = tuple(call for call in self.late if call[1] > later)
        return self.but(now=later, queue=queue, lease=lease, late=late)

    def may_fail(self, label: str) -> bool:
        """Whether this fault may happen here, by its label."""
        return not self.only or any(part in label for part in self.only)

    def about(self, order_id: str) -> "World":
        """The world as it is for one order alone."""
        if not self.shared:
            return self
        return self.but(
            order_id=order_id,
            others=(),
            shared=False,
            rows=self.rows.parts[order_id],
            queue=tuple(sent for sent in self.queue if order_id in sent.body),
            effects=frozenset(effect for effect in self.effects if effect.startswith(order_id)),
            published=frozenset(event for event in self.published if event.startswith(order_id)),
        )

    def parts(self) -> Iterator["World"]:
        """The world as it is for each order alone."""
        return map(self.about, (self.order_id, *self.others))

    def store(self) -> MemoryStateStore:
        """The state store, to read from; whoever writes takes its rows from there."""
        return self.rows.store(self.order_id)

    def order(self) -> OrderAggregate | None:
        """The order."""
        return self.rows.order

    def history(self) -> list[HistoryEntry]:
        """Every entry, oldest first."""
        return self.rows.history

    def work_items(self) -> dict[str, IndexRow]:
        """Open work items by row key."""
        return self.rows.work_items

    def recorded(self) -> bool:
        """Whether the order is recorded."""
        return order_key(self.order_id) in self.rows

    def _copy(self) -> str:
        """Return what tells the copy from others."""
        return f"{self.copied[0]} {self.copied[1].text_without_ids}" if self.copied else ""

    def _tokens(self) -> list[list[str | None]]:
        """Return the tokens of all orders' callback URLs, where services answer over them."""
        called_back = self.deployed.called_back
        return [tokens_in(part.order()) for part in self.parts()] if called_back else []

    def with_handler(self, handler: Handler) -> "World":
        """The world in which this handler stands where it stands now."""
        return self.but(handlers={**self.handlers, handler.slot: handler})

    def believing(self, slot: str, belief: Admission | None) -> "World":
        """The world in which this process believes this; nothing, if it has crashed."""
        others = {name: other for name, other in self.beliefs.items() if name != slot}
        return self.but(beliefs={**others, slot: belief} if belief else others)

    def remembering(self, slot: str, orders: tuple[OrderAggregate, ...]) -> "World":
        """The world in which this process remembers these orders; none, if it has crashed."""
        if not orders and slot not in self.memories:
            return self
        others = {name: kept for name, kept in self.memories.items() if name != slot}
        return self.but(memories={**others, slot: orders} if orders else others)

    def crashed(self, slot: str) -> "World":
        """The world in which this process has crashed: it believes and remembers nothing."""
        return self.without_handler(slot).believing(slot, None).remembering(slot, ())

    def saying(self, begun: Collection[str]) -> "World":
        """The world in which the agents have said this.

        What tells of no attempt that runs is left out.
        """
        orders = [order for part in self.parts() if begun and (order := part.order())]
        running = {
            request_id_of(order.order_id, step)
            for order in orders
            for step in order.in_state(UnderWay)
        }
        kept = frozenset(fault for fault in self.faults if fault.request in running)
        return self.but(begun=tuple(sorted(running.intersection(begun))), faults=kept)

    def without_handler(self, slot: str) -> "World":
        """The world in which this slot is idle."""
        return self.but(
            handlers={name: handler for name, handler in self.handlers.items() if name != slot}
        )

    def with_messages(self, messages: Collection[Sent]) -> "World":
        """The world with more messages on their way; their order means nothing."""
        return self.but(
            queue=tuple(sorted([*self.queue, *messages], key=lambda sent: (sent.kind, sent.body)))
        )

    def without_message(self, message: Sent) -> "World":
        """The world with one message less."""
        rest = list(self.queue)
        rest.remove(message)
        return self.but(queue=tuple(rest))

    def key(self) -> bytes:
        """What tells this state from others."""
        rest = "\n".join(
            (
                f"{self.now} {self.faults_left} {self.acts_left} {self.lease} {self.late}",
                f"{self.deployed.following is None}",
                *(text_of(sent) for sent in self.queue),
                *(
                    f"{slot} {text}"
                    for _, text, slot in sorted(map(_handler_text, self.handlers.values()))
                ),
                *(
                    str(sorted(collection))
                    for collection in (
                        self.effects,
                        self.published,
                        self.poison,
                        self.open,
                        self.paused,
                        self.away,
                        self.received_notices,
                        self.landed,
                    )
                ),
                f"{self.begun} {sorted(self.served)} {len(self.to_come)}",
                *map(text_of, (*self.silence, *self.reported)),
                f"{sorted(self.faults)} {self.restored} {self._copy()}",
                f"{sorted(self.refused)} {sorted(self.accepted)} {self.known}",
                f"{self.linked} {sorted(self.declined)} {self._tokens()}",
                *(text_of(transition) for transition in self.landing),
                *(
                    f"{slot} {text_of_belief(belief, self.now)}"
                    for slot, belief in sorted(self.beliefs.items())
                ),
                *(
                    f"{slot} remembers {text_of(order)}"
                    for slot, orders in sorted(self.memories.items())
                    for order in orders
                ),
            )
        )
        text = _with_canonical_ids(rest, self.rows)
        return blake2b(
            _with_canonical_names(text, self.deployed.alike).encode(), digest_size=16
        ).digest()


def tokens_in(order: OrderAggregate | None) -> list[str | None]:
    """Return the rights of an order's links, which no text of it shows."""
    return [step.callback_token for step in order.steps] if order else []


NOTE = re.compile(r"\|history\|\d+\|")

ID = re.compile(r"~\d+~")


def _with_canonical_ids(rest: str, rows: Rows) -> str:
    """Number the ids that somebody may still ask about by where they occur, and blank the others.

    An id that occurs in rows only was drawn by a handler that has ended.
    """
    live = {found: f"~{place}~" for place, found in enumerate(dict.fromkeys(ID.findall(rest)))}
    if not live:
        return f"{rest}\n--\n{rows.text_without_ids}"
    return ID.sub(lambda found: live.get(found[0], ""), f"{rest}\n--\n{rows.text}")


def _with_canonical_names(text: str, alike: Sequence[tuple[str, str]]) -> str:
    """Name instances that are alike by where they occur: each may as well be the other."""
    for one, other in alike:
        if other in text.partition(one)[0]:
            text = text.replace(one, "\0").replace(other, one).replace("\0", other)
    return text


def _handler_text(handler: Handler) -> tuple[str, str, str]:
    log = " ".join(text_of(answer) for answer in handler.log)
    return handler.slot[:-1], f"{text_of(handler.job)} {log} {handler.since}", handler.slot


PARSED_UTC = re.compile(r"TzInfo\((?:0|UTC)\)")
"""How pydantic writes the zone of a time that it has read: it is the same time."""

_texts: dict[int, tuple[Any, str]] = {}


def text_of(value: Any) -> str:
    """What a value says, remembered.

    Most of what a state consists of, the state before it had too.
    """
    known = _texts.get(id(value))
    if known is None or known[0] is not value:
        known = _texts[id(value)] = (value, PARSED_UTC.sub(repr(UTC), repr(value)))
    return known[1]


def forget_texts() -> None:
    """Let go of what was remembered."""
    _texts.clear()
