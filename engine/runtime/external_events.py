"""External events from the queue `answers`. Senders to the queue need no callback URL (ANS-9)."""

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Literal

import azure.functions as func
from pydantic import Field

from engine.decisions.transitions import Transition
from engine.declarations.workflow import Workflows
from engine.domain.causes import Cause, Code
from engine.domain.errors import (
    AppError,
    CausedError,
    InvalidError,
    RefusedError,
    UnknownOrderError,
    UnreadableRowError,
)
from engine.domain.messages import ANSWERS, BusMessage, Message, OrderId, StepName, decode_queued
from engine.domain.orders import OrderAggregate
from engine.features.external_events import decide
from engine.features.external_events.content import read
from engine.http.external_events import EventBody
from engine.ports import Bus, Clock
from engine.runtime.functions import Functions, on_bus, retry_while_unavailable
from engine.runtime.unread import ReceivedMessage, UnreadableMessageHandler
from engine.storage.poison import Arrival, PoisonStore
from engine.storage.unit_of_work import UnitOfWork

log = logging.getLogger(__name__)

MAX_REDELIVERIES = 9
"""How often an event is redelivered if its order cannot be loaded: after 1, 2, 4 … 256 seconds."""


class QueuedEvent(EventBody, Message):
    """A message on the queue `answers`."""

    schema_version: Literal[1] = 1
    order_id: OrderId
    step: StepName
    again: Annotated[int, Field(ge=0, le=MAX_REDELIVERIES)] = 0
    """How often the message was redelivered, because its order was not recorded yet or was
    unreadable."""

    def schedule_redelivery(self, now: datetime) -> BusMessage:
        """Return the message for its next delivery."""
        later = self.model_copy(update={"again": self.again + 1})
        begins = now + timedelta(seconds=2**self.again)
        return BusMessage(
            queue=ANSWERS,
            message_id=f"{self.order_id}:{self.step}:{begins.timestamp() * 1000:.0f}",
            correlation_id=self.order_id,
            body=later.to_json(),
            not_before=begins,
        )


@dataclass(frozen=True, kw_only=True)
class ExternalEventInbox:
    """Records the events in messages, and keeps unusable messages as poison with their reasons."""

    unit_of_work: UnitOfWork
    workflows: Workflows
    unread: UnreadableMessageHandler
    poison: PoisonStore
    bus: Bus
    clock: Clock

    async def take(self, body: bytes, correlation_id: str | None, arrival: Arrival) -> None:
        """Record the event in a message.

        Raises `UnavailableError` if the message should be delivered again.
        """
        try:
            message = decode_queued(QueuedEvent, body)
        except InvalidError as fault:
            delivered = ReceivedMessage(
                queue=ANSWERS, body=body, correlation_id=correlation_id, arrival=arrival
            )
            await self.unread.settle(delivered, fault)
            return
        try:
            await self._record(message)
        except (UnknownOrderError, UnreadableRowError) as not_loaded:
            if message.again < MAX_REDELIVERIES:
                await self.bus.send([message.schedule_redelivery(self.clock())])
                return
            await self._reject(message, body, _why(message, not_loaded), arrival)
        except (InvalidError, RefusedError) as fault:
            await self._reject(message, body, _why(message, fault), arrival)

    async def _record(self, message: QueuedEvent) -> None:
        def record(order: OrderAggregate, now: datetime) -> Transition | None:
            decide.external_step(order, message.step)
            event = read(order, message.step, self.workflows, message.answer, message.refusal)
            return decide.recorded(order, event, decide.ACTOR, now)

        if await self.unit_of_work.run(message.order_id, record):
            about = {"order_id": message.order_id, "step": message.step}
            log.info("customers.answered", extra=about)

    async def _reject(
        self, message: QueuedEvent, body: bytes, why: Cause, arrival: Arrival
    ) -> None:
        # Why is in the poison row alone: it may repeat what the sender or another outsider wrote.
        about = {"order_id": message.order_id, "step": message.step}
        log.warning("customers.answer_rejected", extra=about)
        await self.poison.put(ANSWERS, body, why, arrival, message.order_id)


def _why(message: QueuedEvent, error: AppError) -> Cause:
    match error:
        case CausedError():
            return error.cause
        case InvalidError():
            return Cause(Code.MESSAGE_INVALID, {"faults": error.as_facts()})
    return Cause(Code.ORDER_UNKNOWN, {"order": message.order_id})


def external_event_functions(inbox: ExternalEventInbox) -> func.Blueprint:
    """Make the function that takes external events from their queue."""
    triggers = Functions()

    @triggers.service_bus_queue_trigger(
        arg_name="message", queue_name=ANSWERS, connection="ServiceBus"
    )
    async def customers_answers(message: func.ServiceBusMessage) -> None:
        take = partial(
            inbox.take, message.get_body(), message.correlation_id or None, on_bus(message)
        )
        await retry_while_unavailable("customers_answers", take)

    return triggers
