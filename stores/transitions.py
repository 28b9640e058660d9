"""The one way in which an order changes: load, decide, commit, send."""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

from core.changes import Change, Decision, Note
from core.errors import (
    AppError,
    ConflictError,
    NotSentError,
    QueueRefusedError,
    UnavailableError,
    UnknownOrderError,
)
from core.messages import SCHEDULER_REQUESTS
from core.orders import ENDED, Snapshot, StepState
from core.ports import Bus, Clock, NewId
from core.unsent import put_back
from stores.orders import OrderStore

log = logging.getLogger(__name__)

Decide = Callable[[Snapshot, datetime], Decision]

MAX_CONFLICTS = 20
"""Each conflict means that somebody else made progress, so this many in a row point to a fault."""

REACH_PAUSE = timedelta(seconds=2)
"""Between two questions whether the bus is back."""

MAX_REMEMBERED = 2_000
"""Several times what a scheduler has open at its agents. An order of four steps takes about 6 KB, so this is 12 MB."""


class Remembered:
    """The orders that a process wrote or read last, at most so many: to decide on one of them saves a read.

    What is remembered may be out of date, so it proves nothing: it is believed only as far as a change that was decided
    on it could be written under its ETag. Of more orders, those are forgotten that were kept longest ago.
    """

    def __init__(self, most: int = MAX_REMEMBERED) -> None:
        self._most = most
        self._orders: dict[str, Snapshot] = {}

    def keep(self, order: Snapshot) -> None:
        """Remember the order in the place of what was known of it; not one that has ended, which nobody handles."""
        self.take(order.order_id)
        if order.state.process_state in ENDED:
            return
        self._orders[order.order_id] = order
        if len(self._orders) > self._most:
            del self._orders[next(iter(self._orders))]

    def take(self, order_id: str) -> Snapshot | None:
        """Return the order, and forget it: whoever finds out how it stands now keeps that."""
        return self._orders.pop(order_id, None)

    def look(self, order_id: str) -> Snapshot | None:
        """Return the order as it was when it was kept; None if it is not remembered."""
        return self._orders.get(order_id)


class Reach:
    """What one process knows of the bus: it is there until something could not be sent, and then once it answers."""

    def __init__(self, bus: Bus, clock: Clock) -> None:
        self._bus = bus
        self._clock = clock
        self._ask_at: datetime | None = None
        """When to ask again; None while the bus is there."""

    def lost(self) -> None:
        """Note that something could not be sent."""
        self._ask_at = self._clock() + REACH_PAUSE

    async def is_there(self) -> bool:
        """Whether requests would go out now; of all who want to know, one asks the bus at a time."""
        if self._ask_at is None:
            return True
        if self._clock() < self._ask_at:
            return False
        self.lost()
        try:
            await self._bus.probe([SCHEDULER_REQUESTS])
        except UnavailableError:
            return False
        self._ask_at = None
        return True


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
        self.reach = Reach(bus, clock)
        self.count: Callable[[Change], None] = lambda _: None
        """Is told of each change that was written."""

    def _count(self, change: Change) -> None:
        """Figures are for looking at: whatever is wrong with them, what was committed goes out."""
        try:
            self.count(change)
        except Exception:
            log.exception("order.not_counted", extra={"order_id": change.after.order_id})

    async def apply(self, order_id: str, decide: Decide) -> Decision:
        """Change the order as `decide` says, anew on what others wrote if they were first.

        Returns what was done. Raises `UnknownOrderError`, `UnavailableError`, and whatever `decide` raises.
        """
        if change := await self._apply_to_remembered(order_id, decide):
            return change
        for _ in range(MAX_CONFLICTS):
            snapshot = await self._load(order_id)
            decision = decide(snapshot, self.clock())
            if await self.carry_out(decision):
                return decision
        raise ConflictError(f"order {order_id} changed under {MAX_CONFLICTS} attempts in a row")

    async def _apply_to_remembered(self, order_id: str, decide: Decide) -> Change | None:
        """Decide on the order as it was written or read last, which saves a read.

        Only a change counts: its write fails if the order has moved on meanwhile. "Nothing to do", a note and a refusal
        would not, so for these the order has to be read.
        """
        snapshot = self.remembered.take(order_id)
        try:
            decision = decide(snapshot, self.clock()) if snapshot else None
        except AppError:
            return None
        return decision if isinstance(decision, Change) and await self.carry_out(decision) else None

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
        """Send what the change owes. What may not have arrived is found later by the poll, or by the supervisor."""
        if not change.messages:
            return
        try:
            await self._bus.send(change.messages)
        except UnavailableError as error:
            log.warning("transition.unsent", extra={"order_id": change.after.order_id, "why": str(error)})
            if not isinstance(error, QueueRefusedError):
                self.reach.lost()
                await self._put_back(change, certain=isinstance(error, NotSentError))

    async def _put_back(self, change: Change, *, certain: bool) -> None:
        """Let the steps wait whose requests the bus has not taken; if even that fails, they time out."""
        order, unsent = change.after, {message.message_id for message in change.messages}
        decide = partial(put_back, unsent=unsent, actor=change.entry.actor, certain=certain)
        try:
            if decide(order, now=self.clock()):
                await self.apply(order.order_id, lambda order, now: decide(order, now=now))
        except AppError as error:
            log.warning("transition.not_put_back", extra={"order_id": order.order_id, "why": str(error)})

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
