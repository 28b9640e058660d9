"""Binds agents to their request queues.

Each function call takes one request, and many run at the same time. A call may hang until its
complete-by time, and the host renews the locks of single messages only.
"""

# The pattern in an hour, 14 of 23: the queue of requests

from functools import partial

import azure.functions as func

from agents import rules
from agents.service import AgentService
from engine.domain.errors import InvalidError
from engine.domain.messages import AgentRequest, decode_queued, requests_queue, responses_queue
from engine.runtime.functions import AGENT_SECONDS, Functions, on_bus, retry_while_unavailable
from engine.runtime.unread import ReceivedMessage, UnreadableMessageHandler


def agent_functions(agent: AgentService, unread: UnreadableMessageHandler) -> func.Blueprint:
    """Make the function that takes this agent's requests."""
    triggers = Functions()
    queue, name = requests_queue(agent.name), f"agent_{agent.name.replace('-', '_')}"

    @triggers.function_name(name)
    @triggers.service_bus_queue_trigger(
        arg_name="message",
        queue_name=queue,
        connection="ServiceBus",
        limit_seconds=AGENT_SECONDS,
    )
    async def handle(message: func.ServiceBusMessage) -> None:
        await retry_while_unavailable(name, partial(work_on, message))

    async def work_on(message: func.ServiceBusMessage) -> None:
        body = message.get_body()
        try:
            request = decode_queued(AgentRequest, body)
        except InvalidError as fault:
            delivered = ReceivedMessage(
                queue=queue,
                body=body,
                correlation_id=message.correlation_id,
                arrival=on_bus(message),
                reply_to=responses_queue(agent.name),
            )
            await unread.settle(delivered, fault)
        else:
            tries = message.delivery_count or 1
            if tries > 1:
                await agent.sleep(rules.pause_before(tries))
            await agent.handle(request, again=tries > 1)

    return triggers
