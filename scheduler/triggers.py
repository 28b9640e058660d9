"""Binds the scheduler to its queues and its polling timer."""

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import List  # noqa: UP035 - see Messages

import azure.functions as func

from core.errors import AppError, InvalidError
from core.gathering import run_all
from core.messages import SCHEDULER_REQUESTS, AgentReply, WakeUp, decode, responses_queue
from core.ports import Bus, Clock
from entrypoints.functions import Functions, in_turn, on_bus, through_outages
from scheduler.service import SchedulerService
from stores.poison import Arrival, PoisonStore

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


ROUND_SECONDS = 1.0
LONGEST_SECONDS = 20.0
"""Of one poll, while orders wait for room at agents; on Azure its timer comes again soon after."""

Messages = List[func.ServiceBusMessage]  # noqa: UP006 - Azure's library refuses to load a function with list[...]


def blueprint(inbox: Inbox, agents: Sequence[str]) -> func.Blueprint:
    """Return the scheduler's functions: wake-ups, one function for each agent's responses, and the poll."""
    triggers = Functions()

    @triggers.service_bus_queue_trigger(
        arg_name="messages",
        queue_name=SCHEDULER_REQUESTS,
        connection="ServiceBus",
        cardinality=func.Cardinality.MANY,
    )
    async def scheduler_wake(messages: Messages) -> None:
        await run_all(inbox.wake("scheduler_wake", *each) for each in bodies_with_ids(messages))

    @triggers.timer_trigger(arg_name="timer", schedule="%SCHEDULER_POLL_SCHEDULE%", use_monitor=False)
    async def scheduler_poll(timer: func.TimerRequest) -> None:
        await in_turn("scheduler_poll", partial(_poll, inbox.service))

    for agent in agents:
        _bind_responses(triggers, agent, inbox)
    return triggers


async def _poll(service: SchedulerService) -> None:
    end = time.monotonic() + LONGEST_SECONDS
    while await service.poll():
        if time.monotonic() > end:
            break
        await asyncio.sleep(ROUND_SECONDS)


def _bind_responses(triggers: func.Blueprint, agent: str, inbox: Inbox) -> None:
    name = f"scheduler_{agent.replace('-', '_')}_responses"

    @triggers.function_name(name)
    @triggers.service_bus_queue_trigger(
        arg_name="messages",
        queue_name=responses_queue(agent),
        connection="ServiceBus",
        cardinality=func.Cardinality.MANY,
    )
    async def responses(messages: Messages) -> None:
        await run_all(inbox.receive(name, agent, *each) for each in bodies_with_ids(messages))


def bodies_with_ids(messages: Messages) -> list[tuple[bytes, str | None, Arrival]]:
    """Return body, correlation id and arrival of each message of a batch; all without id if one of them has none.

    Azure's host leaves gaps out, so that the later ids move up and the last messages seem to have none: whose id is
    whose cannot be told any more.
    """
    ids = [message.correlation_id or None for message in messages]
    sure = ids if all(ids) else [None] * len(ids)
    return [(message.get_body(), each, on_bus(message)) for message, each in zip(messages, sure, strict=True)]
