"""Records submitted orders."""

import logging
from dataclasses import dataclass
from datetime import timedelta

from core.errors import InvalidError, NewerMessageError, UnavailableError, UnknownNameError
from core.keys import spread_over
from core.ports import TextQueue
from stores.poison import Arrival, PoisonStore
from stores.transitions import Transitions
from submission import rules
from submission.rules import Terms

log = logging.getLogger(__name__)

QUEUE = "order-submissions"


@dataclass(frozen=True, kw_only=True)
class SubmissionService:
    """Turns each message into a recorded order, once, or keeps it as poison with its reason."""

    transitions: Transitions
    poison: PoisonStore
    terms: Terms
    instance: str
    unknown_name_tries: int
    """How often a message is delivered that names what only a newer version of the app may know (FLT-12)."""
    queue: TextQueue
    longest_upgrade: timedelta
    """How long after it was placed an order of a newer version is left to newer hosts."""

    async def record(self, body: bytes, arrival: Arrival | None = None, delivery: int = 1) -> None:
        """Handle one message of the queue; `delivery` counts how often it was delivered, this time included.

        Raises `UnavailableError` when it should be delivered again, and `UnknownNameError` when to a newer host.
        Alerts bear the time at which it arrived, so that however often it is handled there is one.
        """
        arrival = arrival or Arrival(at=self.transitions.clock())
        try:
            message, workflow = rules.read(body, self.terms)
        except InvalidError as fault:
            if isinstance(fault, NewerMessageError) and await self._left_to_newer(body, fault):
                return
            if isinstance(fault, UnknownNameError) and delivery < self.unknown_name_tries:
                raise
            await self._reject(body, fault, arrival)
            return
        actor = f"submission/{self.instance}"
        change = rules.new_order(message, workflow, self.terms, self.transitions.clock(), actor)
        if await self.transitions.carry_out(change):
            log.info("submission.recorded", extra={"order_id": message.order_id})
            return
        existing = await self.transitions.store.load(message.order_id)
        if existing is None:
            raise UnavailableError("the order was refused as if it were there, and is not")
        if not rules.same_submission(existing, change.after, self.terms.payload):
            now = self.transitions.clock()
            await self.transitions.carry_out(
                rules.refusal_of(existing, body, arrival.at, now, actor)
            )
            await self.poison.put(QUEUE, body, rules.OTHER_CONTENT, arrival)

    async def _left_to_newer(self, body: bytes, fault: NewerMessageError) -> bool:
        """Put the message on its queue again, to come after a pause; False if it has come for long enough.

        The host removes the one that it has only then: after a crash in between there are two, which make one order.
        """
        pause = rules.pause_of_newer(body, self.transitions.clock(), self.longest_upgrade)
        if pause is None:
            return False
        await self.queue.put(body.decode(), pause)
        log.warning(
            "submission.left_to_newer",
            extra={"reason": str(fault), "seconds": pause.total_seconds()},
        )
        return True

    async def _reject(self, body: bytes, fault: InvalidError, arrival: Arrival) -> None:
        """Tell the operators, then keep the message: a crash in between repeats both, and loses neither."""
        log.warning("submission.rejected", extra={"reason": str(fault)})
        store = self.transitions.store
        rejection = rules.rejection_of(body, fault, arrival.at)
        await store.announce(spread_over(store.buckets, rejection.event_id), rejection)
        await self.poison.put(QUEUE, body, str(fault), arrival)
