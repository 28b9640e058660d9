"""The one way in which an order changes: load, decide, commit, send."""

import logging
from collections.abc import Callable
from datetime import datetime

from core.changes import Change, Decision, Note
from core.errors import (
    AppError,
    ConflictError,
    UnavailableError,
    UnknownOrderError,
)
from core.life import ENDED, StepState
from core.orders import Snapshot
from core.ports import Bus, Clock, NewId
from stores.orders import OrderStore

log = logging.getLogger(__name__)

Decide = Callable[[Snapshot, datetime], Decision]
"""Pure: it may be asked several times."""

Intend = Callable[[Snapshot, Decision], None]
"""Is told of each decision, and of what it was made on, before it is written."""

MAX_CONFLICTS = 20
"""Each conflict means that somebody else made progress, so this many in a row point to a fault."""

MOST_CHARACTERS = 8_000_000
"""Of the orders that a process remembers: up to 60 MB, for several times what a scheduler usually has open."""
OF_A_STEP = 300
"""Characters that a step counts for without its result."""


def characters_of(order: Snapshot) -> int:
    """Return about how many characters an order has; each takes up to seven bytes, as an object among others."""
    of_others = (order.order.payload, order.order.more, order.state.more)
    of_steps = ((step.result, step.more) for step in order.steps)
    return sum(len(str(each)) for each in (*of_others, *of_steps)) + OF_A_STEP * len(order.steps)


class Remembered:
    """The orders that a process wrote or read last, up to so many characters: to decide on one of them saves a read.

    What is remembered is used like what is loaded. Only a change that could be written under its ETag proves that it
    was not out of date; after anything else the order is loaded. Those are forgotten that were kept longest ago.
    """

    def __init__(self, most: int = MOST_CHARACTERS) -> None:
        self._room = most
        self._orders: dict[str, tuple[Snapshot, int]] = {}

    def keep(self, order: Snapshot) -> None:
        """Remember the order in the place of what was known of it; not one that has ended, which nobody handles."""
        self.take(order.order_id)
        if order.state.process_state in ENDED:
            return
        characters = characters_of(order)
        self._orders[order.order_id] = order, characters
        self._room -= characters
        while self._room < 0:
            self.take(next(iter(self._orders)))

    def take(self, order_id: str) -> Snapshot | None:
        """Return the order, and forget it: whoever finds out how it stands now keeps that."""
        order, characters = self._orders.pop(order_id, (None, 0))
        self._room += characters
        return order

    def look(self, order_id: str) -> Snapshot | None:
        """Return the order as it was when it was kept; None if it is not remembered."""
        return self._orders.get(order_id, (None, 0))[0]


def _in_brief(change: Change) -> dict[str, object]:
    """Return what telemetry shows of a change: no detail, which may be an operator's words or a service's."""
    after = change.after
    return {
        "order_id": after.order_id,
        "event": change.entry.event,
        "state": str(after.state.process_state),
        "steps": {step.name: str(step.state) for step in change.changed_steps()},
        "seconds": change.seconds(StepState.COMPLETED, StepState.UNDONE),
    }


class Transitions:
    """Runs decisions against the state store. Whoever changes an order does it through here."""

    def __init__(
        self, store: OrderStore, bus: Bus, clock: Clock, new_id: NewId, remembered: Remembered | None = None
    ) -> None:
        self.store = store
        self._bus = bus
        self.clock = clock
        self._new_id = new_id
        self.remembered = remembered or Remembered()
        self.count: Callable[[Change], None] = lambda _: None
        """Is told of each change that was written."""

    def _count(self, change: Change) -> None:
        """Figures are for looking at: whatever is wrong with them, what was committed goes out."""
        try:
            self.count(change)
        except Exception:
            log.exception("order.not_counted", extra={"order_id": change.after.order_id})

    async def apply(self, order_id: str, decide: Decide, intend: Intend = lambda *_: None) -> Decision:
        """Change the order as `decide` says, anew on what others wrote if they were first.

        Returns what was done. Raises `UnknownOrderError`, `UnavailableError`, and whatever `decide` raises.
        """
        if change := await self._apply_to_remembered(order_id, decide, intend):
            return change
        for _ in range(MAX_CONFLICTS):
            snapshot = await self._load(order_id)
            decision = decide(snapshot, self.clock())
            intend(snapshot, decision)
            if await self.carry_out(decision):
                return decision
        raise ConflictError(f"order {order_id} changed under {MAX_CONFLICTS} attempts in a row")

    async def _apply_to_remembered(self, order_id: str, decide: Decide, intend: Intend) -> Change | None:
        """Decide on the order as it was written or read last, which saves a read.

        Only a change counts: its write fails if the order has moved on meanwhile. "Nothing to do", a note and a refusal
        would not, so for these the order has to be read.
        """
        snapshot = self.remembered.take(order_id)
        if snapshot is None:
            return None
        try:
            decision = decide(snapshot, self.clock())
        except AppError:
            return None
        if not isinstance(decision, Change):
            return None
        intend(snapshot, decision)
        return decision if await self.carry_out(decision) else None

    async def _load(self, order_id: str) -> Snapshot:
        snapshot = await self.store.load(order_id)
        if snapshot is None:
            raise UnknownOrderError(f"no order {order_id} is recorded")
        self.remembered.keep(snapshot)
        return snapshot

    async def carry_out(self, decision: Decision) -> bool:
        """Write and send what was decided; False if another writer was first and nothing was written."""
        match decision:
            case Change():
                change = decision.identified(self._new_id())
                if not await self._commit(change):
                    return False
                log.info("order.changed", extra=_in_brief(change))
                self._count(change)
                await self._send(change)
            case Note():
                await self.store.note(decision)
        return True

    async def _send(self, change: Change) -> None:
        """Send what the change owes.

        What may not have arrived is found later: a wake-up by the poll, a request by the supervisor when its time is
        up.
        """
        if not change.messages:
            return
        try:
            await self._bus.send(change.messages)
        except UnavailableError as error:
            log.warning("transition.unsent", extra={"order_id": change.after.order_id, "why": str(error)})

    async def _commit(self, change: Change) -> bool:
        """Write the change and remember the order; False if another writer was first."""
        order_id = change.after.order_id
        self.remembered.take(order_id)  # until its new ETag is known
        try:
            self.remembered.keep(await self.store.commit(change))
        except (ConflictError, UnavailableError) as error:
            # The answer may have been lost on the way although the write went through; the history knows.
            if await self.store.committed(change):
                return True
            if isinstance(error, UnavailableError):
                raise
            log.debug("transition.conflict", extra={"order_id": order_id})
            return False
        return True
