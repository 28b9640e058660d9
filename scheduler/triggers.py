"""Binds the scheduler to its queues and its polling timer."""

import asyncio
from collections.abc import Sequence
from typing import List  # noqa: UP035 - see Messages

import azure.functions as func

from core.gathering import run_all
from core.messages import SCHEDULER_REQUESTS, responses_queue
from edge.outages import next_time
from scheduler.inbox import Inbox

ROUND_SECONDS = 1.0
MOST_ROUNDS = 20
"""Of one poll, while orders wait for room at agents; then the timer comes again."""

Messages = List[func.ServiceBusMessage]  # noqa: UP006 - Azure's library refuses to load a function with list[...]


def blueprint(inbox: Inbox, agents: Sequence[str]) -> func.Blueprint:
    """Return the scheduler's functions: wake-ups, one function for each agent's responses, and the poll."""
    triggers = func.Blueprint()

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
        async with next_time("scheduler_poll"):
            for _ in range(MOST_ROUNDS):
                if not await inbox.service.go_on():
                    break
                await asyncio.sleep(ROUND_SECONDS)

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
    )
    async def responses(messages: Messages) -> None:
        await run_all(inbox.receive(name, agent, *each) for each in bodies_with_ids(messages))


def bodies_with_ids(messages: Messages) -> list[tuple[bytes, str | None]]:
    """Return the body of each message of a batch with its correlation id; all with none if one of them has none.

    Azure's host leaves gaps out, so that the later ids move up and the last messages seem to have none: whose id is
    whose cannot be told any more.
    """
    ids = [message.correlation_id or None for message in messages]
    bodies = [message.get_body() for message in messages]
    return list(zip(bodies, ids if all(ids) else [None] * len(ids), strict=True))
