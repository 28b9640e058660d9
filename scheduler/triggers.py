"""Binds the scheduler to its queues and its polling timer."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import List  # noqa: UP035 - see Messages

import azure.functions as func

from core.errors import InvalidError
from core.gathering import run_all
from core.messages import SCHEDULER_REQUESTS, AgentReply, Correlation, WakeUp, decode, responses_queue
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

    async def wake(message: func.ServiceBusMessage) -> None:
        try:
            await service.wake(decode(WakeUp, message.get_body()))
        except InvalidError as fault:
            await poison.put(SCHEDULER_REQUESTS, message.get_body(), str(fault), message.correlation_id)

    @triggers.service_bus_queue_trigger(
        arg_name="messages",
        queue_name=SCHEDULER_REQUESTS,
        connection="ServiceBus",
        cardinality=func.Cardinality.MANY,
    )
    async def scheduler_wake(messages: Messages) -> None:
        await run_all(through_outages("scheduler_wake", partial(wake, message)) for message in messages)

    @triggers.timer_trigger(arg_name="timer", schedule="%SCHEDULER_POLL_SCHEDULE%", use_monitor=False)
    async def scheduler_poll(timer: func.TimerRequest) -> None:
        async with next_time("scheduler_poll"):
            for _ in range(MOST_ROUNDS):
                if not await service.go_on():
                    break
                await asyncio.sleep(ROUND_SECONDS)

    for agent in agents:
        _bind_responses(triggers, agent, service, poison)
    return triggers


def _bind_responses(triggers: func.Blueprint, agent: str, service: SchedulerService, poison: PoisonQueues) -> None:
    queue, name = responses_queue(agent), f"scheduler_{agent.replace('-', '_')}_responses"

    async def receive(message: func.ServiceBusMessage) -> None:
        try:
            correlation = Correlation.parse(message.correlation_id)
            await service.receive(correlation, decode(AgentReply, message.get_body()))
        except InvalidError as fault:
            await poison.put(queue, message.get_body(), str(fault), message.correlation_id)

    @triggers.function_name(name)
    @triggers.service_bus_queue_trigger(
        arg_name="messages", queue_name=queue, connection="ServiceBus", cardinality=func.Cardinality.MANY
    )
    async def responses(messages: Messages) -> None:
        await run_all(through_outages(name, partial(receive, message)) for message in messages)
