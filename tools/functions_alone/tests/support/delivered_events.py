"""What Event Grid has delivered."""

import base64
import json
from typing import Any

from azure.storage.queue.aio import QueueClient

from functions_alone.stack import Stack


async def take_events(stack: Stack) -> list[dict[str, Any]]:
    """Empty the queue of the subscription; return the events."""
    async with QueueClient.from_connection_string(
        stack.storage_connection_string, stack.config.topic.queue
    ) as queue:
        messages = [message async for message in queue.receive_messages(max_messages=32)]
        await queue.clear_messages()
    return [json.loads(base64.b64decode(message.content)) for message in messages]
