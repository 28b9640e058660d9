"""What becomes of a message from the bus that this version of the app cannot read."""

import logging
from dataclasses import dataclass
from datetime import timedelta

from core.errors import InvalidError, NewerMessageError
from core.messages import AnyAttempt, BusMessage, decode, put_off
from core.ports import Bus, Clock
from stores.poison import Arrival, PoisonStore

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Delivered:
    """A message as it came from a queue of the bus."""

    queue: str
    body: bytes
    correlation_id: str | None
    arrival: Arrival
    reply_to: str | None = None


@dataclass(frozen=True, kw_only=True)
class Unread:
    """Keeps messages as poison, or leaves them to newer hosts for as long as they count (FLT-12)."""

    poison: PoisonStore
    bus: Bus
    clock: Clock
    longest_upgrade: timedelta
    """How long a message is left to newer hosts at most."""

    async def settle(self, message: Delivered, fault: InvalidError) -> None:
        """Send a request or a reply of a newer version to its queue again; keep any other, and one whose time is over.

        Raises `UnavailableError` when it should be delivered again.
        """
        again = self._again(message) if isinstance(fault, NewerMessageError) else None
        if again is None:
            await self.poison.put(
                message.queue, message.body, str(fault), message.arrival, message.correlation_id
            )
            return
        log.warning("bus.left_to_newer", extra={"queue": message.queue, "why": str(fault)})
        await self.bus.send([again])

    def _again(self, message: Delivered) -> BusMessage | None:
        """Return the message as it comes again; None if it does not say until when it counts, or that is far off."""
        now = self.clock()
        try:
            attempt = decode(AnyAttempt, message.body)
        except InvalidError:
            return None
        if attempt.complete_by > now + self.longest_upgrade:
            return None
        same = BusMessage(
            queue=message.queue,
            message_id=attempt.request_id,
            correlation_id=message.correlation_id or attempt.request_id,
            body=message.body.decode(),
            reply_to=message.reply_to,
        )
        return put_off(same, now, attempt.complete_by)
