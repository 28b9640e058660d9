"""Records the orders in submission messages."""

# The pattern in an hour, 5 of 23: one message, one order

import logging
from dataclasses import dataclass, replace
from datetime import timedelta

from engine.declarations.workflow import WorkflowDefinition
from engine.domain.errors import InvalidError, OtherVersionError, UnavailableError, UnknownNameError
from engine.domain.keys import spread_over
from engine.domain.messages import Submission
from engine.ports import Slowdown, TextQueue
from engine.storage.poison import Arrival, PoisonStore
from engine.storage.unit_of_work import UnitOfWork
from submission import rules
from submission.rules import Terms

log = logging.getLogger(__name__)

QUEUE = "order-submissions"


@dataclass(frozen=True, kw_only=True)
class SubmissionService:
    """Turns each message into exactly one recorded order, or keeps it as poison with its reason."""

    unit_of_work: UnitOfWork
    poison: PoisonStore
    terms: Terms
    slowdown: Slowdown
    instance: str
    unknown_name_max_deliveries: int
    """The most deliveries of a message whose names only a newer version may know (FLT-12)."""
    queue: TextQueue
    version_overlap: timedelta
    """How long after its placement an order of a newer version is left to newer hosts."""

    def read(self, body: bytes) -> tuple[Submission, WorkflowDefinition]:
        """Return a message and its workflow. Raises `InvalidError` with all faults."""
        return rules.read(body, self.terms)

    async def record(self, body: bytes, arrival: Arrival | None = None, delivery: int = 1) -> None:
        """Record the order in a message, or keep the message as poison.

        `delivery` is the number of deliveries, including this one. The alert contains the time of
        arrival, so there is one alert however often the message is handled.

        Raises `UnavailableError` if the message should be delivered again, and `UnknownNameError`
        if a newer host should receive it.
        """
        arrival = arrival or Arrival(at=self.unit_of_work.clock())
        try:
            message, workflow = self.read(body)
        except InvalidError as fault:
            if isinstance(fault, OtherVersionError) and await self._left_to_newer(body, fault):
                return
            if isinstance(fault, UnknownNameError) and delivery < self.unknown_name_max_deliveries:
                raise
            await self._reject(body, fault, arrival)
            return
        actor = f"submission/{self.instance}"
        defaults = self.terms.defaults
        slower = replace(defaults, timeout=defaults.timeout * self.slowdown())
        terms = replace(self.terms, defaults=slower)
        transition = rules.new_order(message, workflow, terms, self.unit_of_work.clock(), actor)
        if await self.unit_of_work.commit(transition):
            log.info("submission.recorded", extra={"order_id": message.order_id})
            return
        existing = await self.unit_of_work.store.load(message.order_id)
        if existing is None:
            raise UnavailableError("the order was refused as if it were there, and is not")
        if not rules.same_submission(existing, transition.after, self.terms.payload):
            now = self.unit_of_work.clock()
            await self.unit_of_work.commit(rules.refusal_of(existing, body, arrival.at, now, actor))
            await self.poison.put(QUEUE, body, rules.OTHER_CONTENT, arrival)

    async def _left_to_newer(self, body: bytes, fault: OtherVersionError) -> bool:
        """Return the message to its queue with a pause. Return False if it is too old for that.

        Afterwards the host removes the received copy. A crash in between leaves two copies, which
        make one order.
        """
        pause = rules.pause_of_newer(body, self.unit_of_work.clock(), self.version_overlap)
        if pause is None:
            return False
        await self.queue.put(body.decode(), pause)
        log.warning(
            "submission.left_to_newer",
            extra={"reason": str(fault), "seconds": pause.total_seconds()},
        )
        return True

    async def _reject(self, body: bytes, fault: InvalidError, arrival: Arrival) -> None:
        """Alert the operators, then keep the message. A crash in between repeats both."""
        log.warning("submission.rejected", extra={"reason": str(fault)})
        store = self.unit_of_work.store
        rejection = rules.rejection_of(body, fault, arrival.at)
        await store.announce(spread_over(store.buckets, rejection.event_id), rejection)
        await self.poison.put(QUEUE, body, rules.invalid(fault), arrival)
