"""Binds the scheduler to its queues and its polling timer."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import List  # noqa: UP035 - see Messages

import azure.functions as func

from core.errors import InvalidError
from core.gathering import run_all
from core.messages import SCHEDULER_REQUESTS, AgentReply, WakeUp, decode, responses_queue
from core.ports import PoisonQueues
from edge.outages import next_time, through_outages
from scheduler.service import SchedulerService

ROUND_SECONDS = 1.0
MOST_ROUNDS = 20
"""Of one poll, while orders wait for room at agents; then the timer comes again."""

Messages = List[func.ServiceBusMessage]  # noqa: UP006 - Azure's library refuses to load a function with list[...]


def blueprint(service: SchedulerService, poison: PoisonQueues, agents: Sequence[str]) -> func.Blueprint:
    """Return the scheduler's functions: wake-ups, one function for each agent's responses, and the poll."""
    triggers = func.Blueprint()

    async def wake(message: func.ServiceBusMessage, correlation_id: str | None) -> None:
        try:
            await service.wake(decode(WakeUp, message.get_body()))
        except InvalidError as fault:
            await poison.put(SCHEDULER_REQUESTS, message.get_body(), str(fault), correlation_id)

    @triggers.service_bus_queue_trigger(
        arg_name="messages",
        queue_name=SCHEDULER_REQUESTS,
        connection="ServiceBus",
        cardinality=func.Cardinality.MANY,
    )
    async def scheduler_wake(messages: Messages) -> None:
        await run_all(through_outages("scheduler_wake", partial(wake, *each)) for each in with_ids(messages))

    @triggers.timer_trigger(arg_name="timer", schedule="%SCHEDULER_POLL_SCHEDULE%", use_monitor=False)
    async def scheduler_poll(timer: func.TimerRequest) -> None:
        async with next_time("scheduler_poll"):
            for _ in range(MOST_ROUNDS):
                if not await service.poll():
                    break
                await asyncio.sleep(ROUND_SECONDS)

    for agent in agents:
        _bind_responses(triggers, agent, service, poison)
    return triggers


def _bind_responses(triggers: func.Blueprint, agent: str, service: SchedulerService, poison: PoisonQueues) -> None:
    queue, name = responses_queue(agent), f"scheduler_{agent.replace('-', '_')}_responses"

    async def receive(message: func.ServiceBusMessage, correlation_id: str | None) -> None:
        try:
            await service.receive(_reply(message.get_body(), correlation_id), agent)
        except InvalidError as fault:
            await poison.put(queue, message.get_body(), str(fault), correlation_id)

    @triggers.function_name(name)
    @triggers.service_bus_queue_trigger(
        arg_name="messages", queue_name=queue, connection="ServiceBus", cardinality=func.Cardinality.MANY
    )
    async def responses(messages: Messages) -> None:
        await run_all(through_outages(name, partial(receive, *each)) for each in with_ids(messages))


def _reply(body: bytes, correlation_id: str | None) -> AgentReply:
    """Read a reply; the body says what it answers, and an id that says otherwise makes it invalid."""
    reply = decode(AgentReply, body)
    if correlation_id not in (None, reply.request_id):
        raise InvalidError(["correlation id: it is not that of the request which the body names"])
    return reply


def with_ids(messages: Messages) -> list[tuple[func.ServiceBusMessage, str | None]]:
    """Return each message of a batch with its correlation id; all with none if one of them has none.

    Azure's host leaves gaps out, so that the later ids move up and the last messages seem to have none: whose id is
    whose cannot be told any more.
    """
    ids = [message.correlation_id or None for message in messages]
    return list(zip(messages, ids if all(ids) else [None] * len(ids), strict=True))
