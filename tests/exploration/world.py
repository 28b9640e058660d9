"""The state of a small world: stored rows, messages on their way, handlers that have begun, the time, the lease.

A world is never changed: what happens makes a new one. It is compared by its `key`, in which nothing stands that
cannot make a difference, such as the change ids of writes that nobody will ask about again.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from hashlib import blake2b
from typing import Any

from adapters.memory import MemoryStateStore
from adapters.writes import snapshot_of
from core.agenda import AgendaRow
from core.changes import Change, HistoryEntry
from core.keys import bucket_of, order_key, state_key
from core.orders import Order, OrderState, Snapshot, Step
from exploration.driving import Handler

Rows = Mapping[str, tuple[int, Any]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Sent:
    """A message in a queue."""

    kind: str
    """Which job it starts: submission, wake, request, reply."""
    body: str
    correlation: str = ""
    expires: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class World:
    """One state."""

    now: datetime
    faults_left: int
    acts_left: int
    """How often the operator may still do something."""
    operator: tuple[str, ...]
    """What the operator does, where it makes sense."""
    order_id: str
    rows: Rows = field(default_factory=dict)
    queue: tuple[Sent, ...] = ()
    handlers: Mapping[str, Handler] = field(default_factory=dict)
    lease: tuple[str, datetime] | None = None
    effects: frozenset[str] = frozenset()
    """What has happened at the remote services: `<idempotency key> do`, `<idempotency key> undo`."""
    published: frozenset[str] = frozenset()
    """Ids of the events that Event Grid has taken."""
    poison: frozenset[str] = frozenset()
    may_open: frozenset[str] = frozenset()
    """The agents whose circuits may open."""
    open: frozenset[str] = frozenset()
    """The agents whose circuits are open."""
    landing: tuple[Change, ...] = ()
    """Writes whose callers have given them up, and that may still arrive at the store."""
    ids: int = 0

    def store(self) -> MemoryStateStore:
        """The state store, to read from; whoever writes takes its rows from there."""
        store = MemoryStateStore()
        store.rows = {bucket_of(self.order_id): self.rows}  # type: ignore[dict-item]
        return store

    def order(self) -> Snapshot | None:
        """The order as it is stored."""
        kinds = (Order, OrderState, Step)
        found = ((key, record, str(count)) for key, (count, record) in self.rows.items() if isinstance(record, kinds))
        return snapshot_of(found)

    def state(self) -> OrderState | None:
        """The state record."""
        found = self.rows.get(state_key(self.order_id))
        return found[1] if found else None

    def history(self) -> list[HistoryEntry]:
        """Every entry, oldest first."""
        return [self.rows[key][1] for key in sorted(self.rows) if isinstance(self.rows[key][1], HistoryEntry)]

    def agenda(self) -> dict[str, AgendaRow]:
        """Open obligations by row key."""
        return {key: record for key, (_, record) in self.rows.items() if isinstance(record, AgendaRow)}

    def recorded(self) -> bool:
        """Whether the order is recorded."""
        return order_key(self.order_id) in self.rows

    def with_handler(self, handler: Handler) -> "World":
        """The world in which this handler stands where it stands now."""
        return replace(self, handlers={**self.handlers, handler.slot: handler})

    def without_handler(self, slot: str) -> "World":
        """The world in which this slot is idle."""
        return replace(self, handlers={name: each for name, each in self.handlers.items() if name != slot})

    def with_messages(self, messages: Iterable[Sent]) -> "World":
        """The world with more messages on their way; their order means nothing."""
        return replace(self, queue=tuple(sorted([*self.queue, *messages], key=lambda sent: (sent.kind, sent.body))))

    def without_message(self, message: Sent) -> "World":
        """The world with one message less."""
        rest = list(self.queue)
        rest.remove(message)
        return replace(self, queue=tuple(rest))

    def _acted_on(self) -> list[tuple[str, tuple[int, Any]]]:
        """The rows that can make a difference: nobody acts on a note."""
        return [(key, self.rows[key]) for key in sorted(self.rows) if not NOTE.search(key)]

    def key(self) -> bytes:
        """What tells this state from others."""
        text = "\n".join(
            (
                f"{self.now} {self.faults_left} {self.acts_left} {self.lease}",
                *(f"{key} {count} {_text(row)}" for key, (count, row) in self._acted_on()),
                "--",
                *(_text(sent) for sent in self.queue),
                *(_handler_text(self.handlers[slot]) for slot in sorted(self.handlers)),
                f"{sorted(self.effects)} {sorted(self.published)} {sorted(self.poison)} {sorted(self.open)}",
                *(_text(change) for change in self.landing),
            )
        )
        return blake2b(_with_canonical_ids(text).encode(), digest_size=16).digest()


NOTE = re.compile(r"\|history\|\d+\|")

ID = re.compile(r"~\d+~")


def _with_canonical_ids(text: str) -> str:
    """Number the ids that somebody may still ask about by where they occur, and blank the others.

    Rows come first: an id that occurs in them only was drawn by a handler that has ended.
    """
    stored, _, rest = text.partition("\n--\n")
    live = {found: f"~{place}" for place, found in enumerate(dict.fromkeys(ID.findall(rest)))}
    return ID.sub(lambda found: live.get(found[0], ""), text) if live else ID.sub("", stored) + rest


def _handler_text(handler: Handler) -> str:
    log = " ".join(_text(answer) for answer in handler.log)
    return f"{handler.slot} {_text(handler.job)} {log} {handler.since}"


_texts: dict[int, tuple[Any, str]] = {}


def forget() -> None:
    """Let go of what was remembered of other worlds."""
    _texts.clear()


def _text(value: Any) -> str:
    """What a value says, remembered: most of what a state consists of, the state before it had too."""
    known = _texts.get(id(value))
    if known is None or known[0] is not value:
        known = _texts[id(value)] = (value, repr(value))
    return known[1]
