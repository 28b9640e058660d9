"""The state of a small world: rows, messages, running handlers, the time, the lease.

A world is never changed. A move makes a new one. Worlds are compared by `key`, which contains only
what can make a difference. For example, it leaves out the change ids of writes that nobody will ask
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
    """Whether a gateway rejected the request."""
    orders: int = 0
    """For how many orders calls timed out at that time. 0 if the fault is not a time-out."""


class Rows(dict[str, tuple[int, Any]]):
    """The contents of the store, which are never changed.

    So everything that follows from them is computed once for all worlds that share them.
    """

    sound = False
    """Whether the rows were already checked."""

    def store(self, order_id: str) -> MemoryStateStore:
        """Return a state store for reading. A writer takes its new rows from it."""
        store = MemoryStateStore()
        store.rows = {bucket_of(order_id): self}
        return store

    @cached_property
    def parts(self) -> dict[str, "Rows"]:
        """The rows of each order."""
        parts: dict[str, Rows] = defaultdict(Rows)
        for key, row in self.items():
            parts[row[1].order_id if isinstance(row[1], IndexRow) else key.partition("|")[0]][
                key
            ] = row
        return parts

    @cached_property
    def order(self) -> OrderAggregate | None:
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
        """The open work items, by row key."""
        rows = {key: record for key, (_, record) in self.items() if key.startswith("!")}
        return {key: record for key, record in rows.items() if isinstance(record, IndexRow)}

    @cached_property
    def text(self) -> str:
        """A text that distinguishes these rows from others.

        Notes are left out, because nothing depends on them.
        """
        return "\n".join(
            f"{key} {self[key][0]} {text_of(self[key][1])}"
            for key in sorted(self)
            if not NOTE.search(key)
        )

    @cached_property
    def text_without_ids(self) -> str:
        """The same text for a world in which nobody will ask who wrote the rows."""
        return ID.sub("", self.text)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sent:
    """A message in a queue."""

    kind: str
    """The kind of job that it starts: submission, wake, request, reply."""
    body: str
    agent: str = ""
    """The agent whose queue delivers a reply."""
    expires: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class World:
    """A state of the exploration."""

    deployed: Deployment
    now: datetime
    faults_left: int
    acts_left: int
    """How many more acts of operators are allowed."""
    operator: tuple[str, ...]
    """The acts of operators, which happen if they are possible."""
    outside: tuple[str, ...] = ()
    """The possible answers of people to each step that waits for them."""
    order_id: str
    """The id of the order, or of the first order."""
    others: tuple[str, ...] = ()
    """The ids of the other orders."""
    shared: bool = False
    """Whether the bucket holds more than one order."""
    rows: Rows = field(default_factory=Rows)
    queue: tuple[Sent, ...] = ()
    handlers: Mapping[str, Handler] = field(default_factory=dict)
    beliefs: Mapping[str, Admission] = field(default_factory=dict)
    """The beliefs of the processes, in worlds in which beliefs outlive an event."""
    memories: Mapping[str, tuple[OrderAggregate, ...]] = field(default_factory=dict)
    """The orders that the processes remember, in worlds in which memory outlives an event."""
    lease: tuple[str, datetime] | None = None
    effects: frozenset[str] = frozenset()
    """The effects at the services: `<idempotency key> do`, `<idempotency key> undo`."""
    published: frozenset[str] = frozenset()
    """The ids of published events about ends."""
    received_notices: frozenset[str] = frozenset()
    """The notifications that the sender has received."""
    poison: frozenset[str] = frozenset()
    only: tuple[str, ...] = ()
    """Texts of the labels of allowed faults. Empty if all faults are allowed."""
    late: tuple[tuple[str, datetime], ...] = ()
    """The calls that nobody waits for, by key, with the time until which they may take effect."""
    may_open: frozenset[str] = frozenset()
    """The agents or instances whose circuits may open."""
    open: frozenset[str] = frozenset()
    """The agents or instances whose circuits are open."""
    paused: frozenset[str] = frozenset()
    """The agents that an operator has paused."""
    away: frozenset[str] = frozenset()
    """The agents that take no requests until somebody starts them again."""
    silence: tuple[AgentHealth, ...] = ()
    """The records of silent agents."""
    reported: tuple[tuple[str, datetime], ...] = ()
    """The last report of each agent, in worlds with silent agents."""
    broken: frozenset[str] = frozenset()
    """The instances whose circuits never close again."""
    begun: tuple[str, ...] = ()
    """The requests that agents have reported as begun."""
    faults: frozenset[ReportedFault] = frozenset()
    """The faults of running attempts that agents have reported."""
    served: frozenset[tuple[str, str]] = frozenset()
    """The provider that has served each idempotency key, if there are several providers."""
    refused: frozenset[str] = frozenset()
    """The idempotency keys that services refuse from now on, if they remember refusals."""
    accepted: frozenset[str] = frozenset()
    """The calls that services have deferred, in the form of `effects`."""
    linked: tuple[tuple[str, str], ...] = ()
    """The callback token of each idempotency key whose call a service may answer later."""
    declined: frozenset[str] = frozenset()
    """The keys in `linked` that a service has refused at its callback URL, and got no call for
    since."""
    known: tuple[tuple[str, datetime], ...] = ()
    """The keys that services have received, with the times until which they know them."""
    to_come: tuple["Sent", ...] = ()
    """The orders that may still be submitted."""
    copied: tuple[datetime, Rows] | None = None
    """The copy of the order: its time and its rows."""
    restored: bool = False
    """Whether the store was lost and the order restored."""
    landing: tuple[Transition, ...] = ()
    """Writes that were given up by their callers and may still arrive at the store."""
    landed: frozenset[str] = frozenset()
    """The orders whose last write arrived late, in worlds in which slots matter."""
    ids: int = 0

    def but(self, **changes: Any) -> "World":
        # Like `dataclasses.replace`, which takes three times as long.
        world = object.__new__(World)
        world.__dict__.update(self.__dict__, **changes)
        return world

    def at(self, later: datetime) -> "World":
        """Return the world at a later time.

        Messages, leases and late calls that have expired are removed.
        """
        queue = tuple(sent for sent in self.queue if sent.expires is None or sent.expires > later)
        lease = self.lease if self.lease and self.lease[1] > later else None
        late = tuple(call for call in self.late if call[1] > later)
        return self.but(now=later, queue=queue, lease=lease, late=late)

    def may_fail(self, label: str) -> bool:
        """Whether the fault with this label is allowed."""
        return not self.only or any(part in label for part in self.only)

    def about(self, order_id: str) -> "World":
        """Return the world for one order alone."""
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
        """Yield the world for each order alone."""
        return map(self.about, (self.order_id, *self.others))

    def store(self) -> MemoryStateStore:
        """Return a state store for reading. A writer takes its new rows from it."""
        return self.rows.store(self.order_id)

    def order(self) -> OrderAggregate | None:
        return self.rows.order

    def history(self) -> list[HistoryEntry]:
        return self.rows.history

    def work_items(self) -> dict[str, IndexRow]:
        """Return the open work items, by row key."""
        return self.rows.work_items

    def recorded(self) -> bool:
        return order_key(self.order_id) in self.rows

    def _copy(self) -> str:
        """Return a text that distinguishes the copy from others."""
        return f"{self.copied[0]} {self.copied[1].text_without_ids}" if self.copied else ""

    def _tokens(self) -> list[list[str | None]]:
        """Return the tokens of all orders' callback URLs, if services answer with them."""
        called_back = self.deployed.called_back
        return [tokens_in(part.order()) for part in self.parts()] if called_back else []

    def with_handler(self, handler: Handler) -> "World":
        """Return the world in which this handler has its present position."""
        return self.but(handlers={**self.handlers, handler.slot: handler})

    def believing(self, slot: str, belief: Admission | None) -> "World":
        """Return the world in which this process has this belief, or none after a crash."""
        others = {name: other for name, other in self.beliefs.items() if name != slot}
        return self.but(beliefs={**others, slot: belief} if belief else others)

    def remembering(self, slot: str, orders: tuple[OrderAggregate, ...]) -> "World":
        """Return a world in which this process remembers exactly these orders.

        After a crash, the process remembers none.
        """
        if not orders and slot not in self.memories:
            return self
        others = {name: kept for name, kept in self.memories.items() if name != slot}
        return self.but(memories={**others, slot: orders} if orders else others)

    def crashed(self, slot: str) -> "World":
        """Return the world in which this process has crashed, and has no belief and no memory."""
        return self.without_handler(slot).believing(slot, None).remembering(slot, ())

    def saying(self, begun: Collection[str]) -> "World":
        """Return the world in which the agents have reported these requests as begun.

        Reports about attempts that are not running are left out.
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
        """Return the world in which this slot is idle."""
        return self.but(
            handlers={name: handler for name, handler in self.handlers.items() if name != slot}
        )

    def with_messages(self, messages: Collection[Sent]) -> "World":
        """Return the world with more messages. Their order does not matter."""
        return self.but(
            queue=tuple(sorted([*self.queue, *messages], key=lambda sent: (sent.kind, sent.body)))
        )

    def without_message(self, message: Sent) -> "World":
        """Return the world with one message less."""
        rest = list(self.queue)
        rest.remove(message)
        return self.but(queue=tuple(rest))

    def key(self) -> bytes:
        """Return a digest that distinguishes this state from others."""
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
    """Return the callback tokens of an order, which its text does not show."""
    return [step.callback_token for step in order.steps] if order else []


NOTE = re.compile(r"\|history\|\d+\|")

ID = re.compile(r"~\d+~")


def _with_canonical_ids(rest: str, rows: Rows) -> str:
    """Number the ids that somebody may still ask about by their position, and remove the others.

    An id that occurs only in rows was drawn by a handler that has ended.
    """
    live = {found: f"~{place}~" for place, found in enumerate(dict.fromkeys(ID.findall(rest)))}
    if not live:
        return f"{rest}\n--\n{rows.text_without_ids}"
    return ID.sub(lambda found: live.get(found[0], ""), f"{rest}\n--\n{rows.text}")


def _with_canonical_names(text: str, alike: Sequence[tuple[str, str]]) -> str:
    """Name interchangeable instances by their position in the text."""
    for one, other in alike:
        if other in text.partition(one)[0]:
            text = text.replace(one, "\0").replace(other, one).replace("\0", other)
    return text


def _handler_text(handler: Handler) -> tuple[str, str, str]:
    log = " ".join(text_of(answer) for answer in handler.log)
    return handler.slot[:-1], f"{text_of(handler.job)} {log} {handler.since}", handler.slot


PARSED_UTC = re.compile(r"TzInfo\((?:0|UTC)\)")
"""pydantic's text for the zone UTC, which means the same as Python's."""

_texts: dict[int, tuple[Any, str]] = {}


def text_of(value: Any) -> str:
    # Cached, because most parts of a state come from the state before it.
    known = _texts.get(id(value))
    if known is None or known[0] is not value:
        known = _texts[id(value)] = (value, PARSED_UTC.sub(repr(UTC), repr(value)))
    return known[1]


def forget_texts() -> None:
    """Clear the cache."""
    _texts.clear()
