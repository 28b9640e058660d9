"""The unit of work, the only way to change an order: load, decide, commit, send."""

# The pattern in an hour, 8 of 23: load, decide, commit, send

import logging
from collections.abc import Awaitable, Callable
from datetime import datetime

from engine.decisions.transitions import Decision, Note, Transition
from engine.domain.errors import ConflictError, UnavailableError, UnknownOrderError
from engine.domain.history import name_of
from engine.domain.orders import OrderAggregate
from engine.domain.states import Completed, Undone
from engine.ports import Bus, Clock, NewId
from engine.storage.order_memory import OrderMemory
from engine.storage.orders import OrderStore

log = logging.getLogger(__name__)

Decide = Callable[[OrderAggregate, datetime], Decision]
"""Decides on a change. It must be a pure function, because it may be called several times."""

Intend = Callable[[OrderAggregate, Decision], Awaitable[None]]
"""Gets each decision, and the order on which it was made, before the decision is written."""

MAX_CONFLICTS = 20
"""Each conflict means that another writer made progress, so this many in a row point to a fault."""


def _in_brief(transition: Transition) -> dict[str, object]:
    """Return a summary of a transition for telemetry, without texts of operators or services."""
    after, ended = transition.after, transition.ended
    changed = {step.name: str(step.pattern_state) for step in transition.changed_steps()}
    return {
        "order_id": after.order_id,
        "event": transition.entry.event,
        "state": str(after.process_state),
        "ended": name_of(ended) if ended else None,
        "alert": after.status_info.alert if ended else None,
        "steps": changed,
        "seconds": transition.seconds(Completed, Undone),
    }


class UnitOfWork:
    """Runs decisions against the state store. Every change of an order uses it."""

    def __init__(
        self,
        store: OrderStore,
        bus: Bus,
        clock: Clock,
        new_id: NewId,
        count: Callable[[Transition], None] = lambda _: None,
    ) -> None:
        self.store = store
        self._bus = bus
        self.clock = clock
        self._new_id = new_id
        self._count = count
        """Called with each committed transition."""
        self.memory = OrderMemory()

    def _counted(self, transition: Transition) -> None:
        """Count the transition.

        An error is logged, because figures must not stop a committed change.
        """
        try:
            self._count(transition)
        except Exception:
            log.exception("order.not_counted", extra={"order_id": transition.after.order_id})

    async def run(
        self,
        order_id: str,
        decide: Decide,
        intend: Intend | None = None,
        *,
        from_memory: bool = False,
    ) -> Decision:
        """Change the order by `decide`. Decide again if another writer was first.

        With `from_memory`, the order may come from this process's memory, so `intend` may see
        outdated data. Returns the decision that was carried out.

        Raises `UnknownOrderError`, `UnavailableError`, `ConflictError` after `MAX_CONFLICTS`
        conflicts, and all errors of `decide`.
        """
        for _ in range(MAX_CONFLICTS):
            remembered = self.memory.take(order_id) if from_memory else None
            order, decision = (remembered and self._changed(remembered, decide)) or (
                await self._stored(order_id, decide)
            )
            if intend:
                await intend(order, decision)
            if await self.commit(decision):
                return decision
        raise ConflictError(f"order {order_id} changed under {MAX_CONFLICTS} attempts in a row")

    def _changed(
        self, order: OrderAggregate, decide: Decide
    ) -> tuple[OrderAggregate, Decision] | None:
        """Decide on a remembered order. None if nothing would be written, or the decision fails.

        In both cases the result may be different with the stored order.
        """
        try:
            decision = decide(order, self.clock())
        except Exception:  # noqa: BLE001 - if it fails with what is stored too, that is raised
            return None
        return (order, decision) if isinstance(decision, Transition) else None

    async def _stored(self, order_id: str, decide: Decide) -> tuple[OrderAggregate, Decision]:
        order = await self.store.load(order_id)
        if order is None:
            raise UnknownOrderError(f"no order {order_id} is recorded")
        return order, decide(order, self.clock())

    async def commit(self, decision: Decision) -> bool:
        """Write a decision and send its messages. Return False if another writer was first."""
        match decision:
            case Transition():
                transition = decision.identified(self._new_id())
                if not await self._write(transition):
                    return False
                log.info("order.changed", extra=_in_brief(transition))
                self._counted(transition)
                await self._send(transition)
            case Note():
                await self.store.note(decision)
        return True

    async def _send(self, transition: Transition) -> None:
        """Send the messages of a transition.

        A message that does not arrive is made up for later: the poll finds a pending order, and the
        supervisor finds an unanswered request when its time is up.
        """
        if not transition.messages:
            return
        try:
            await self._bus.send(transition.messages)
        except UnavailableError as error:
            log.warning(
                "transition.unsent",
                extra={"order_id": transition.after.order_id, "why": str(error)},
            )

    async def _write(self, transition: Transition) -> bool:
        """Write the transition. Return False if another writer was first."""
        try:
            self.memory.put(await self.store.commit(transition))
        except (ConflictError, UnavailableError) as error:
            # The answer may have been lost although the write went through: the history shows it.
            if await self.store.committed(transition):
                return True
            if isinstance(error, UnavailableError):
                raise
            log.debug("transition.conflict", extra={"order_id": transition.after.order_id})
            return False
        return True
