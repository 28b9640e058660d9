"""Handles a bus message that this version of the app cannot read."""

import logging
from dataclasses import dataclass
from datetime import timedelta

from engine.domain.causes import Cause, Code
from engine.domain.errors import InvalidError, OtherVersionError
from engine.domain.messages import AnyAttempt, BusMessage, decode_queued, schedule_redelivery
from engine.ports import Bus, Clock
from engine.storage.poison import Arrival, PoisonStore

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class ReceivedMessage:
    """A message as it was received from a queue of the bus."""

    queue: str
    body: bytes
    correlation_id: str | None
    arrival: Arrival
    reply_to: str | None = None


@dataclass(frozen=True, kw_only=True)
class UnreadableMessageHandler:
    """Keeps messages as poison, or leaves them to newer hosts while they are valid (FLT-12)."""

    poison: PoisonStore
    bus: Bus
    clock: Clock
    version_overlap: timedelta
    """The longest time for which a message is left to newer hosts."""

    async def settle(self, message: ReceivedMessage, fault: InvalidError) -> None:
        """Return a message of a newer version to its queue, and keep any other one as poison.

        An expired message is kept as poison, too. Raises `UnavailableError` if the message should
        be delivered again.
        """
        again = self._again(message) if isinstance(fault, OtherVersionError) else None
        if again is None:
            why = Cause(Code.MESSAGE_INVALID, {"faults": fault.as_facts()})
            await self.poison.put(
                message.queue, message.body, why, message.arrival, message.correlation_id
            )
            return
        log.warning("bus.left_to_newer", extra={"queue": message.queue, "why": str(fault)})
        await self.bus.send([again])

    def _again(self, message: ReceivedMessage) -> BusMessage | None:
        """Return the message for its queue. None unless it has a complete-by time within limits."""
        now = self.clock()
        try:
            attempt = decode_queued(AnyAttempt, message.body)
        except InvalidError:
            return None
        if attempt.complete_by > now + self.version_overlap:
            return None
        same = BusMessage(
            queue=message.queue,
            message_id=attempt.request_id,
            correlation_id=message.correlation_id or attempt.request_id,
            body=message.body.decode(),
            reply_to=message.reply_to,
        )
        return schedule_redelivery(same, now, attempt.complete_by)
