"""Orders put straight onto the submission queue, as a trusted submitter does."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from azure.storage.queue.aio import QueueClient

from development.stack import AppStack
from engine.azure.clock import order_ids
from tests.support.client import QUICK

new_order_id = order_ids(int(QUICK["BUCKETS"]))


TEA = {
    "customer": {"name": "Ada", "email": "ada@example.com"},
    "items": [{"sku": "TEA-SENCHA", "quantity": 2, "unitPrice": "14.00"}],
}


async def submit(
    stack: AppStack, *order_ids: str, payload: Mapping[str, Any] = TEA, **more: Any
) -> None:
    """Put orders on the queue, for tea unless told otherwise."""
    async with QueueClient.from_connection_string(
        stack.storage_connection_string, "order-submissions"
    ) as queue:
        await asyncio.gather(
            *(
                queue.send_message(json.dumps(_message(order_id, payload) | more))
                for order_id in order_ids
            )
        )


async def submit_new(stack: AppStack, count: int, **more: Any) -> list[str]:
    """Put that many new orders on the queue; return their ids."""
    order_ids = [new_order_id() for _ in range(count)]
    await submit(stack, *order_ids, **more)
    return order_ids


def _message(order_id: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    return {"schemaVersion": 1, "orderId": order_id, "placedAt": "2026-01-31T08:15:00Z", **payload}
