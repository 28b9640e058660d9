"""Binds the scheduler to its queues and its polling timer."""

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from typing import List  # noqa: UP035 - see Messages

import azure.functions as func

from core.gathering import run_all
from core.messages import SCHEDULER_REQUESTS, responses_queue
from core.poison import Arrival
from entrypoints.arrivals import on_bus
from entrypoints.functions import Functions
from entrypoints.timers import in_turn
from scheduler.inbox import Inbox
from scheduler.service import SchedulerService

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
