"""Orders put straight onto the submission queue, as a trusted submitter does."""

import json
from typing import Any

from azure.storage.queue.aio import QueueClient

from adapters.clock import order_ids
from local.stack import Stack

new_order_id = order_ids(8)


async def submit(stack: Stack, order_id: str, **more: Any) -> None:
    """Put one order on the queue."""
    message = {
        "schemaVersion": 1,
        "orderId": order_id,
        "placedAt": "2026-01-31T08:15:00Z",
        "customer": {"name": "Ada", "email": "ada@example.com"},
        "items": [{"sku": "TEA-SENCHA", "quantity": 2, "unitPrice": "14.00"}],
    }
    async with QueueClient.from_connection_string(stack.storage_connection_string, "order-submissions") as queue:
        await queue.send_message(json.dumps(message | more))
