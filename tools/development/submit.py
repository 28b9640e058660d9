"""Puts an order on the submission queue of the running stack, like a trusted submitter."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from azure.storage.queue.aio import QueueClient

from engine.azure.clock import order_ids
from engine.domain.messages import Submission
from functions_alone.connections import storage_connection_string
from functions_alone.ports import Ports

new_order_id = order_ids(8)


async def submit(ports: Ports, payload: Mapping[str, Any], workflow: str | None) -> str:
    """Submit an order without checking it, and return its id."""
    order_id = new_order_id()
    message = Submission.model_validate(
        {
            **payload,
            "schemaVersion": 1,
            "orderId": order_id,
            "placedAt": datetime.now(UTC),
            "workflow": workflow,
        }
    )
    async with QueueClient.from_connection_string(
        storage_connection_string(ports), "order-submissions"
    ) as queue:
        await queue.send_message(message.to_json())
    return order_id
