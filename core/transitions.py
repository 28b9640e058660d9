"""The one way in which an order changes: load, decide, commit, send."""

import logging
from collections.abc import Callable
from datetime import datetime
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
from core.orders import Snapshot, StepState
from core.ports import Bus, Clock, NewId, StateStore
from core.reach import Reach
from core.remembered import Remembered
from core.unsent import put_back

log = logging.getLogger(__name__)

Decide = Callable[[Snapshot, datetime], Decision]

MOST_CONFLICTS = 20
"""Each conflict means that somebody else made progress, so this many in a row point to a fault."""


def _in_brief(change: Change) -> dict[str, object]:
    """Return what telemetry shows of a change: no detail, which may be an operator's words or a service's."""
    after = change.after
    return {
        "order_id": after.order_id,
        "event": change.entry.event,
        "state": str(after.state.process_state),
        "steps": {step.name: str(step.state) for step in change.changed_steps()},
        "seconds": _seconds(change),
    }


def _seconds(change: Change) -> dict[str, float]:
    """Return how long the steps took that are done or undone now: their last attempt, from its start to its answer."""
    done = {step.name for step in change.after.in_state(StepState.COMPLETED, StepState.UNDONE)}
    ended = (step for step in (change.before.running() if change.before else ()) if step.name in done)
    return {
        step.name: (change.entry.at - step.complete_by + step.allowance).total_seconds()
        for step in ended
        if step.complete_by
    }


class Transitions:
    """Runs decisions against the state store. Whoever changes an order does it through here."""

    def __init__(
        self, store: StateStore, bus: Bus, clock: Clock, new_id: NewId, remembered: Remembered | None = None
    ) -> None:
        self._store = store
        self._bus = bus
        self._clock = clock
        self._new_id = new_id
        self._remembered = remembered or Remembered()
        self.reach = Reach(bus, clock)

    def last_known(self, order_id: str) -> Snapshot | None:
        """Return the order as this process wrote or read it last, a hint at best; None if it did neither lately."""
        return self._remembered.look(order_id)

    async def apply(self, order_id: str, decide: Decide) -> Decision:
        """Change the order as `decide` says, anew on what others wrote if they were first.

        Returns what was done. Raises `UnknownOrderError`, `UnavailableError`, and whatever `decide` raises.
        """
        if change := await self._apply_to_remembered(order_id, decide):
            return change
        for _ in range(MOST_CONFLICTS):
            snapshot = await self._load(order_id)
            decision = decide(snapshot, self._clock())
            if await self.carry_out(decision):
                return decision
        raise ConflictError(f"order {order_id} changed under {MOST_CONFLICTS} attempts in a row")

    async def _apply_to_remembered(self, order_id: str, decide: Decide) -> Change | None:
        """Decide on the order as it was written or read last, which saves a read.

        Only a change counts: its write fails if the order has moved on meanwhile. "Nothing to do", a note and a refusal
        would not, so for these the order has to be read.
        """
        snapshot = self._remembered.take(order_id)
        try:
            decision = decide(snapshot, self._clock()) if snapshot else None
        except AppError:
            return None
        return decision if isinstance(decision, Change) and await self.carry_out(decision) else None

    async def _load(self, order_id: str) -> Snapshot:
        snapshot = await self._store.load(order_id)
        if snapshot is None:
            raise UnknownOrderError(f"no order {order_id} is recorded")
        self._remembered.keep(snapshot)
        return snapshot

    async def carry_out(self, decision: Decision) -> bool:
        """Write and send what was decided; False if another writer was first and nothing was written."""
        match decision:
            case Change():
                change = decision.identified(self._new_id())
                if not await self._commit(change):
                    return False
                log.info("order.changed", extra=_in_brief(change))
                await self._send(change)
            case Note():
                await self._store.note(decision)
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
            if decide(order, now=self._clock()):
                await self.apply(order.order_id, lambda order, now: decide(order, now=now))
        except AppError as error:
            log.warning("transition.not_put_back", extra={"order_id": order.order_id, "why": str(error)})

    async def _commit(self, change: Change) -> bool:
        """Write the change and remember the order; False if another writer was first."""
        order_id = change.after.order_id
        self._remembered.take(order_id)  # until its new ETag is known
        try:
            self._remembered.keep(await self._store.commit(change))
        except (ConflictError, UnavailableError) as error:
            # The answer may have been lost on the way although the write went through; the history knows.
            if await self._store.committed(change):
                return True
            if isinstance(error, UnavailableError):
                raise
            log.debug("transition.conflict", extra={"order_id": order_id})
            return False
        return True
