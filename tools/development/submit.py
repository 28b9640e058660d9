"""Puts an order onto the submission queue of the running stack, as a trusted submitter does."""

import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from azure.storage.queue.aio import QueueClient
from ulid import ULID

from engine.domain.keys import buckets
from engine.domain.messages import Submission
from functions_alone.connections import storage_connection_string
from functions_alone.ports import Ports

BUCKETS = 8


async def submit(ports: Ports, payload: Mapping[str, Any], workflow: str | None) -> str:
    """Submit an order, whatever its business will say of it, and return its id."""
    order_id = f"{secrets.choice(buckets(BUCKETS))}-{ULID()}"
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
