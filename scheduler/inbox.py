"""What becomes of each message to the scheduler.

Wake-ups and replies come in batches, which are settled as one, and only then comes the next. So whatever happens to one
message, those beside it must not come back for it, and those behind it must not wait, not even while the bucket of its
order is away.
"""

import logging
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from core.errors import AppError, InvalidError
from core.messages import SCHEDULER_REQUESTS, AgentReply, WakeUp, decode, responses_queue
from core.poison import Arrival
from core.ports import Bus, Clock, PoisonStore
from entrypoints.functions import through_outages
from scheduler.service import SchedulerService

log = logging.getLogger(__name__)

PAUSE = timedelta(seconds=1)
"""After which a reply comes again at the soonest that could not be acted on."""
LONGEST_PAUSE = timedelta(seconds=30)


@dataclass(frozen=True, kw_only=True)
class Inbox:
    """Handles one message at a time; raises `UnavailableError` only where there is no other way not to lose it."""

    service: SchedulerService
    poison: PoisonStore
    bus: Bus
    clock: Clock

    async def wake(self, function: str, body: bytes, correlation_id: str | None, arrival: Arrival) -> None:
        """Let the scheduler look at an order; what comes to nothing is left to the poll."""
        try:
            wake_up = decode(WakeUp, body)
        except InvalidError as fault:
            keep = partial(self.poison.put, SCHEDULER_REQUESTS, body, str(fault), arrival, correlation_id)
            await through_outages(function, keep)
            return
        try:
            await self.service.wake(wake_up)
        except Exception:
            log.exception("scheduler.wake_up_failed", extra={"order_id": wake_up.order_id})

    async def receive(
        self, function: str, agent: str, body: bytes, correlation_id: str | None, arrival: Arrival
    ) -> None:
        """Let the scheduler act on a reply; if it cannot now, the reply comes again."""
        try:
            reply = _reply(body, correlation_id)
        except InvalidError as fault:
            keep = partial(self.poison.put, responses_queue(agent), body, str(fault), arrival, correlation_id)
            await through_outages(function, keep)
            return
        try:
            await self.service.receive(reply, agent)
        except Exception as why:  # noqa: BLE001 - an order of a newer version, a row that nobody can read, whatever it is
            await self._later(reply, agent, why)

    async def _later(self, reply: AgentReply, agent: str, why: Exception) -> None:
        """Send the reply to its queue again for as long as it counts; then it is dropped, and the step times out."""
        now, about = self.clock(), {"order_id": reply.order_id, "reply": reply.request_id, "why": repr(why)}
        pause = max(PAUSE, min(LONGEST_PAUSE, (reply.complete_by - now) / 10))
        if now + pause >= reply.complete_by:
            log.warning("scheduler.reply_dropped", extra=about)
            return
        log.warning("scheduler.reply_put_off", extra=about, exc_info=None if isinstance(why, AppError) else why)
        await self.bus.send([reply.to_bus(agent, now, pause)])


def _reply(body: bytes, correlation_id: str | None) -> AgentReply:
    """Read a reply; the body says what it answers, and an id that says otherwise makes it invalid."""
    reply = decode(AgentReply, body)
    if correlation_id not in (None, reply.request_id):
        raise InvalidError(["correlation id: it is not that of the request which the body names"])
    return reply
