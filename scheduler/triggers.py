"""Binds the scheduler to its queues and its polling timer."""

# The pattern in an hour, 10 of 23: wake-ups, replies and the poll

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import List  # noqa: UP035 - see Messages

import azure.functions as func

from engine.concurrency import run_all
from engine.domain.errors import (
    AppError,
    InputFault,
    InvalidError,
    OtherVersionError,
    OutOfTimeError,
)
from engine.domain.messages import (
    SCHEDULER_REQUESTS,
    AgentReply,
    OrderReady,
    decode_queued,
    decode_reply,
    later,
    responses_queue,
    schedule_redelivery,
)
from engine.ports import Bus, Clock
from engine.runtime.functions import (
    BATCH_SECONDS,
    Functions,
    on_bus,
    retry_while_unavailable,
    skip_overlapping_runs,
)
from engine.runtime.unread import ReceivedMessage, UnreadableMessageHandler
from engine.storage.poison import Arrival
from scheduler.admission.admission import REFRESH_INTERVAL
from scheduler.service import WAKE_UP_TIME, SchedulerService

log = logging.getLogger(__name__)

ONCE_MORE = WAKE_UP_TIME + 3 * REFRESH_INTERVAL
"""The time until a wake-up comes again.

By then every process has refreshed since `WAKE_UP_TIME` ended. So each of them may claim the order,
and any other order that was left behind.
"""


@dataclass(frozen=True, kw_only=True)
class Inbox:
    """Handles one message at a time.

    Raises `UnavailableError` only if the message would be lost.
    """

    service: SchedulerService
    unread: UnreadableMessageHandler
    bus: Bus
    clock: Clock

    async def on_order_ready(
        self, function: str, body: bytes, correlation_id: str | None, arrival: Arrival
    ) -> None:
        """Let the scheduler claim an order. The poll makes up for a wake-up that fails."""
        try:
            order_ready = decode_queued(OrderReady, body)
        except OtherVersionError as newer:
            log.warning("scheduler.newer_order_ready", extra={"why": str(newer)})
            return
        except InvalidError as fault:
            message = ReceivedMessage(
                queue=SCHEDULER_REQUESTS, body=body, correlation_id=correlation_id, arrival=arrival
            )
            await retry_while_unavailable(function, partial(self.unread.settle, message, fault))
            return
        try:
            if await self.service.on_order_ready(order_ready):
                await self._once_more(order_ready)
        except OutOfTimeError:
            raise
        except Exception:
            log.exception("scheduler.order_ready_failed", extra={"order_id": order_ready.order_id})

    async def _once_more(self, order_ready: OrderReady) -> None:
        """Send the message again for later.

        It gets a new id, because a queue might drop the old one.
        """
        message = order_ready.model_copy(update={"again": True}).to_bus()
        await self.bus.send([later(message, self.clock() + ONCE_MORE)])

    async def receive(
        self, function: str, agent: str, body: bytes, correlation_id: str | None, arrival: Arrival
    ) -> None:
        """Let the scheduler act on a reply. If this fails, send the reply again for later."""
        try:
            reply = _reply(body, correlation_id)
        except InvalidError as fault:
            message = ReceivedMessage(
                queue=responses_queue(agent),
                body=body,
                correlation_id=correlation_id,
                arrival=arrival,
            )
            await retry_while_unavailable(function, partial(self.unread.settle, message, fault))
            return
        try:
            await self.service.receive(reply, agent)
        except OutOfTimeError:
            raise
        except Exception as why:  # noqa: BLE001 - a row may be unreadable, or of a newer version
            await self._later(reply, agent, why)

    async def _later(self, reply: AgentReply, agent: str, why: Exception) -> None:
        """Return the reply to its queue while it is in time.

        Otherwise drop it, and the step times out.
        """
        now = self.clock()
        about = {"order_id": reply.order_id, "reply": reply.request_id, "why": repr(why)}
        again = schedule_redelivery(reply.to_bus(agent, now), now, reply.complete_by)
        if again is None:
            log.warning("scheduler.reply_dropped", extra=about)
            return
        unexpected = None if isinstance(why, AppError) else why
        log.warning("scheduler.reply_redelivery_scheduled", extra=about, exc_info=unexpected)
        await self.bus.send([again])


def _reply(body: bytes, correlation_id: str | None) -> AgentReply:
    """Read a reply. Raises `InvalidError`, also if the correlation id contradicts the body."""
    reply = decode_reply(body)
    if correlation_id not in (None, reply.request_id):
        raise InvalidError([InputFault("correlation id", "of-another-request")])
    return reply


# Azure's library refuses to load a function with list[...].
Messages = List[func.ServiceBusMessage]  # noqa: UP006


def scheduler_functions(inbox: Inbox, agents: Sequence[str]) -> func.Blueprint:
    """Make the scheduler's functions: wake-ups, the replies of each agent, and the poll."""
    triggers = Functions()

    @triggers.service_bus_queue_trigger(
        arg_name="messages",
        queue_name=SCHEDULER_REQUESTS,
        connection="ServiceBus",
        cardinality=func.Cardinality.MANY,
        limit_seconds=BATCH_SECONDS,
    )
    async def scheduler_order_ready(messages: Messages) -> None:
        await run_all(
            inbox.on_order_ready("scheduler_order_ready", *message)
            for message in bodies_with_ids(messages)
        )

    @triggers.timer_trigger(
        arg_name="timer", schedule="%SCHEDULER_POLL_SCHEDULE%", use_monitor=False
    )
    async def scheduler_poll(timer: func.TimerRequest) -> None:
        await skip_overlapping_runs("scheduler_poll", inbox.service.poll)

    for agent in agents:
        _bind_responses(triggers, agent, inbox)
    return triggers


def _bind_responses(triggers: func.Blueprint, agent: str, inbox: Inbox) -> None:
    name = f"scheduler_{agent.replace('-', '_')}_responses"

    @triggers.function_name(name)
    @triggers.service_bus_queue_trigger(
        arg_name="messages",
        queue_name=responses_queue(agent),
        connection="ServiceBus",
        cardinality=func.Cardinality.MANY,
        limit_seconds=BATCH_SECONDS,
    )
    async def responses(messages: Messages) -> None:
        await run_all(inbox.receive(name, agent, *message) for message in bodies_with_ids(messages))


def bodies_with_ids(messages: Messages) -> list[tuple[bytes, str | None, Arrival]]:
    """Return the body, the correlation id and the arrival of each message in a batch.

    If any message has no correlation id, none is returned. Azure's host leaves out the gaps, so
    later ids would move to other messages.
    """
    ids = [message.correlation_id or None for message in messages]
    sure = ids if all(ids) else [None] * len(ids)
    return [
        (message.get_body(), message_id, on_bus(message))
        for message, message_id in zip(messages, sure, strict=True)
    ]
